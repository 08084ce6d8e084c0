import t from 'tap'
import { bytesOfName, bytePath, nameOfBytes, outputFields, shownName } from '../../../sdk/node/byte-names.js'

/** Every sequence of up to three of these bytes: starts, ends and forbidden ones of UTF-8. */
const BYTES = [0x2f, 0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xff]

const sequences = (): Buffer[] => {
  const found: number[][] = [[]]
  for (const sequence of found) if (sequence.length < 3) found.push(...BYTES.map(byte => [...sequence, byte]))
  return found.map(sequence => Buffer.from(sequence))
}

t.test('a name keeps every sequence of bytes, and no two have the same name', async t => {
  const names = new Set<string>()
  for (const bytes of sequences()) {
    const name = nameOfBytes(bytes)
    names.add(name)
    if (!bytesOfName(name).equals(bytes)) t.fail(`${bytes.toString('hex')} became ${bytesOfName(name).toString('hex')}`)
    if (shownName(name).isWellFormed() !== true) t.fail(`${bytes.toString('hex')} is not shown`)
    const again: unknown = JSON.parse(JSON.stringify(name))
    if (again !== name) t.fail(`${bytes.toString('hex')} does not survive JSON`)
  }
  t.equal(names.size, sequences().length)
})

t.test('a lone surrogate that stands for no byte hides none', async t => {
  for (const code of [0xd800, 0xdbff, 0xdc00, 0xdc0a, 0xdc2f, 0xdc7f, 0xdd00, 0xdfff])
    t.equal(bytesOfName(`a${String.fromCharCode(code)}b`).toString(), 'a\uFFFDb', code.toString(16))
})

t.test('text stays as it is, also where it holds U+FFFD', async t => {
  for (const text of ['a/b', 'n\u00e9', '\u{1F600}', 'kept\uFFFD', '\u{10FFFF}']) {
    t.equal(nameOfBytes(Buffer.from(text)), text)
    t.equal(bytePath(text), text)
  }
  t.strictSame(bytePath(nameOfBytes(Buffer.from('bad\xff', 'latin1'))), Buffer.from('bad\xff', 'latin1'))
  t.equal(shownName(nameOfBytes(Buffer.from('bad\xff', 'latin1'))), 'bad\uFFFD')
  t.strictSame(outputFields({ stdout: Buffer.from('a\0\xfe\0', 'latin1') }).map(shownName), ['a', '\uFFFD', ''])
})
