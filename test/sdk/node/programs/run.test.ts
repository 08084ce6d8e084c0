import { readFileSync, writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import t from 'tap'
import { TURN_NICENESS } from '../../../../sdk/node/programs/priority.js'
import { listEnv, ownProgram, run as runAsUsual, type RunOptions } from '../../../../sdk/node/programs/run.js'
import { runHere } from '../../../../sdk/node/programs/run-here.js'
import { Runner } from '../../../../sdk/node/programs/runner.js'
import { exactly } from '../../../support/lists.js'

type Run = typeof runAsUsual
const shWith =
  (run: Run) =>
  (script: string, options: Partial<RunOptions> = {}) =>
    run('sh', ['-c', script], { cwd: '/', env: listEnv(), ...options })

const alive = (pid: string) => {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Waits until the kernel has removed a process that was killed. */
const gone = async (pid: string) => {
  for (let i = 0; i < 2_000 && alive(pid); i++) await new Promise(resolve => setTimeout(resolve, 10))
  return !alive(pid)
}

const far = new Runner(() => {})
t.teardown(() => far.close())
while (!far.ready) await new Promise(resolve => setTimeout(resolve, 10))

for (const [from, run] of [
  ['from this process', runHere],
  ['from another', far.run.bind(far)],
] as const) {
  const sh = shWith(run)

  t.test(`outputs, exit code and input are passed on, ${from}`, async t => {
    const result = await sh('cat; echo no >&2; exit 3', { input: 'ü\n' })
    t.match(result, { code: 3, stderr: 'no\n', truncated: false, timedOut: false })
    t.equal(result.stdout.toString(), 'ü\n')
    t.equal((await sh('true', { input: 'x'.repeat(1_000_000) })).code, 0, 'unread input is not a failure')
  })

  t.test(`a program sees only the given environment, ${from}`, async t => {
    process.env.DAEMON_SECRET = 'x'
    t.teardown(() => delete process.env.DAEMON_SECRET)
    const { stdout } = await run('/usr/bin/env', ['-0'], { cwd: '/', env: { A: '1' } })
    // The test runner adds its own variables to every process.
    t.same(
      stdout
        .toString()
        .split('\0')
        .filter(line => line && !/^(NODE_OPTIONS|_TAPJS\w*)=/.test(line)),
      ['A=1'],
    )
    t.notOk('DAEMON_SECRET' in listEnv())
    t.match(listEnv({ X: 'y', HOME: undefined }), { X: 'y', PATH: String })
    t.notOk('HOME' in listEnv({ HOME: undefined }))
  })

  t.test(
    `a program behind a wall has a lower priority than this process, and any other has the same, ${from}`,
    async t => {
      const niceness = async (walled: boolean) => Number((await sh('sleep 0.1; nice', { walled })).stdout)
      t.equal(await niceness(false), getPriority())
      t.equal(await niceness(true), Math.max(TURN_NICENESS, getPriority()))
    },
  )

  t.test(`long output keeps its beginning and its end and says how much was left out, ${from}`, async t => {
    const { stdout, truncated } = await sh('i=0; while [ $i -lt 5000 ]; do echo line$i; i=$((i+1)); done', {
      maxBytes: 100,
    })
    t.equal(truncated, true)
    t.match(stdout.toString(), /^line0\nline1[\s\S]*\n… \d+ bytes left out …\n[\s\S]*line4999\n$/)
    t.ok(stdout.length < 150)
    const whole = await sh('printf 0123456789', { maxBytes: 10 })
    t.equal(whole.stdout.toString(), '0123456789')
    t.equal(whole.truncated, false)
  })

  t.test(`at a timeout the whole process group is ended, including programs that ignore SIGTERM, ${from}`, async t => {
    const result = await sh('trap "" TERM; sh -c \'trap "" TERM; echo $$; while :; do sleep 1; done\' & wait', {
      timeoutMs: 300,
    })
    t.equal(result.timedOut, true)
    t.ok(await gone(result.stdout.toString().trim()))
  })

  t.test(`an aborted run throws, and leaves no process, ${from}`, async t => {
    const stop = new AbortController()
    let pid = ''
    await t.rejects(
      sh('sleep 600 & echo $!; wait', {
        signal: stop.signal,
        onOutput: piece => ((pid = piece.toString().trim()), stop.abort(new Error('stopped'))),
      }),
      { message: 'stopped' },
    )
    t.ok(await gone(pid))
    await t.rejects(sh('true', { signal: stop.signal }), { message: 'stopped' })
  })

  t.test(`the children of a program end with it, ${from}`, async t => {
    const { code, stdout } = await sh('sleep 600 & echo $!')
    t.equal(code, 0)
    t.ok(await gone(stdout.toString().trim()))
  })

  t.test(`a process that leaves the program's group and keeps its outputs holds nothing up, ${from}`, async t => {
    const begun = performance.now()
    const { code, stdout } = await sh(
      "setsid sh -c 'for n in 1 2 3; do sleep 1; echo $n; done; echo $$; exec sleep 300' & sleep 0.5; exit 4",
    )
    t.equal(code, 4)
    const [one, two, three, left = ''] = stdout.toString().split('\n')
    t.same([one, two, three], ['1', '2', '3'], 'what it still says is read')
    if (!/^\d+$/.test(left)) return void t.fail(`expected a process, found ${left}`)
    t.ok(alive(left))
    process.kill(Number(left), 'SIGKILL')
    t.ok(performance.now() - begun < 60_000)
  })

  t.test(`the result of a program ended by a signal names the signal, ${from}`, async t => {
    t.match(await sh('kill -9 $$'), { code: 137, signal: 'SIGKILL' })
  })
}

t.test('a program that the daemon itself uses is never taken from a project', async t => {
  const { PATH } = process.env
  t.teardown(() => (process.env.PATH = PATH))
  const folder = t.testdir({ node_modules: { '.bin': {} }, bin: {} })
  for (const place of ['node_modules/.bin', 'bin'])
    for (const name of ['sh', 'only-here']) writeFileSync(`${folder}/${place}/${name}`, '', { mode: 0o755 })
  process.env.PATH = `.:${folder}/node_modules/.bin:${PATH}`
  t.notMatch(listEnv().PATH, /node_modules\/\.bin|^\.:/)
  t.equal(await ownProgram('only-here'), undefined)
})

t.test('the refusal of a missing program names it and says how to install it', async t => {
  await t.rejects(runAsUsual('no-such-program', [], { cwd: '/', env: listEnv() }), {
    message:
      'expected the program no-such-program and found none: install it (Debian: apt-get install no-such-program)',
  })
  await t.rejects(runAsUsual('true', [], { cwd: '/no/such/folder', env: listEnv() }), {
    message: /working folder does not exist/,
  })
})

t.test('unread output blocks its program', async t => {
  let [taken, held] = [0, true]
  const gate = Promise.withResolvers<void>()
  const ran = runHere('sh', ['-c', 'head -c 30000000 /dev/zero; echo'], {
    cwd: '/',
    env: listEnv(),
    maxBytes: 100,
    onOutput: piece => {
      taken += piece.length
      return held ? gate.promise : undefined
    },
  })
  await new Promise(resolve => setTimeout(resolve, 300))
  t.ok(taken < 1_000_000, `${taken} bytes were read`)
  held = false
  gate.resolve()
  t.equal((await ran).code, 0)
  t.equal(taken, 30_000_001)
})

t.test('all output of a program that another process started arrives in order', async t => {
  const pieces: Buffer[] = []
  await shWith(far.run.bind(far))('seq 1 1000000', { maxBytes: 100, onOutput: piece => void pieces.push(piece) })
  t.ok(Buffer.concat(pieces).toString() === Array.from({ length: 1_000_000 }, (_, at) => `${at + 1}\n`).join(''))
})

t.test('a program that another process cannot start is refused the same way', async t => {
  const failed = await far
    .run('no-such-program', [], { cwd: '/', env: listEnv() })
    .catch(error => error as NodeJS.ErrnoException)
  t.match(failed, { code: 'ENOENT', syscall: 'spawn no-such-program' })
})

t.test('the start of a program is reported with its process, and so is its end', async t => {
  const told: (number | string)[] = []
  await far.run('true', [], {
    cwd: '/',
    env: listEnv(),
    onStart: (pid, over) => (told.push(pid), void over.then(() => told.push('over'))),
  })
  t.match(told, exactly(Number, 'over'))
})

t.test(
  'when the process that starts programs ends, its programs are reported as failed, and those behind a wall end',
  async t => {
    const ended = Promise.withResolvers<void>()
    const another = new Runner(() => ended.resolve())
    while (!another.ready) await new Promise(resolve => setTimeout(resolve, 10))
    let sleeper = 0
    const ran = another.run('setpriv', ['--pdeathsig', 'KILL', '--', 'sleep', '600'], {
      cwd: '/',
      env: listEnv(),
      onStart: pid => {
        sleeper = pid
        // From here on it ends with the process that started it.
        while (readFileSync(`/proc/${pid}/comm`, 'utf8') !== 'sleep\n');
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
        process.kill(Number(stat.slice(stat.lastIndexOf(') ')).split(' ')[2]), 'SIGKILL')
      },
    })
    await t.rejects(ran, { message: /has ended: retry/ })
    await ended.promise
    t.equal(another.ready, false)
    t.ok(await gone(String(sleeper)))
  },
)
