import fc from 'fast-check'
import t from 'tap'
import { editEnvText, readEnvText } from '../../../plugins/secrets/env/env-text.js'

t.test('comments, export, quotes and values of several lines are read', async t => {
  const text = [
    '\ufeff# a comment',
    'PLAIN=one two # and a comment',
    'HASH=a#b',
    ' export EXPORTED = yes ',
    "SINGLE='a $b \\n # c'",
    'DOUBLE="a\\n\\"b\\" \\$c \\x" # why',
    'LINES="-----BEGIN',
    'x=y',
    '-----END"',
    '',
    'EMPTY=',
    'COMMENTED= # nothing',
    'URL=postgres://u:p@h/d?x=y',
    'odd-name=1\r',
  ].join('\n')
  t.same(
    readEnvText(text).map(({ name, value }) => [name, value]),
    [
      ['PLAIN', 'one two'],
      ['HASH', 'a#b'],
      ['EXPORTED', 'yes'],
      ['SINGLE', 'a $b \\n # c'],
      ['DOUBLE', 'a\n"b" $c \\x'],
      ['LINES', '-----BEGIN\nx=y\n-----END'],
      ['EMPTY', ''],
      ['COMMENTED', ''],
      ['URL', 'postgres://u:p@h/d?x=y'],
      ['odd-name', '1'],
    ],
  )
})

t.test('an unreadable line is refused with its number', async t => {
  for (const [text, line] of [
    ['A=1\nwhat is this\n', 2],
    ['A=1\n\nB="open\nC=2\n', 3],
    ["A='x' y\n", 1],
    ['A=1\n=2\n', 2],
    ['A=1\nB=x\0y', 2],
    ['export\n', 1],
  ] as const)
    t.throws(() => readEnvText(text), { message: new RegExp(`^line ${line}: expected `) }, JSON.stringify(text))
})

const name = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,5}$/)
const value = fc
  .oneof(
    fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
    fc.string({
      unit: fc.constantFrom('"', "'", '\\', '$', '\n', '\r', '#', ' ', '=', 'n'),
      minLength: 1,
      maxLength: 40,
    }),
  )
  .map(text => text.toWellFormed().replaceAll('\0', ' '))

t.test('any value that is written is read back', async t => {
  fc.assert(
    fc.property(
      fc.dictionary(name, value, { maxKeys: 6 }),
      fc.dictionary(name, value, { maxKeys: 6 }),
      (first, second) => {
        const text = editEnvText('# mine\nexport OWN=1', new Map(Object.entries(first)), new Set())
        const next = editEnvText(text, new Map(Object.entries(second)), new Set())
        t.same(Object.fromEntries(readEnvText(next).map(each => [each.name, each.value])), {
          OWN: '1',
          ...first,
          ...second,
        })
        t.ok(next.startsWith('# mine\nexport OWN='))
      },
    ),
    { numRuns: 1000, seed: 5 },
  )
})

t.test('an edit changes its names only, and doubles of them go', async t => {
  const text = '# top\nA=1\n\nexport B=2 # b\nA=3\nC=4'
  t.equal(editEnvText(text, new Map([['A', 'new one']]), new Set(['C'])), "# top\n\nexport B=2 # b\nA='new one'\n")
  t.equal(editEnvText(text, new Map([['D', '5']]), new Set()), `${text}\nD=5\n`)
  t.equal(editEnvText('export B=2\n', new Map([['B', '9']]), new Set()), 'export B=9\n')
})
