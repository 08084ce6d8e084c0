import { execFile, execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { wordsOf } from '../../../sdk/cli/verbs/completion.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { PATH, sandbox } from './cli-process.js'

/** Runs a check for every verb, two at a time. */
const everyVerb = async (check: (name: string) => Promise<void>): Promise<void> => {
  const left = VERBS.map(({ name }) => name)
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) await check(name)
  }
  await Promise.all([work(), work()])
}

const examplesOf = (help: string): string[] =>
  help
    .split('examples:\n')[1]!
    .trimEnd()
    .split('\n')
    .map(line => line.trim())

t.test('the help of every verb fits 40 columns, and its examples are commands of the program', async t => {
  await everyVerb(async name => {
    const { code, out } = await sandbox([name, '--help'], { env: { COLUMNS: '40' } })
    t.equal(code, 0)
    const [wide] = out
      .split('\nexamples:\n')
      .map(part => part.split('\n').filter(line => line.length > 40 && line.trim().includes(' ')))
    t.same(wide, [], name)
    for (const example of examplesOf(out)) {
      t.match(example, new RegExp(`^sandbox ${name}( |$)`))
      const words = execFileSync('bash', ['-c', `printf '%s\\0' ${example.replace(/ [<>] \S+$/, '')}`], {
        encoding: 'utf8',
      })
        .split('\0')
        .slice(1, -1)
      const verb = VERBS.find(verb => verb.name === name)!
      for (const option of words.filter(word => /^-./.test(word)))
        t.ok(verb.flags[option.replace(/^--?/, '')], `${example}: ${option}`)
    }
  })
  const help = await sandbox(['--help'], { env: { COLUMNS: '40' } })
  t.same(
    help.out.split('\n').filter(line => line.length > 40),
    [],
  )
})

t.test('an example with its options is parsed', async t => {
  await Promise.all(
    [
      ['token', 'create', '--label', 'ci', '--scope', 'read', '--expires', '30d'],
      ['fork', 'c-1', 'try it', '--before', '4', '--as', 'x'],
    ].map(async args => t.match(await sandbox([...args, '--help']), { code: 0, out: /^usage: / })),
  )
})

t.test('the subcommands of a verb are those of its usage', t => {
  t.same(wordsOf({ usage: '[list | open NAME URL | back|forward NAME | only on|off]' }), [
    'list',
    'open',
    'back',
    'forward',
    'only',
  ])
  t.same(wordsOf({ usage: '[FILE] | list | restore FILE [--check]' }), ['list', 'restore'])
  t.same(wordsOf({ usage: 'bash|zsh|fish' }), ['bash', 'zsh', 'fish'])
  t.same(wordsOf({ usage: '[CONVERSATION] "TEXT"' }), [])
  t.end()
})

t.test('bash completes verbs, their words and options, and the values of options', async t => {
  const script = join(t.testdir(), 'completion')
  writeFileSync(script, (await sandbox(['completion', 'bash'])).out)
  const complete = (...words: string[]): Promise<string[]> =>
    new Promise((resolve, reject) => {
      const command =
        `source "$0"; COMP_WORDS=(sandbox "$@"); COMP_CWORD=$#; _sandbox; printf '%s\\n' ` + `"\${COMPREPLY[@]}"`
      execFile(
        'bash',
        ['--noprofile', '--norc', '-uc', command, script, ...words],
        { encoding: 'utf8', env: { PATH } },
        (error, out) => (error ? reject(error) : resolve(out.split('\n').filter(Boolean))),
      )
    })
  t.same(await complete('tr'), ['transcript'])
  t.same(await complete('run', '--mo'), ['--model', '--mode'])
  t.same(await complete('run', '--mode', 'p'), ['plan'])
  t.same(await complete('token', 'c'), ['create'])
  t.same(await complete('--json', '--url', 'http://x', 'member', ''), [], 'no verb has this name')
  t.same(await complete('--json', '--url', 'http://x', 'members', 'in'), ['invite'])
  t.same(await complete('run', '--attach', ''), [], 'file names are left to the shell')
})

t.test('the completion script of every shell has every verb with its options, and the shell can parse it', async t => {
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, out } = await sandbox(['completion', shell])
    t.equal(code, 0)
    for (const { name, flags } of VERBS) {
      const line = out
        .split('\n')
        .filter(line => new RegExp(`(^ +|from )${name}\\b`).test(line))
        .join('\n')
      for (const flag of Object.keys(flags))
        t.ok(line.includes(shell === 'fish' ? `-l ${flag} ` : `--${flag}`), `${shell}: ${name} --${flag}`)
    }
    const reading = await new Promise<string>(resolve => {
      const child = execFile(shell, ['-n'], (error, _, err) =>
        resolve((error as NodeJS.ErrnoException | null)?.code === 'ENOENT' ? '' : err),
      )
      child.stdin!.on('error', () => {}).end(out)
    })
    t.equal(reading, '', shell)
  }
  t.same(await sandbox(['completion', 'tcsh']), {
    code: 2,
    out: '',
    err: 'sandbox: expected completion bash, zsh or fish, found tcsh\n',
  })
})
