import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'

const script = await readFile('.ci/run', 'utf8')
const counter = await readFile('.ci/count.mjs', 'utf8')
const runner = await readFile('.ci/test.mjs', 'utf8')

/** The report of the run that this test is part of is not for the programs of the test. */
const { TAP_OUTPUT_FILE: _, ...withoutReport } = process.env

type Tap = typeof t

interface Ended {
  code: number
  last: string
  out: string
}

const ended = (file: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = withoutReport): Promise<Ended> =>
  new Promise(done => {
    const child = execFile(file, args, { cwd, env }, (_, out) =>
      done({ code: child.exitCode ?? 1, out, last: out.trimEnd().split('\n').at(-1) ?? '' }),
    )
  })

t.test('the closing line is counted from what tap wrote', async t => {
  const cases: [report: string, code: number, line: string][] = [
    ['TAP version 14\nok 1 - a\n1..1\n# { total: 12, pass: 12 }\n# time=1ms\n', 0, '12 passed, 0 failed'],
    ['not ok 1 - a\n# { total: 12, pass: 10, fail: 2 }\n', 1, '10 passed, 2 failed'],
    ['ok 1 - a\n# { total: 12, pass: 9, skip: 2, todo: 1 }\n', 0, '9 passed, 0 failed, 3 skipped'],
    ['    # { total: 99, pass: 99 }\n# { total: 1, pass: 1 }\n', 0, '1 passed, 0 failed'],
    ['not ok 1 - a.test.js timed out\n# { total: 5, pass: 5 }\n', 1, '5 passed, 1 failed'],
    ['ok 1 - a\n# { total: 5, pass: 5 }\n', 137, '5 passed, 1 failed'],
    ['ok 1 - a\n    ok 2 - cut off', 1, '0 passed, 1 failed'],
    ['', 0, '0 passed, 1 failed'],
    ['not ok 1 - later # TODO\n# { total: 2, pass: 1, todo: 1 }\n', 0, '1 passed, 0 failed, 1 skipped'],
  ]
  for (const [report, code, line] of cases) {
    const cwd = t.testdir({ 'count.mjs': counter, report })
    t.equal((await ended(process.execPath, ['count.mjs', 'report', String(code)], cwd)).last, line)
  }
})

t.test('files that failed and held alone count as held, and what failed is listed', async t => {
  const report = '# Subtest: a.test.js\n    not ok 1 - late\nnot ok 1 - a.test.js\n# { total: 9, pass: 8, fail: 1 }\n'
  const counted = async (again: string, code: number) =>
    (
      await ended(
        process.execPath,
        ['count.mjs', 'report', String(code)],
        t.testdir({ 'count.mjs': counter, report, 'report.again': again }),
      )
    ).out.trimEnd()
  const listed = 'a.test.js > not ok 1 - late'
  t.equal(await counted('ok 1 - a.test.js\n# { total: 4, pass: 4 }\n', 0), `${listed}\n8 passed, 0 failed`)
  t.match(await counted('not ok 1 - a.test.js\n# { total: 4, pass: 3, fail: 1 }\n', 1), /\n8 passed, 1 failed$/)
  t.match(await counted('ok 1 - a.test.js\n    ok 2 - cut', 1), /\n8 passed, 1 failed$/)
})

t.test('what failed is listed with the tests around it and what tap says of it, each once', async t => {
  const said = '      ---\n      diff: |\n        -2\n        +1\n      ...\n'
  const report =
    '# Subtest: a.test.js\n    # Subtest: first\n        ok 1 - good\n        1..1\n    ok 1 - first\n'
    + `    # Subtest: second\n        not ok 1 - one is two\n${said.replace(/^/gm, '    ')}\n        1..1\n    `
    + `not ok 2 - second\n${said}    1..2\n`
    + 'not ok 1 - a.test.js\n# Subtest: b.test.js\n    not ok 1 - timeout!\n    1..1\nnot ok 2 - b.test.js\nnot '
    + 'ok 3 - c.test.js\n# { total: 3, pass: 1, fail: 2 }\n'
  const cwd = t.testdir({ 'count.mjs': counter, report })
  const lines = (await ended(process.execPath, ['count.mjs', 'report', '1'], cwd)).out.trimEnd().split('\n')
  t.same(
    lines.filter(line => !line.startsWith(' ')),
    [
      'a.test.js > second > not ok 1 - one is two',
      'b.test.js > not ok 1 - timeout!',
      'not ok 3 - c.test.js',
      '1 passed, 3 failed',
    ],
  )
  t.ok(
    lines.some(line => line.trim() === '+1'),
    'with the difference',
  )
})

/** Runs the script in a folder of its own, with every outside program but the shell's replaced. */
const ran = async (t: Pick<Tap, 'testdir'>, programs: { [name: string]: string }): Promise<Ended> => {
  const all: { [name: string]: string } = {
    'dpkg-query': 'printf "install ok installed"',
    'apt-get': 'echo "apt-get $*"',
    sleep: ':',
    node: `exec "${process.execPath}" "$@"`,
    ...programs,
  }
  const cwd = t.testdir({
    '.ci': { run: script, 'count.mjs': counter },
    bin: Object.fromEntries(Object.entries(all).map(([name, body]) => [name, `#!/bin/bash\n${body}\n`])),
  })
  for (const name of Object.keys(all)) await chmod(join(cwd, 'bin', name), 0o755)
  return ended('bash', ['.ci/run'], cwd, {
    ...withoutReport,
    PATH: `${join(cwd, 'bin')}:${process.env.PATH}`,
    CI: 'true',
  })
}

t.test('a good run ends with its count and succeeds', async t => {
  const { code, last } = await ran(t, {
    npm: '[ "$1" = test ] && echo "# { total: 3, pass: 3 }" > "$TAP_OUTPUT_FILE"; exit 0',
  })
  t.same({ code, last }, { code: 0, last: '3 passed, 0 failed' })
})

t.test('a run with a failing test keeps the exit code of the test command', async t => {
  const { code, last } = await ran(t, {
    npm: '[ "$1" = ci ] && exit 0; echo "# { total: 3, pass: 2, fail: 1 }" > "$TAP_OUTPUT_FILE"; exit 7',
  })
  t.same({ code, last }, { code: 7, last: '2 passed, 1 failed' })
})

t.test('a run that tests nothing, and one whose install fails, have failed', async t => {
  t.match(await ran(t, { npm: 'exit 0' }), { code: 1, last: '0 passed, 1 failed' })
  t.match(await ran(t, { npm: '[ "$1" = ci ] && exit 9; echo never' }), { code: 9, last: '0 passed, 1 failed' })
})

t.test('missing packages are installed by root, tried twice, and named to everybody else', async t => {
  const npm = 'echo "# { total: 1, pass: 1 }" > "${TAP_OUTPUT_FILE:-/dev/null}"'
  const apt = 'echo "apt-get $*"; [ "$1" = install ] || [ -e tried ] || { touch tried; exit 100; }'
  const root = await ran(t, { npm, 'dpkg-query': 'exit 1', 'apt-get': apt, id: 'echo 0' })
  t.match(root.out, /apt-get update.*\napt-get update.*\napt-get install .*bubblewrap/)
  t.equal(root.last, '1 passed, 0 failed')
  const person = await ran(t, { npm, 'dpkg-query': 'exit 1', id: 'echo 1000' })
  t.match(person.out, /not root: going on without installing git .*bubblewrap/)
  t.notMatch(person.out, /apt-get/)
})

t.test(
  'npm test runs the files that are not long, or those a word names, and says how long the slowest took',
  async t => {
    const files = [
      ...['plugins/agents', 'plugins/agents-board', 'plugins/agent', 'attack/wall', 'bench/fixtures/one', 'museum/one'],
    ].map(name => `${name}.test.js`)
    const tap = `import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
    const args = process.argv.slice(2)
    const listed = file => JSON.parse(/\\[.*\\]/.exec(readFileSync(file, 'utf8'))[0])
    const together = file => (file.includes('together/') ? listed(file) : [])
    console.log(JSON.stringify(args.map(arg => (together(arg).length ? together(arg) : arg))))
    const bad = process.env.BAD?.split(' ') ?? []
    const alone = args.includes('--jobs=1')
    const fails = file => file.includes('wall') || bad.includes(file) && !alone
    const line = (file, at) => (fails(file) ? 'not ' : '') + 'ok 1 - ' + file + ' # time=' + (at + 1) * 1000 + 'ms\\n'
    let failed = false
    for (const file of args.filter(arg => !arg.startsWith('-'))) {
      const several = together(file)
      mkdirSync('.tap/test-results/' + file + '/..', { recursive: true })
      const ended = several.filter(other => !process.env.HANGS || other !== bad[0])
      const text = several.length ? ended.map(line).join('') : line(file, 0) + '# time=1000ms\\n'
      writeFileSync('.tap/test-results/' + file + '.tap', text)
      failed ||= several.length > ended.length || [file, ...several].some(fails)
    }
    process.exit(failed ? 3 : 0)`
    const tree: { [path: string]: string } = {
      'test.mjs': runner,
      'node_modules/tap/dist/esm/run.mjs': tap,
    }
    for (const file of files) tree[`dist/test/${file}`] = ''
    const cwd = t.testdir()
    for (const [path, text] of Object.entries(tree)) {
      await mkdir(join(cwd, path, '..'), { recursive: true })
      await writeFile(join(cwd, path), text)
    }
    const { SANDBOX_TESTS: __, ...byDefault } = withoutReport
    const run = (...args: string[]) => ended(process.execPath, ['test.mjs', ...args], cwd, byDefault)
    const asked = async (...args: string[]) => JSON.parse((await run(...args)).out.split('\n')[0]!) as unknown
    const others = ['plugins/agent', 'plugins/agents-board', 'plugins/agents'].map(name => `dist/test/${name}.test.js`)
    t.same(await asked(), [others, 'dist/test/attack/wall.test.js'], 'several share a process, and attacks share none')
    t.match(await run(), { out: /^long files left out: 1; SANDBOX_TESTS=all runs them too$/m })
    const everything = await ended(process.execPath, ['test.mjs'], cwd, { ...byDefault, SANDBOX_TESTS: 'all' })
    t.match(everything.out, /museum\/one/)
    t.notMatch(everything.out, /left out/)
    t.match((await run('museum')).out, /museum\/one/)
    t.same(await asked('agents', '--jobs=1'), ['--jobs=1', others.slice(1)])
    t.match(await run('plugins'), {
      code: 0,
      last: /^\d+ s; slowest: plugins\/agents 3\.0, plugins\/agents-board 2\.0, plugins\/agent 1\.0$/,
    })
    t.match(await run('wall'), { code: 3, last: /slowest: attack\/wall 1\.0$/ })
    t.match(await run('nothing'), { code: 1, out: '' })

    const whole = (bad: readonly string[], env = {}) =>
      ended(process.execPath, ['test.mjs'], cwd, {
        ...byDefault,
        ...env,
        BAD: bad.map(name => `dist/test/${name}.test.js`).join(' '),
      })
    const again = /^\["--jobs=1","dist\/test\/plugins\/agent\.test\.js"\]$/m
    await rm(join(cwd, 'dist/test/attack'), { recursive: true })
    for (const env of [{}, { HANGS: '1' }]) {
      const held = await whole(['plugins/agent'], env)
      t.match(held, { code: 0, out: /^failed beside other files, and held alone: plugins\/agent$/m })
      t.match(held.out, again)
    }
    await mkdir(join(cwd, 'dist/test/attack'))
    await writeFile(join(cwd, 'dist/test/attack/wall.test.js'), '')
    t.match(await whole([]), { code: 3, out: /^failed beside other files, and again alone: attack\/wall$/m })
    for (const at of [1, 2, 3, 4, 5, 6]) await writeFile(join(cwd, `dist/test/many-${at}.test.js`), '')
    const many = await whole([1, 2, 3, 4, 5, 6].map(at => `many-${at}`))
    t.match(many, { code: 3 })
    t.notMatch(many.out, /alone/, 'a run in which many files fail is not repeated')
  },
)
