import t from 'tap'
import { appended, bytesIn, fileFormOf, rewritten } from '../../../../plugins/agent/tools/file-form.js'
import { replaced, replacedParts } from '../../../../plugins/agent/tools/replaced.js'

const BOM = '\uFEFF'
const ENDS = { plain: '\n', windows: '\r\n' } as const

/** Edits as a model sends them, with plain line ends: the file before, and after. */
const EDITS: { readonly [what: string]: readonly [before: string, old: string, next: string, after: string] } = {
  'a word': ['one\ntwo\n', 'two', '2', 'one\n2\n'],
  'lines for lines': ['one\ntwo\nthree\n', 'one\ntwo', 'ONE\nTWO', 'ONE\nTWO\nthree\n'],
  'a line that becomes two': ['one\ntwo\n', 'two', 'two\nthree', 'one\ntwo\nthree\n'],
  'two lines that become one': ['one\ntwo\nthree\n', 'one\ntwo\n', 'both\n', 'both\nthree\n'],
  'the end of a file without a last line end': ['one\ntwo', 'one\ntwo', 'one\n2', 'one\n2'],
  'blank lines': ['one\n\n\ntwo\n', 'one\n\n\ntwo', 'one\n\ntwo', 'one\n\ntwo\n'],
  'nothing in its place': ['one\ntwo\nthree\n', 'two\n', '', 'one\nthree\n'],
}

for (const [name, eol] of Object.entries(ENDS))
  for (const mark of ['', BOM])
    for (const [what, [before, old, next, after]] of Object.entries(EDITS))
      t.test(`${what} (${name}${mark && ', with a byte order mark'})`, async t => {
        const inFile = (text: string) => mark + text.replaceAll('\n', eol)
        const { text, form } = fileFormOf(Buffer.from(inFile(before)), 'f')
        // As a model sends it, and as it stands in the file.
        for (const given of [old, old.replaceAll('\n', eol)]) {
          const edited = replaced(text, 'f', { old: given, next, all: false }, form)
          t.equal(bytesIn(edited.text, form).toString(), inFile(after))
        }
      })

t.test('each place of a file with both kinds of line ends keeps its own', async t => {
  const { text, form } = fileFormOf(Buffer.from('a\r\nb\r\nc\nd\ne\r\n'), 'f')
  t.equal(form.eol, '\r\n')
  const after = (old: string, next: string) => replaced(text, 'f', { old, next, all: false }, form).text
  t.equal(after('a\nb', '1\n2\n3'), '1\r\n2\r\n3\r\nc\nd\ne\r\n')
  t.equal(after('c\nd', '1\n2\n3'), 'a\r\nb\r\n1\n2\n3\ne\r\n')
  t.equal(after('e', '1\n2'), 'a\r\nb\r\nc\nd\n1\r\n2\r\n')
})

t.test('blanks around lines may differ where exactly one place fits', async t => {
  const file = 'if (a) {\n\tdo(1)\n\tdo(2)\n}\nif (b) {\n\tdo(3)  \n}\n'
  const { text, form } = fileFormOf(Buffer.from(file), 'f')
  const edit = (old: string, next: string) => replaced(text, 'f', { old, next, all: false }, form)
  const deep = edit('  do(1)\n  do(2)', '  do(1)\n  if (c) {\n    do(4)\n  }')
  t.equal(deep.text, 'if (a) {\n\tdo(1)\n\tif (c) {\n\t  do(4)\n\t}\n}\nif (b) {\n\tdo(3)  \n}\n')
  t.match(deep.found, /blanks/, 'it says so')
  t.equal(edit('do(3)\n}\n', 'do(5)\n}\n').text, 'if (a) {\n\tdo(1)\n\tdo(2)\n}\nif (b) {\n\tdo(5)\n}\n')
  t.throws(() => edit('  }', '  ]'), { message: /2 times with other blanks or line ends, not once; include more/ })
  t.throws(() => edit('do(7)', 'do(8)'), { message: /0 times, not once; read the file again/ })
  t.throws(() => edit('   \n', 'x'), { message: /0 times/ })
})

t.test('every occurrence is replaced if that is asked, whatever the line ends', async t => {
  const { text, form } = fileFormOf(Buffer.from('a\r\nb\r\na\r\nb\r\n'), 'f')
  t.equal(replaced(text, 'f', { old: 'a\nb\n', next: 'x\n', all: true }, form).text, 'x\r\nx\r\n')
  t.throws(() => replaced(text, 'f', { old: 'a\nb\n', next: 'x\n', all: false }, form), {
    message: /2 times, not once/,
  })
})

t.test('a file that is written anew or appended to keeps its form', async t => {
  const windows = Buffer.from(`${BOM}one\r\n`)
  t.equal(rewritten('a\nb\n', windows).toString(), `${BOM}a\r\nb\r\n`)
  t.equal(rewritten(`${BOM}a\n`, windows).toString(), `${BOM}a\r\n`)
  t.equal(rewritten('a\r\nb\n', Buffer.from('one\n')).toString(), 'a\r\nb\n', 'line ends that are given stay')
  t.equal(rewritten('a\n', Buffer.from([0, 1])).toString(), 'a\n')
  t.equal(rewritten('a\n', undefined).toString(), 'a\n')
  t.equal(appended('two\n', windows, 'f').toString(), `${BOM}one\r\ntwo\r\n`)
  t.equal(appended('two\n', undefined, 'f').toString(), 'two\n')
  t.throws(() => appended('x', Buffer.from([0, 1]), 'f'), { message: 'f is binary and cannot be edited' })
})

t.test('replacements that would make a file too large to be read again are refused', async t => {
  const { text, form } = fileFormOf(Buffer.from('aa'), 'f')
  const doubled = Array.from({ length: 25 }, () => ({ old: 'a', new: 'aa', all: true }))
  t.throws(() => replacedParts(text, 'f', doubled, form), { reason: 'too-large', message: /nothing was changed$/ })
  const large = [{ old: 'a', new: 'b'.repeat(4_000_000), all: true }]
  t.throws(() => replacedParts('aaaaa', 'f', large, form), { reason: 'too-large', message: /20000000 characters/ })
})
