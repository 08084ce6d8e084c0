import { createHash, randomBytes } from 'node:crypto'
import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  ftruncateSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { textWindow } from '../../../plugins/workspace/files/window.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { layTraps, workspaceWorld } from './support.js'

const hashOf = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex')

void t.test('single files', async t => {
  const { daemon, ask } = await workspaceWorld(t, { files: { 'a.md': 'one\n' } })
  const { client, workspace } = daemon
  const outside = join(daemon.data, '..', 'outside')
  layTraps(workspace, outside)

  await t.test('viewers and tokens do not write', async t => {
    const { token } = await daemon.token('land')
    for (const [method, path, body] of [
      ['PUT', '/workspace/file', { path: 'x', content: '' }],
      ['POST', '/workspace/dir', { path: 'x' }],
    ] as const) {
      t.equal((await ask('col', path, method, body)).status, 403, path)
      const headers = { 'x-sandbox-control': token, 'content-type': 'application/json' }
      t.equal((await fetch(daemon.url + path, { method, headers, body: JSON.stringify(body) })).status, 403, path)
    }
  })

  await t.test('parts of a file that follow each other are the file, whatever their length', async t => {
    const text = 'aé€😀\u{10ffff}\n'.repeat(50)
    writeFileSync(join(workspace, 'text'), text)
    writeFileSync(join(workspace, 'bytes'), randomBytes(600))
    for (const path of ['text', 'bytes']) {
      const bytes = readFileSync(join(workspace, path))
      await using handle = await open(join(workspace, path))
      for (let limit = 1; limit <= 40; limit++) {
        let [end, content] = [0, '']
        for (let offset = 0; offset < bytes.length; offset += limit) {
          const part = await textWindow(handle, { offset, limit })
          if (part.bytes > 0 && part.offset !== end) t.fail(`a gap at ${offset} in steps of ${limit}`)
          end = part.offset + part.bytes
          content += part.content
          if (path === 'text' && part.lossy) t.fail(`half a character at ${offset} in steps of ${limit}`)
        }
        t.equal(end, bytes.length, `${path} in steps of ${limit}`)
        if (path === 'text') t.equal(content, text)
      }
    }
    t.match(await client.call('GET /workspace/file', { path: 'text', offset: 2, limit: 2 }), {
      content: '€',
      offset: 3,
      bytes: 3,
    })
  })

  await t.test('windows of a file of 3 GB are right beyond what fits into 31 bits', async t => {
    const size = 3_000_000_000
    const file = openSync(join(workspace, 'huge.log'), 'w')
    for (const at of [0, 2 ** 31 - 1, size - 5]) writeSync(file, 'a€b', at)
    ftruncateSync(file, size)
    const read = (offset: number, limit: number) =>
      client.call('GET /workspace/file', { path: 'huge.log', offset, limit })
    t.match(await read(0, 5), { content: 'a€b', size, offset: 0, bytes: 5 })
    t.match(await read(2 ** 31 - 1, 2), { content: 'a€', offset: 2 ** 31 - 1, bytes: 4 }, 'a character belongs whole')
    t.match(await read(2 ** 31 + 3, 1), { content: 'b' })
    t.match(await read(-5, 5), { content: 'a€b', offset: size - 5 })
    writeSync(file, 'more\n', size)
    closeSync(file)
    t.match(await read(-5, 5), { content: 'more\n', size: size + 5 })
    rmSync(join(workspace, 'huge.log'))
  })

  await t.test('the end of a file is read while it grows, and what is not UTF-8 says so', async t => {
    writeFileSync(join(workspace, 'log'), 'first\n')
    appendFileSync(join(workspace, 'log'), 'last\n')
    t.same(await client.call('GET /workspace/file', { path: 'log', offset: -5 }), {
      path: 'log',
      content: 'last\n',
      size: 11,
      offset: 6,
      bytes: 5,
      shared: true,
    })
    writeFileSync(join(workspace, 'latin'), Buffer.from([0x61, 0xe9, 0x62]))
    t.match(await client.call('GET /workspace/file', { path: 'latin' }), { content: 'a\ufffdb', bytes: 3, lossy: true })
    writeFileSync(join(workspace, 'bom'), '\ufeffx')
    t.match(await client.call('GET /workspace/file', { path: 'bom' }), { content: '\ufeffx', bytes: 4 })
    t.same(await client.call('GET /workspace/file', { path: 'nothing/here' }), { path: 'nothing/here' })
  })

  await t.test('no path leads outside, to git or to the sandbox, and nothing blocks', async t => {
    const refused: [number, string][] = [
      [400, '../outside/secret'],
      [400, 'docs/../../outside/secret'],
      [400, '/etc/passwd'],
      [400, 'a\0b'],
      [400, 'out/secret'],
      [400, 'docs/out'],
      [400, 'out/nothing'],
      [400, 'docs//a.md'],
      [400, '\\\\host\\share'],
      [404, '.git/config'],
      [404, '.GIT/config'],
      [404, '.g\u200cit/config'],
      [404, 'way/config'],
      [404, 'git~1/config'],
      [404, '.sandbox/x'],
      [404, '.Sandbox/x'],
      [404, '.sandbox./x'],
      [422, 'docs'],
      [422, 'pipe'],
      [422, '.'.repeat(3) === '...' ? 'docs/deep' : ''],
    ]
    for (const [status, path] of refused) {
      t.match(await refusalOf(() => client.call('GET /workspace/file', { path })), { status }, `file ${path}`)
      const raw = await daemon.fetch(`/workspace/raw?path=${encodeURIComponent(path)}`)
      t.equal(raw.status, status, `raw ${path}`)
      t.notMatch(await raw.text(), /zirkonia/)
    }
    t.equal((await daemon.fetch('/workspace/file?path=%2e%2e%2foutside%2fsecret')).status, 400)
    writeFileSync(join(workspace, '%2e%2e'), 'a name')
    t.match(await client.call('GET /workspace/file', { path: '%2e%2e' }), { content: 'a name' })
  })

  await t.test('a folder that becomes a link again and again never gives a byte from outside', async t => {
    mkdirSync(join(workspace, 'turning'))
    writeFileSync(join(workspace, 'turning/secret'), 'inside')
    let turning = true
    /** A write may make the folder anew in between. */
    const instead = (put: () => void): void => {
      for (;;) {
        try {
          rmSync(join(workspace, 'turning'), { recursive: true, force: true })
          return put()
        } catch (error) {
          if (!['EEXIST', 'ENOTEMPTY'].includes(String((error as NodeJS.ErrnoException).code))) throw error
        }
      }
    }
    const turn = (async () => {
      while (turning) {
        renameSync(join(workspace, 'turning'), join(workspace, 'held'))
        instead(() => symlinkSync(outside, join(workspace, 'turning')))
        await new Promise(resolve => setImmediate(resolve))
        instead(() => renameSync(join(workspace, 'held'), join(workspace, 'turning')))
        await new Promise(resolve => setImmediate(resolve))
      }
    })()
    const seen = new Set<string>()
    // On a busy machine many reads in a row may miss the moments of the folder.
    for (let at = 0; at < 200 || (at < 5000 && !seen.has('200 false')); at++) {
      // An answer is cut when the file is another one by the time it is sent.
      const response = await daemon
        .fetch(`/workspace/${at % 2 ? 'raw' : 'file'}?path=turning/secret`)
        .catch(() => undefined)
      const text = await response?.text().catch(() => 'cut')
      seen.add(`${response?.status} ${/zirkonia/.test(text ?? '')}`)
    }
    await Promise.all(
      Array.from({ length: 40 }, (_, at) =>
        client.call('PUT /workspace/file', { path: 'turning/written', content: String(at) }).catch(() => {}),
      ),
    )
    turning = false
    await turn
    t.notOk(
      [...seen].some(each => each.endsWith('true')),
      [...seen].join(', '),
    )
    t.ok(seen.has('200 false'))
    t.same(readdirSync(outside), ['secret'])
  })

  await t.test('a file is written whole, with its mode, and the same content changes nothing', async t => {
    const written = await client.call('PUT /workspace/file', { path: 'new/deep/a.txt', content: 'é' })
    t.match(written, { ok: true, path: 'new/deep/a.txt', size: 2, hash: hashOf('é'), created: true })
    chmodSync(join(workspace, 'a.md'), 0o755)
    t.match(await client.call('PUT /workspace/file', { path: 'a.md', content: 'AAEC', encoding: 'base64' }), {
      created: false,
    })
    t.equal(statSync(join(workspace, 'a.md')).mode & 0o777, 0o755)
    t.same(readFileSync(join(workspace, 'a.md')), Buffer.from([0, 1, 2]))
    const before = statSync(join(workspace, 'a.md')).mtimeMs
    await client.call('PUT /workspace/file', { path: 'a.md', content: 'AAEC', encoding: 'base64' })
    t.equal(statSync(join(workspace, 'a.md')).mtimeMs, before)
    await client.call('PUT /workspace/file', { path: 'same/a.md', content: 'through' })
    t.equal(readFileSync(join(workspace, 'docs/a.md'), 'utf8'), 'through')
    t.notOk(readdirSync(workspace).some(name => name.startsWith('.sandbox-write-')))
  })

  await t.test('when two people save one file, the second is refused with its current content', async t => {
    writeFileSync(join(workspace, 'both'), 'base')
    const save = (content: string) =>
      client.call('PUT /workspace/file', { path: 'both', content, baseHash: hashOf('base') }).then(
        () => content,
        error => error as { status: number; body?: { hash?: string }; hash?: string },
      )
    const [one, other] = await Promise.all([save('one'), save('other')])
    const won = [one, other].filter(each => typeof each === 'string')
    t.equal(won.length, 1)
    const response = await daemon.fetch('/workspace/file', {
      method: 'PUT',
      body: JSON.stringify({ path: 'both', content: 'x', baseHash: hashOf('base') }),
    })
    t.match([response.status, await response.json()], exactly(409, { hash: hashOf(won[0] as string) }))
    t.match(
      await refusalOf(() => client.call('PUT /workspace/file', { path: 'both', content: 'x', baseHash: 'absent' })),
      { status: 409 },
    )
    t.match(
      await refusalOf(() => client.call('PUT /workspace/file', { path: 'none', content: 'x', baseHash: hashOf('x') })),
      { status: 409 },
    )
  })

  await t.test('refused writes leave nothing behind', async t => {
    const before = execFileSync('find', [workspace], { encoding: 'utf8' })
    const refused: [number, object][] = [
      [400, { path: 'a/../b', content: '' }],
      [400, { path: 'a\nb', content: '' }],
      [400, { path: 'a\\b', content: '' }],
      [400, { path: 'x', content: '%%%', encoding: 'base64' }],
      [400, { path: 'x', content: '\ud800' }],
      [400, { path: 'x', content: '', baseHash: 'x' }],
      [400, { path: 'out/x', content: '' }],
      [404, { path: '.git/x', content: '' }],
      [404, { path: '.sandbox/config/x', content: '' }],
      [404, { path: 'no/x', content: '', createParents: false }],
      [409, { path: 'docs', content: '' }],
      [409, { path: 'a.md/x', content: '' }],
      [409, { path: 'broken', content: '' }],
      [409, { path: 'pipe', content: '' }],
      [409, { path: 'docs/.git/config', content: '' }],
      [413, { path: 'x', content: 'x'.repeat(16 * 1024 * 1024 + 1) }],
    ]
    for (const [status, body] of refused) {
      const response = await daemon.fetch('/workspace/file', { method: 'PUT', body: JSON.stringify(body) })
      t.equal(response.status, status, `${JSON.stringify(body).slice(0, 60)} ${await response.text()}`)
    }
    t.equal(execFileSync('find', [workspace], { encoding: 'utf8' }), before)
  })

  await t.test('a folder is made with those above it, once', async t => {
    t.same(await client.call('POST /workspace/dir', { path: 'x/y/z' }), { ok: true })
    t.same(await client.call('POST /workspace/dir', { path: 'x/y/z/' }), { ok: true })
    t.ok(lstatSync(join(workspace, 'x/y/z')).isDirectory())
    t.match(await refusalOf(() => client.call('POST /workspace/dir', { path: 'a.md' })), { status: 409 })
    t.match(await refusalOf(() => client.call('POST /workspace/dir', { path: 'broken/x' })), { status: 409 })
    t.match(await refusalOf(() => client.call('POST /workspace/dir', { path: '.sandbox/x' })), { status: 404 })
  })

  await t.test('the bytes of a file come with its type, in ranges too', async t => {
    writeFileSync(join(workspace, 'page.html'), '<script>x</script>')
    const page = await daemon.fetch('/workspace/raw?path=page.html')
    t.match(
      [page.headers.get('content-type'), page.headers.get('content-security-policy')],
      exactly(/^text\/html/, 'sandbox'),
    )
    t.equal(page.headers.get('x-content-type-options'), 'nosniff')
    const part = await daemon.fetch('/workspace/raw?path=page.html', { headers: { range: 'bytes=1-6' } })
    t.same([part.status, part.headers.get('content-range'), await part.text()], [206, 'bytes 1-6/18', 'script'])
    const beyond = await daemon.fetch('/workspace/raw?path=page.html', { headers: { range: 'bytes=18-' } })
    t.same([beyond.status, beyond.headers.get('content-range')], [416, 'bytes */18'])
    const etag = page.headers.get('etag')!
    t.equal((await daemon.fetch('/workspace/raw?path=page.html', { headers: { 'if-none-match': etag } })).status, 304)
    execFileSync('truncate', ['-s', '26M', join(workspace, 'large.bin')])
    t.equal((await daemon.fetch('/workspace/raw?path=large.bin')).status, 413)
    const first = await daemon.fetch('/workspace/raw?path=large.bin', { headers: { range: 'bytes=0-0' } })
    t.same([first.status, first.headers.get('content-type')], [206, 'application/octet-stream'])
    t.equal((await daemon.fetch('/workspace/raw?path=gone')).status, 404)
    const head = await daemon.fetch('/workspace/raw?path=page.html', { method: 'HEAD' })
    t.same([head.status, head.headers.get('content-length')], [200, '18'])
  })
})
