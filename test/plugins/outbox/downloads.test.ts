import { createHash, randomBytes } from 'node:crypto'
import { truncateSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import t from 'tap'
import { ByteRate } from '../../../plugins/outbox/byte-rate.js'
import { TextScan } from '../../../plugins/outbox/text-scan.js'
import { Masker } from '../../../sdk/node/access/masker.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { ownBrowser } from '../../support/browser/console.js'
import { withChromium } from '../../support/browser/browser.js'
import { daemonWith } from '../../support/daemon.js'
import { askPage, pathOfUrl } from './support.js'

const MIB = 1024 * 1024

t.test('downloads from the outbox', async t => {
  const { client, workspace, url } = await daemonWith(t, ['outbox', 'settings'], { git: false })
  const hashOf = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

  await t.test('each of 200 downloads is the old file or the new one, whole, while it is published again', async t => {
    const [old, next] = [randomBytes(MIB + 17), randomBytes(MIB + 5)]
    writeFileSync(join(workspace, 'file.bin'), old)
    const path = pathOfUrl((await client.call('POST /public/publish', { path: 'file.bin' })).url)
    writeFileSync(join(workspace, 'file.bin'), next)
    const lane = async (count: number) => {
      const found: string[] = []
      for (let at = 0; at < count; at++) {
        const { status, body } = await askPage(url, path)
        found.push(`${status} ${hashOf(body)}`)
      }
      return found
    }
    const lanes = Array.from({ length: 20 }, () => lane(10))
    for (let times = 0; times < 4; times++) await client.call('POST /public/publish', { path: 'file.bin' })
    const found = (await Promise.all(lanes)).flat()
    t.equal(found.length, 200)
    t.same(
      found.filter(one => one !== `200 ${hashOf(old)}` && one !== `200 ${hashOf(next)}`),
      [],
    )
    t.ok(found.includes(`200 ${hashOf(next)}`))
  })

  await t.test('the parts of a large file are together what was published', async t => {
    // Mostly a hole, so that it is quickly written.
    writeFileSync(join(workspace, 'large.bin'), randomBytes(MIB))
    truncateSync(join(workspace, 'large.bin'), 300 * MIB - 3)
    const path = pathOfUrl((await client.call('POST /public/publish', { path: 'large.bin' })).url)
    const whole = createHash('sha256')
    const size = 300 * MIB - 3
    const step = 77 * MIB + 1
    for (let first = 0; first < size; first += step) {
      const last = Math.min(size, first + step) - 1
      const { status, headers, body } = await askPage(url, path, { range: `bytes=${first}-${last}` })
      t.match({ status, headers }, { status: 206, headers: { 'content-range': `bytes ${first}-${last}/${size}` } })
      whole.update(body)
    }
    const expected = createHash('sha256')
    const beginning = await askPage(url, path, { range: `bytes=0-${MIB - 1}` })
    expected.update(beginning.body)
    for (let left = size - MIB; left > 0; left -= 16 * MIB) expected.update(Buffer.alloc(Math.min(left, 16 * MIB)))
    t.equal(whole.digest('hex'), expected.digest('hex'))
    t.match(await askPage(url, path, { range: `bytes=${size}-` }), {
      status: 416,
      headers: { 'content-range': `bytes */${size}` },
    })
    t.equal((await askPage(url, path, { range: 'bytes=-5' })).body.length, 5)
    t.match(await askPage(url, path, { range: 'bytes=0-4', 'if-range': 'W/"x"', method: 'HEAD' }), { status: 200 })
  })

  await t.test('a download ends when its file is withdrawn', async t => {
    const address = url + pathOfUrl((await client.call('GET /public', {})).url)
    const cut = new Promise<number>((resolve, reject) => {
      get(`${address}/large.bin`, answer => {
        let bytes = 0
        answer.on('data', (piece: Buffer) => (bytes += piece.length))
        answer.on('end', () => reject(new Error('it was sent to its end')))
        answer.on('error', () => resolve(bytes))
        answer.pause()
        void client.call('POST /public/unpublish', { path: 'large.bin' }).then(() => answer.resume())
      })
    })
    t.ok((await cut) < 300 * MIB - 3)
  })

  await t.test('the 601st request of a minute is refused', async t => {
    let answer = await askPage(url, '/p/none/')
    for (let at = 0; at < 600 && answer.status === 404; at++) answer = await askPage(url, '/p/none/')
    t.match(answer, { status: 429, headers: { 'retry-after': /^\d+$/ } })
  })
})

t.test('a published page in a browser shows its picture and reads nothing of the sandbox', withChromium(), async t => {
  const daemon = await daemonWith(t, ['outbox', 'console', 'system'], { git: false })
  const { client, workspace, url } = daemon
  writeFileSync(
    join(workspace, 'page.html'),
    `<!doctype html><title>begun</title><img id="picture" src="picture.svg"><script>
      const tried = async work => { try { return await work() } catch (error) { return error.name } }
      const look = async () => {
        const read = path => fetch(path).then(answer => answer.text())
        document.title = JSON.stringify([
          origin,
          await tried(() => localStorage.length),
          await tried(() => document.cookie),
          await tried(() => read('/info')),
          await tried(() => read('/health')),
          picture.naturalWidth > 0,
        ])
      }
      addEventListener('load', look)
    </script>`,
  )
  writeFileSync(join(workspace, 'picture.svg'), '<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>')
  await client.call('POST /public/publish', { path: 'picture.svg' })
  const { url: address } = await client.call('POST /public/publish', { path: 'page.html' })
  const browser = await ownBrowser(t, url)
  const page = await browser.newPage()
  await page.goto(address!)
  await page.waitForFunction(`document.title !== 'begun'`)
  t.same(JSON.parse(await page.title()), ['null', 'SecurityError', 'SecurityError', 'TypeError', 'TypeError', true])
})

t.test('secrets are found wherever they are cut, and in other encodings of text', async t => {
  const masker = new Masker([{ name: 'A', value: 'correct-horse-battery' }])
  const found = (bytes: Buffer, at: number): boolean => {
    const scan = new TextScan(masker)
    scan.push(bytes.subarray(0, at))
    scan.push(bytes.subarray(at))
    scan.end()
    return scan.found
  }
  const texts = [
    'begin correct-horse-battery end',
    Buffer.from('x correct-horse-battery').toString('base64'),
    'token ghp_0123456789abcdefghijklmnopqrstuvwxyz!',
    '-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl',
    'AKIAABCDEFGHIJKLMNOP',
    'sk-proj-1abcdefghijklmnopqrs',
  ]
  for (const text of texts)
    for (let at = 1; at < text.length; at++) t.ok(found(Buffer.from(text), at), `${text} cut at ${at}`)
  const wide = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('a correct-horse-battery', 'utf16le')])
  t.ok(found(wide, 9))
  for (const text of ['sk-cube-grid-animation', 'correct-horse', 'a key=b&token=c', 'pk_live_0123456789abcdefgh'])
    t.notOk(found(Buffer.from(text), 3), text)
})

t.test('all downloads together take no more than so many bytes in a second', async t => {
  const rate = new ByteRate(100)
  rate.assertFree()
  await rate.take(60)
  await rate.take(60)
  t.match(await refusalOf(() => rate.assertFree()), { status: 429, detail: { retryAfter: 1 } })
  const begun = performance.now()
  await rate.take(10)
  t.ok(performance.now() - begun > 500)
  rate.assertFree()
})
