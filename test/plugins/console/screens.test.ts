import { globSync, readFileSync, statSync } from 'node:fs'
import { basename, join } from 'node:path'
import { inflateSync } from 'node:zlib'
import t from 'tap'
import { project } from '../../support/browser/page.js'
import { groupGuides } from '../../support/guides.js'

/** Reads a PNG of one part: its size, and its rows of pixels (PNG, third edition, sections 5 and 11.2.1). */
const decoded = (bytes: Buffer): { width: number; height: number; rows: Buffer } => {
  const data: Buffer[] = []
  for (let at = 8; at < bytes.length; at += 12 + bytes.readUInt32BE(at))
    if (bytes.toString('latin1', at + 4, at + 8) === 'IDAT')
      data.push(bytes.subarray(at + 8, at + 8 + bytes.readUInt32BE(at)))
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20), rows: inflateSync(Buffer.concat(data)) }
}

t.test('the guide of the console shows four pictures of it, which decode and are small', async t => {
  const files = globSync(join(project, 'plugins/console/screens/*.png')).sort()
  t.equal(files.length, 4)
  const { text } = groupGuides.find(({ path }) => path === 'plugins/console/README.md')!
  for (const file of files) {
    const bytes = readFileSync(file)
    const { width, height, rows } = decoded(bytes)
    t.equal(bytes.toString('latin1', 1, 4), 'PNG')
    t.equal(rows.length % height, 0, `${basename(file)}: every row is there`)
    t.ok(rows.length / height > width, 'each row has a byte of its filter and its pixels')
    t.ok(new Set(rows).size > 16, 'it is not empty')
    t.ok(statSync(file).size <= 200_000, `${basename(file)}: at most 200 KB`)
    t.ok(text.includes(`(screens/${basename(file)})`), `${basename(file)} is shown`)
  }
  t.equal(files.filter(file => decoded(readFileSync(file)).width <= 430).length, 1, 'one of a phone')
  t.equal(files.filter(file => /dark/.test(file)).length, 1, 'one in the dark theme')
})
