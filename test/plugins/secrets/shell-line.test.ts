import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { shellLine } from '../../../plugins/secrets/env/shell-line.js'

const SHELLS = ['/bin/sh', '/bin/bash'].filter(shell => existsSync(shell))
const VARIABLES: { readonly [name: string]: string } = { A: 'V_A', B: 'V_B' }
const of = (name: string): string => VARIABLES[name]!

/** What a line prints where the references of A and B have these values. */
const printed = (line: string, a: string, b = 'other', shell = '/bin/sh'): string => {
  const rewritten = shellLine(line, of)
  if (rewritten.kind === 'refused') throw new Error(rewritten.why)
  const { stdout, stderr, status } = spawnSync(shell, ['-c', rewritten.text], {
    env: { PATH: '/usr/bin:/bin', V_A: a, V_B: b },
    maxBuffer: 1 << 24,
  })
  if (status !== 0) throw new Error(`${rewritten.text}: ${stderr}`)
  return stdout.toString()
}

/** Lines that print a value, each with what stands around it. */
const LINES: readonly [line: string, around: (value: string) => string][] = [
  ['printf %s {{secret:A}}', value => value],
  ['printf %s pre{{secret:A}}post', value => `pre${value}post`],
  ['printf %s "{{secret:A}}"', value => value],
  ['printf %s "x y {{secret:A}} z"', value => `x y ${value} z`],
  ["printf %s '{{secret:A}}'", value => value],
  ["printf %s 'x \"$y {{secret:A}} z\\'", value => `x "$y ${value} z\\`],
  ['X={{secret:A}}; printf %s "$X"', value => value],
  ['X={{secret:A}} sh -c \'printf %s "$X"\'', value => value],
  ['printf %s "$(printf "%s." {{secret:A}})"', value => `${value}.`],
  ['printf %s "$(printf "%s." "$(printf %s. \'{{secret:A}}\')")"', value => `${value}..`],
  ['(printf %s {{secret:A}})', value => value],
  ['if true; then printf %s "\\"{{secret:A}}"; fi # it\'s {{secret:A}}', value => `"${value}`],
  ['printf %s "\\{{secret:A}}"', value => `\\${value}`],
  ['cat <<END\n"{{secret:A}}"\nEND', value => `"${value}"\n`],
  [
    'cat <<-END\n\t{{secret:A}} $((1 + 1)) $(printf \'"\')\n\tEND\nprintf %s "{{secret:B}}"',
    value => `${value} 2 "\nother`,
  ],
  ['cat <<A; cat <<B\n{{secret:A}}\nA\n{{secret:B}}\nB', value => `${value}\nother\n`],
  ['case {{secret:A}} in {{secret:A}}) printf %s "{{secret:A}}";; *) exit 3;; esac', value => value],
  ['f() { printf %s "$1"; }; f {{secret:A}}', value => value],
  ['printf %s ${HOME:-} {{secret:A}}', value => value],
  ['printf %s "$((2 * (1 + 2)))" {{secret:A}}', value => `6${value}`],
  ['printf %s `printf 1` {{secret:A}}', value => `1${value}`],
]

t.test('a value arrives as it is wherever its reference stands, in every shell', async t => {
  const hard = [
    'a b',
    '$HOME',
    '`id`',
    '$(id)',
    '*',
    '~',
    "it's",
    '"',
    '\\',
    'a\\',
    '\n',
    'a\n\nb\n',
    '#x',
    '-n',
    '!!',
    '{{secret:B}}',
  ]
  for (const shell of SHELLS)
    for (const [line, around] of LINES)
      for (const value of hard) t.equal(printed(line, value, undefined, shell), around(value), `${shell}: ${line}`)
})

const anything = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.string({
    unit: fc.constantFrom('"', "'", '\\', '$', '`', '\n', '#', ' ', '(', '{', '}', '!', '\u0001', 'é'),
    maxLength: 40,
  }),
)
const value = anything.map(text => text.toWellFormed().replaceAll('\0', ''))

t.test('values of any bytes arrive as they are', async t => {
  fc.assert(
    fc.property(fc.constantFrom(...LINES), fc.constantFrom(...SHELLS), value, ([line, around], shell, text) => {
      t.equal(printed(line, text, undefined, shell), around(text))
    }),
    { numRuns: 1000, seed: 11 },
  )
})

t.test('the words around references are read by the shell as they were', async t => {
  const word = fc.constantFrom(
    'a',
    ' b',
    "'c d'",
    '"e $HOME"',
    '\\ ',
    '$(printf f)',
    '"$(printf "g h")"',
    '{{secret:A}}',
    '"{{secret:B}}"',
    "'{{secret:A}}'",
  )
  fc.assert(
    fc.property(fc.array(word, { maxLength: 8 }), words => {
      const line = `printf '[%s]' x${words.join('')}`
      const plain = line.replaceAll(/\{\{secret:.\}\}/g, 'safe')
      t.equal(
        printed(line, 'safe', 'safe'),
        spawnSync('/bin/sh', ['-c', plain], { env: { PATH: '/usr/bin:/bin' } }).stdout.toString(),
      )
    }),
    { numRuns: 300, seed: 11 },
  )
})

t.test('no value is in the line that the shell is given', async t => {
  const line = shellLine("curl -H 'authorization: Bearer {{secret:A}}' {{secret:B}}", of)
  t.same(line, { kind: 'line', text: 'curl -H \'authorization: Bearer \'"${V_A}"\'\' "${V_B}"' })
})

t.test('where a variable would mean something else the line is refused, and the place is named', async t => {
  const refused: [line: string, where: RegExp][] = [
    ["cat <<'END'\n{{secret:A}}\nEND", /quoted here-document/],
    ['cat <<\\END\n{{secret:A}}\nEND', /quoted here-document/],
    ['cat <<"E D"\n{{secret:A}}\nE D', /quoted here-document/],
    ['cat <<{{secret:A}}\nx\n', /end of a here-document/],
    ['echo $(({{secret:A}} + 1))', /\$\(\( \)\)/],
    ['(( {{secret:A}} ))', /\(\( \)\)/],
    ['echo `cat {{secret:A}}`', /backticks/],
    ['echo "`cat {{secret:A}}`"', /backticks/],
    ['echo ${X:-{{secret:A}}}', /\$\{ \}/],
    ['echo ${{secret:A}}', /after a \$/],
    ['echo "${{secret:A}}"', /after a \$/],
    ['echo \\{{secret:A}}', /backslash/],
    ["echo $'{{secret:A}}'", /\$' '/],
    ["echo $'\\'' {{secret:A}}", /\$' '/],
    ['echo $(case x in x) echo {{secret:A}};; esac)', /case/],
  ]
  for (const [line, where] of refused) t.match(shellLine(line, of), { kind: 'refused', why: where }, line)
})

t.test('a line that ends inside a quote is left to the shell', async t => {
  for (const line of [
    'echo "{{secret:A}}',
    "echo '{{secret:A}}",
    'cat <<END\n{{secret:A}}',
    'echo $(x {{secret:A}}',
    'x <<',
  ])
    t.match(shellLine(line, of), { kind: 'line' }, line)
})
