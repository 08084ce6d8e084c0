import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { BrokenPicture } from '../../../plugins/share/pictures/parts.js'
import { withoutMetadata } from '../../../plugins/share/pictures/strip.js'
import { siteOf, withChromium } from '../../support/browser/browser.js'
import { ownBrowser } from '../../support/browser/console.js'
import { project } from '../../support/browser/page.js'
import { jpegWithGps } from './pictures.js'

const folder = join(project, 'test/fixtures/pictures')
const PICTURES: readonly (readonly [name: string, bytes: Buffer])[] = [
  ...readdirSync(folder).map(name => [name, readFileSync(join(folder, name))] as const),
  ['made.jpg', jpegWithGps()],
]
const HIDDEN = /GPS-SECRET|xmpmeta|ns\.adobe\.com/

t.test('a picture loses everything that it says about itself', async t => {
  for (const [name, bytes] of PICTURES) {
    t.match(bytes.toString('latin1'), HIDDEN, name)
    const bare = withoutMetadata(bytes)!
    t.notMatch(bare.bytes.toString('latin1'), HIDDEN, name)
    t.ok(bare.bytes.length <= bytes.length, name)
    t.ok(withoutMetadata(bare.bytes)!.bytes.equals(bare.bytes), `${name} again`)
  }
  t.ok(withoutMetadata(jpegWithGps())!.bytes.includes('Exif\0\0MM'), 'it is still turned')
  t.equal(withoutMetadata(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>')), undefined)
  t.equal(withoutMetadata(Buffer.from('')), undefined)
})

t.test('a picture that was cut is refused, and never read past its end', async t => {
  for (const [name, bytes] of PICTURES)
    for (let length = 12; length < bytes.length; length += 7) {
      try {
        const bare = withoutMetadata(bytes.subarray(0, length))
        if (bare) t.ok(bare.bytes.length <= length, `${name} of ${length} bytes`)
      } catch (error) {
        t.ok(error instanceof BrokenPicture, `${name} of ${length} bytes: ${String(error)}`)
      }
    }
})

t.test('a browser shows the same pixels as before', withChromium(), async t => {
  const served: { [path: string]: Buffer } = {}
  for (const [name, bytes] of PICTURES) {
    served[`/before/${name}`] = bytes
    served[`/after/${name}`] = withoutMetadata(bytes)!.bytes
  }
  const site = await siteOf(t, {
    '/': '<!doctype html><title>pictures</title>',
    ...Object.fromEntries(
      Object.entries(served).map(([path, bytes]) => [
        path,
        (_: unknown, response: import('node:http').ServerResponse) => void response.end(bytes),
      ]),
    ),
  })
  const browser = await ownBrowser(t, site.url)
  const page = await browser.newPage()
  await page.goto(site.url)
  const pixels = (path: string) =>
    page.evaluate(`(async () => {
      const image = new Image()
      image.src = ${JSON.stringify(path)}
      await image.decode()
      const canvas = document.createElement('canvas')
      canvas.width = image.naturalWidth
      canvas.height = image.naturalHeight
      const context = canvas.getContext('2d')
      context.drawImage(image, 0, 0)
      return [canvas.width, canvas.height, ...context.getImageData(0, 0, canvas.width, canvas.height).data].join()
    })()`)
  for (const [name] of PICTURES) t.equal(await pixels(`/after/${name}`), await pixels(`/before/${name}`), name)
})
