import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { wordsOf } from '../../../sdk/cli/verbs/completion.js'
import { EXIT_CODES } from '../../../sdk/cli/exit-codes.js'
import { VERBS } from '../../../sdk/cli/program.js'
import { root } from '../../support/daemon.js'
import { sandbox } from './cli-process.js'

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

t.test('the exit codes stand on one page, which the general help names', async t => {
  const { code, out } = await sandbox(['help', 'exit-codes'])
  t.equal(code, 0)
  for (const each of ['0', '1', '2', '3', '4', '5']) t.match(out, new RegExp(`^ +${each} +\\w+`, 'm'))
  t.match((await sandbox(['--help'])).out, /sandbox help exit-codes/)
  const page = readFileSync(join(root, '..', 'sdk', 'cli', 'README.md'), 'utf8')
  for (const [each, meaning] of EXIT_CODES)
    t.ok(page.includes(`| ${each} | ${meaning} |`), `the page says what ${each} means`)
})

t.test('a mistyped verb, group, verb of a group or option is answered with the one that was meant', async t => {
  const meant = async (args: readonly string[], sentence: RegExp) =>
    t.match(await sandbox(args), { code: 2, err: sentence }, args.join(' '))
  await meant(['transcrpt'], /no verb transcrpt; did you mean transcript\?/)
  await meant(['aprovals'], /no verb aprovals; did you mean approvals\?/)
  await meant(['run', 'x', '--jsn'], /unknown option '--jsn'; did you mean --json\?/)
  await meant(['qwertyuiop'], /no verb qwertyuiop; sandbox --help/)
})
