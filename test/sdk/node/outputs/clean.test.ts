import { readdirSync, readFileSync } from 'node:fs'
import t from 'tap'
import { CATALOGUE, chosenCleaners } from '../../../../sdk/node/outputs/catalogue.js'
import { cleanOutput } from '../../../../sdk/node/outputs/clean.js'
import { nameOfCommand, programsOf } from '../../../../sdk/node/outputs/commands.js'
import { withoutEscapes } from '../../../../sdk/node/outputs/terminal-lines.js'

const FOLDER = new URL('../../../../../test/fixtures/outputs/', import.meta.url)
const ALL = new Set(CATALOGUE.map(({ id }) => id))
const recorded = (name: string): string => readFileSync(new URL(`${name}.txt`, FOLDER), 'utf8')
const cleaned = (output: string, command: string, ids: ReadonlySet<string> = ALL): string =>
  cleanOutput(output, programsOf(command), ids).text

/**
 * Outputs of real programs: the command, the lines of which nothing may be lost, and how much of it may stay at most.
 */
const RECORDED: readonly (readonly [name: string, command: string, most: number, ...told: string[]])[] = [
  [
    'node-test',
    'node --test',
    0.4,
    'not ok 61 - divides',
    "error: 'ENOENT: no such file, open config.json'",
    '# pass 60',
    '# fail 2',
  ],
  ['node-spec', 'npm test', 0.8, '✖ divides', 'Error: ENOENT: no such file, open config.json', 'ℹ pass 60', 'ℹ fail 2'],
  [
    'pytest',
    'pytest -v',
    0.5,
    'FAILED test_math.py::test_divides',
    'E       assert (7 // 2) == 4',
    "ValueError: invalid literal for rate: 'abc'",
    '2 failed, 60 passed',
  ],
  ['pytest-quiet', 'pytest -q', 0.9, 'E       assert (7 // 2) == 4', '2 failed, 60 passed'],
  [
    'go-test',
    'go test -v ./...',
    0.3,
    '--- FAIL: TestDivide',
    'sums_test.go:4: 7/2 = 3, want 4',
    'FAIL\texample.com/sums',
  ],
  ['go-missing', 'go build ./...', 1, 'no required module provides package example.com/nothing/here'],
  [
    'cargo-test',
    'cargo test',
    0.6,
    'test tests::divides ... FAILED',
    "thread 'tests::divides'",
    'test result: FAILED. 40 passed; 1 failed',
  ],
  ['make', 'make -k', 0.4, 'main.c:1:', 'implicit declaration of function', 'make: *** [Makefile:4: main.o] Error 1'],
  ['cmake', 'cmake --build build', 0.5, 'implicit declaration of function', 'ninja: build stopped', 'Error 1'],
  [
    'tsc',
    'tsc -p .',
    1,
    "error TS2304: Cannot find name 'missing'.",
    "error TS2322: Type 'string' is not assignable to type 'number'.",
    'Found 3 errors',
  ],
  ['tsc-trace', 'tsc --traceResolution', 0.7],
  ['oxfmt', 'oxfmt --check .', 1, 'Format issues found'],
  ['npm-install', 'npm install', 0.1, 'added 47 packages'],
  ['npm-missing', 'npm install', 1, 'npm error code E404', 'npm error 404'],
  ['pip', 'pip install requests', 0.3, 'Successfully installed'],
  ['pip-retries', 'pip install requests', 1, 'WARNING: Retrying', 'Successfully installed'],
  [
    'pip-missing',
    'pip install requests==99.0',
    1,
    'ERROR: Could not find a version',
    'ERROR: No matching distribution found',
  ],
  ['apt', 'apt-get install -y hello', 0.6, '1 newly installed'],
  ['apt-missing', 'apt-get install -y x', 1, 'E: Unable to locate package no-such-package-here'],
  ['git-clone', 'git clone file:///x', 0.1, "Cloning into 'copy'"],
  ['git-push', 'git push', 0.1, 'HEAD -> main'],
  ['git-rejected', 'git push', 0.8, '! [rejected]', 'error: failed to push some refs'],
  ['git-merge-conflict', 'git merge b', 1, 'CONFLICT (content): Merge conflict in a.txt', 'Automatic merge failed'],
  ['curl', 'curl -o x http://x', 1, 'curl: (7) Failed to connect'],
  ['wget', 'wget http://x', 0.2, '404 File not found', 'ERROR 404: File not found.'],
  ['dmesg', 'dmesg', 1, 'DMI not present or invalid.'],
]

/** Lines that tell of errors, as programs write them; each is put in the middle of every output. */
const ERRORS = [
  'npm http fetch GET 404 https://packages.example/nothing 120ms',
  'npm warn deprecated fails-often@1.0.0: it is vulnerable to CVE-1',
  'ok 7 - reads # FAILED to clean up: EACCES',
  '  ✓ but then crashed with SIGSEGV (12 ms)',
  'PASS src/a.test.ts: cannot find module ./b',
  'test a ... ok, but panicked at src/lib.rs:3',
  '   Compiling broken v0.1.0: error[E0425]: cannot find value `x`',
  '--- PASS: TestA: fatal error: all goroutines are asleep',
  'ok  \texample.com/a\t0.01s [no tests: build failed]',
  'go: downloading example.com/x v1.0.0: 403 Forbidden',
  'Collecting thing: ERROR: no such option',
  'Downloading x.whl: connection timed out',
  'Get:3 http://packages.example x: 404  Not Found',
  'Unpacking x: dpkg: error processing archive (No space left on device)',
  'Setting up x: could not be configured',
  'remote: Compressing objects: fatal: out of memory',
  'Receiving objects:  42% (3/7), fatal: the remote end hung up unexpectedly',
  'hint: Updates were rejected because the tip is behind',
  '[ 12%] Building C object main.c.o: undefined reference to `g`',
  '[3/9] Compiling a.c FAILED',
  'make[2]: Leaving directory, error 2',
  'src/a.ts 12ms (unchanged): SyntaxError: Unexpected token',
  '#12 sha256:abc: failed to solve: exit code: 2',
  'a1b2c3d4e5f6: Pull complete: unauthorized',
  '2026-11-29 10:00:00 DEBUG connection refused',
  '{"level":20,"msg":"unhandled exception"}',
  '[   12.345678] BUG: kernel NULL pointer, Oops: segmentation fault',
  '[=====>      ] 45% aborted',
  ' 45% ████████ write error: disk full, no space left',
  '⠙ installing: permission denied',
  '\x1b[2K\x1b[1A\x1b[31merror\x1b[39m: red and drawn over',
  'aws_instance.a: Still creating... [10s elapsed] Error: quota',
  'Traceback (most recent call last):',
  'java.lang.NullPointerException: x',
  'TypeError: x is not a function',
  'E   AssertionError: assert 1 == 2',
  'Killed',
  'Segmentation fault (core dumped)',
  'src/main.c:3:5: warning: unused variable ‘x’, did you mean ‘y’?',
  'Error: Process completed with exit code 1.',
]

t.test('every recorded output gets shorter, and keeps what tells how it ended', async t => {
  const names = readdirSync(FOLDER).map(name => name.replace(/\.txt$/, ''))
  t.same(names.toSorted(), [...RECORDED.map(([name]) => name), 'git-pull-conflict'].toSorted(), 'each is compared')
  for (const [name, command, most, ...told] of RECORDED) {
    const output = recorded(name)
    const text = cleaned(output, command)
    t.ok(text.length <= output.length * most, `${name}: ${text.length} of ${output.length}`)
    for (const line of told) t.ok(text.includes(line), `${name} keeps ${line}`)
  }
})

t.test(
  'a line that tells of an error is in the shortened output, wherever it stands and however it is drawn',
  async t => {
    const lost: string[] = []
    const draws: ((line: string) => string)[] = [
      line => `\n${line}\n`,
      line => `\n      ${line}\r\n`,
      line => `\n${line}\r`,
      line => `\n 12%\r${line}\r 90%\r100%\n`,
      line => `\n\x1b[1m\x1b[33m${line}\x1b[0m\x1b[K\n`,
      line => `\n${line}\n${line}\n${line}\n`,
    ]
    let tried = 0
    for (const [name, command] of RECORDED) {
      const output = recorded(name)
      const lines = output.split('\n')
      for (const [nth, error] of ERRORS.entries()) {
        const at = Math.floor((lines.length * nth) / ERRORS.length)
        const draw = draws[(nth + name.length) % draws.length]!
        const text = cleaned(lines.slice(0, at).join('\n') + draw(error) + lines.slice(at).join('\n'), command)
        tried++
        if (!text.includes(withoutEscapes(error).trim())) lost.push(`${name}: ${error}`)
      }
    }
    t.same(lost, [])
    t.equal(tried, RECORDED.length * ERRORS.length)
  },
)

t.test('lines of a recorded output that name an error, a failure or a position are all kept', async t => {
  const words =
    /error|fail|fatal|panic|exception|traceback|^E {3}|cannot|unable|:\d+:\d+|\*\*\*|CONFLICT|rejected|✖|not ok/i
  for (const [name, command] of RECORDED) {
    const output = recorded(name)
    const text = cleaned(output, command)
    const told = withoutEscapes(output)
      .split(/[\r\n]+/)
      .filter(line => words.test(line) && !/^(?:\[\S+\] )?\S*cc /.test(line))
    // Progress counts and names of passing tests may hold such words, and are kept as well.
    for (const line of new Set(told)) t.ok(text.includes(line.trimEnd()), `${name}: ${line}`)
  }
})

t.test('what shows files is never changed, and a filter at the end of a command does not make it so', async t => {
  const output = recorded('npm-install')
  for (const command of [
    'cat a.txt',
    'cd x && cat a.txt',
    'npm test | grep GET',
    'git diff',
    'git -c a=b log',
    'FOO=1 sed -n 1p a',
    'npm i; head a',
  ])
    t.equal(cleaned(output, command), output, command)
  for (const command of [
    'npm i 2>&1 | tail -50',
    'timeout 60 npm i | tee log',
    '(cd x; npm install)',
    'sudo -n npm i',
    'sh -c "npm i"',
  ])
    t.ok(cleaned(output, command).length < output.length / 4, command)
})

t.test('equal lines in a row are counted, and short ones stay', t => {
  const line = 'the connection to the database is not there yet'
  t.equal(cleaned(`${`${line}\n`.repeat(40)}up\n`, './start'), `${line}\n[the line above 39 more times]\nup\n`)
  t.equal(cleaned('a\na\na\n', './start'), 'a\na\na\n')
  t.equal(cleaned('a\n\n\n\n\nb\n', './start'), 'a\n\nb\n')
  t.end()
})

t.test('a line among progress that has a failed test stays', t => {
  for (const dots of ['tests/a.py ....F.... [ 40%]', '.......E [ 40%]', 'F....... [ 40%]', '........FF [ 40%]'])
    t.match(cleaned(`${dots}\n.......... [ 80%]\n.......... [100%]\n`, 'pytest -q'), dots)
  t.end()
})

t.test('notes of a passing test that do not end hide nothing after them, and braces of data stay', t => {
  const passed = '  ok 1 - reads\n    ---\n    duration_ms: 1\n'
  t.equal(cleaned(`${passed}the port is 4040\n`, 'node --test'), 'the port is 4040\n')
  t.equal(cleaned(`${passed}    ...\nthe port is 4040\n`, 'node --test'), 'the port is 4040\n')
  t.equal(cleaned('ok 1\n---\nsecond document\n', 'node a.js'), '---\nsecond document\n')
  const data = `${JSON.stringify({ a: { b: [1] } }, undefined, 2)}\n`
  t.equal(cleaned(data, 'node a.js'), data)
  const nested = 'ok 1 - a {\n    ok 1 - b {\n        ok 1 - c\n    }\n}\nend\n'
  t.equal(cleaned(nested, 'tap'), 'end\n')
  t.end()
})

t.test('the name of a command holds none of its arguments', t => {
  const named = (command: string) => nameOfCommand(programsOf(command))
  t.equal(named('cd x && FOO=1 npm install left-pad'), 'npm install')
  t.equal(named('git -C . clone https://x.example/y'), 'git')
  for (const command of ['mysqldump -p hunter', 'rg customer', './report secret', 'make target', 'curl -u ada x'])
    t.notMatch(named(command), ' ', command)
  t.end()
})

t.test('lines that were drawn over show what stood there in the end', t => {
  const bars = Array.from({ length: 100 }, (_, n) => `\r[${'='.repeat(n / 4)}>${' '.repeat(25 - n / 4)}] ${n}%`).join(
    '',
  )
  t.equal(cleaned(`begin\n${bars}\rall there\nend\n`, './get'), 'begin\nall there\nend\n')
  t.equal(cleaned('one\r\ntwo\r\n', './get'), 'one\ntwo\n')
  t.equal(cleaned('10%\n20%\n30%\nerror: cut\n40%\n', './get'), '30%\nerror: cut\n40%\n')
  const own = cleanOutput('10%\n20%\r30%\n40%\n', undefined, ALL)
  t.equal(own.text, '10%\n30%\n40%\n', 'a program of the agent may print them as data')
  t.end()
})

t.test('steps of containers, clusters and logs are left out, and what failed is not', t => {
  const layers = Array.from({ length: 9 }, (_, n) => `a1b2c3d4e5f${n}: Pull complete`).join('\n')
  const built = `#5 sha256:abc 12MB / 30MB\n#5 extracting sha256:abc 1.2s\n#6 [2/3] RUN make\n#6 1.2 make: all\n`
  t.equal(cleaned(`${layers}\n${built}`, 'docker build .'), '#6 [2/3] RUN make\n#6 1.2 make: all\n')
  const copied =
    'Trying to pull docker.io/x...\nCopying blob 1a2b done\nWriting manifest to image destination\n1a2b3c\n'
  t.equal(cleaned(copied, 'podman pull x'), '1a2b3c\n')
  t.equal(cleaned('a.b: Refreshing state... [id=1]\nPlan: 1 to add\n', 'terraform plan'), 'Plan: 1 to add\n')
  const log = Array.from({ length: 50 }, (_, n) => `2026-11-29 10:00:${n + 10} INFO served ${n} requests`).join('\n')
  const said = cleaned(`${log}\n2026-11-29 10:01:00 INFO stopped\n`, 'journalctl -u x')
  t.match(said, /served 0 requests[^]*served 2 requests\n[^]*INFO stopped\n$/)
  t.notMatch(said, 'served 3 requests')
  t.equal(cleaned(log, './my-report'), log, 'an unknown program may print data with times')
  t.end()
})

t.test('no text holds the daemon up, and a line that is too long to look at stays', t => {
  const pieces = [
    'a-/',
    'x.',
    '0%=',
    '\x1b]',
    '\x1b[0',
    ' ',
    '\b',
    '400 a',
    'cc -c ',
    '\r12% ======',
    'ok 1',
    '  ^',
    '[1/2] ',
  ]
  for (const [one, other] of pieces.flatMap(one => pieces.map(other => [one, other] as const)))
    for (const line of [(one + other).repeat(40_000), `${`${(one + other).repeat(60)}\n`.repeat(500)}`]) {
      const began = performance.now()
      cleaned(line, 'npm test')
      t.ok(performance.now() - began < 3_000, `${JSON.stringify(one + other)}: ${performance.now() - began}`)
    }
  const long = `npm http fetch GET 200 ${'x'.repeat(2_000)}`
  t.equal(cleaned(`${long}\n`, 'npm i'), `${long}\n`)
  t.end()
})

t.test('a choice of cleaners names cleaners that exist', t => {
  t.ok(CATALOGUE.length >= 15)
  t.same(chosenCleaners('off'), { ids: new Set() })
  t.same(chosenCleaners(''), { ids: ALL })
  t.same(chosenCleaners('git, npm-nothing'), {
    expected: `off, nothing (all), or some of ${[...ALL].join(', ')}`,
    found: 'npm-nothing',
  })
  t.same(chosenCleaners('git,make'), { ids: new Set(['git', 'make']) })
  t.notOk((chosenCleaners('-git') as { ids: Set<string> }).ids.has('git'))
  t.match(chosenCleaners('git,-make'), { expected: 'only cleaners to use' })
  t.equal(cleaned(recorded('git-clone'), 'git clone x', new Set()).trimEnd(), recorded('git-clone').trimEnd())
  t.end()
})
