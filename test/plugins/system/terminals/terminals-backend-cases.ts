import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import type { TerminalClientFrame, TerminalServerFrame } from '../../../../plugins/system/contract.js'
import type { Backend } from '../../../../plugins/system/terminals/backend.js'
import { shellCommand } from '../../../../plugins/system/terminals/shell.js'
import { Terminals } from '../../../../plugins/system/terminals/terminals.js'
import type { Tmux } from '../../../../plugins/system/terminals/tmux.js'
import type { OpenCapture } from '../../../../plugins/system/terminals/capture.js'
import { isLive } from '../../../../sdk/node/logs/rotating-file.js'
import { Inbox } from '../../../../sdk/node/concurrency/inbox.js'
import type { Caller, Context } from '../../../../sdk/index.js'
import { endTerminals } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { openFolder } from '../../../support/stuck.js'
import { captureIn, linesOf } from './terminals-support.js'

const caller: Caller = { kind: 'session', actor: 'owner@sandbox.local', role: 'owner', sessionId: 's' }
const context = (): Context => ({ caller, signal: new AbortController().signal, trusted: true })

interface TestViewer {
  readonly text: () => string
  type(text: string): void
  say(frame: TerminalClientFrame): void
  shows(pattern: RegExp): Promise<string>
  /** Stops reading until the returned function is called. */
  hold(): () => void
  readonly exit: Promise<number | undefined>
  leave(): void
}

/** A viewer of a terminal. */
const attached = async (terminals: Terminals, session: string, cols = 80, rows = 24): Promise<TestViewer> => {
  const left = new AbortController()
  const frames = new Inbox<TerminalClientFrame>({ full: 1e6, room: 1, pause: () => {}, resume: () => {} })
  const shown = await terminals.attach(
    { session, ticket: '', cols, rows },
    { caller, signal: left.signal, trusted: true, frames },
  )
  const parts: string[] = []
  let end = ''
  let wake = () => {}
  let free = Promise.resolve()
  const exit = Promise.withResolvers<number | undefined>()
  void (async () => {
    for await (const frame of shown as AsyncIterable<TerminalServerFrame>) {
      if (frame.type === 'data') {
        parts.push(frame.data)
        end = (end + frame.data).slice(-20_000)
      }
      if (frame.type === 'exit') exit.resolve(frame.code)
      wake()
      await free
    }
    exit.resolve(undefined)
  })()
  return {
    text: () => parts.join(''),
    say: frame => frames.put(frame),
    type: data => frames.put({ type: 'input', data }),
    shows: async pattern => {
      while (!pattern.test(end)) await new Promise<void>(resolve => (wake = resolve))
      return end
    },
    hold: () => {
      const { promise, resolve } = Promise.withResolvers<void>()
      free = promise
      return resolve
    },
    exit: exit.promise,
    leave: () => {
      frames.end()
      left.abort()
    },
  }
}

/** The tmux server of a terminal; undefined: none. */
const serverOf = async (data: string, name: string): Promise<string | undefined> => {
  const cwd = join(data, 'system', 'terminals')
  if (!existsSync(join(cwd, name))) return undefined
  return (
    await promisify(execFile)('tmux', ['-S', name, '-N', 'display-message', '-p', '#{pid}'], { cwd })
  ).stdout.trim()
}
/**
 * The memory of a process. Read from a file, because starting a program would block, and while this
 * process waits it reads no output of terminals.
 */
const memoryOf = (pid: string | undefined): number => {
  const status = pid !== undefined && existsSync(`/proc/${pid}`) ? readFileSync(`/proc/${pid}/status`, 'utf8') : ''
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
}
/** The memory of tmux itself, with 100,000 lines of history full of the flood. */
const OWN = 48 << 20
const numbers = async (text: string): Promise<number[]> =>
  (await linesOf(text)).filter(line => /^\d+$/.test(line)).map(Number)
const upTo = (last: number, from = 1) => Array.from({ length: last - from + 1 }, (_, at) => at + from)

type Shell = ConstructorParameters<typeof Tmux>[0]['shell']
export type MakeBackend = (folder: string, shell: Shell, changed: () => void, capture: OpenCapture) => Promise<Backend>

/** The tests of every terminal backend. `kind` ends the name of each test. */
export const testBackend = (kind: string, make: MakeBackend): void => {
  const withTerminals = async (t: Test, now: () => number = Date.now) => {
    const folder = openFolder(t)
    const place = {
      workspace: join(folder, 'workspace'),
      data: join(folder, 'data'),
      hidden: [],
      grants: { read: [], write: [] },
    }
    mkdirSync(place.workspace)
    mkdirSync(place.data, { mode: 0o700 })
    const changed: (string | undefined)[] = []
    const backend = await make(
      join(place.data, 'system', 'terminals'),
      opening => shellCommand(place, opening),
      () => changed.push(undefined),
      captureIn(place.data),
    )
    t.teardown(async () => {
      for (const { name } of await backend.list()) await backend.kill(name)
      await backend.close()
      endTerminals(place.data)
    })
    const terminals = new Terminals({
      workspace: place.workspace,
      backend: async () => backend,
      sees: async () => true,
      changed: name => changed.push(name),
      recorded: async () => {},
      now,
    })
    const opened = async (name = 'web-a', more: { cols?: number; rows?: number; command?: string } = {}) => {
      await terminals.open({ name, ...more }, context())
      const viewer = await attached(terminals, name, more.cols, more.rows)
      viewer.type('PS1="ready"; PS1=$PS1"> "; clear\r')
      await viewer.shows(/ready> $/)
      return viewer
    }
    return { ...place, terminals, changed, opened }
  }

  const title = (sentence: string) => `${sentence}, kept in ${kind}`

  t.test(title('every viewer gets all output, and the terminal is as large as the smallest window'), async t => {
    const { terminals, opened } = await withTerminals(t)
    const one = await opened()
    const two = await attached(terminals, 'web-a', 60, 40)
    t.equal((await terminals.list(caller))[0]!.attached, 2)
    // A new size reaches the program a moment later.
    const sized = (size: string) =>
      `while [ "$(stty size)" != "${size}" ]; do sleep 0.05; done; echo now""-${size.replace(' ', 'x')}\r`
    two.type(sized('24 60'))
    await Promise.all([one, two].map(viewer => viewer.shows(/now-24x60/)))
    one.say({ type: 'resize', cols: 100, rows: 30 })
    one.type(sized('30 60'))
    await two.shows(/now-30x60/)
    two.leave()
    one.type(sized('30 100'))
    await one.shows(/now-30x100/)
    t.match(await terminals.list(caller), exactly({ attached: 1, cols: 100, rows: 30 }))
  })

  t.test(title('a viewer that attaches during output gets all earlier and later output, each piece once'), async t => {
    const { terminals, opened } = await withTerminals(t)
    const first = await opened()
    first.type('clear; for n in $(seq 1 4000); do echo $n; done; echo fin""ished\r')
    const viewers = [first]
    for (const from of [200, 800, 1_500, 2_500]) {
      await first.shows(new RegExp(`[\r\n]${from}\r`))
      viewers.push(await attached(terminals, 'web-a'))
    }
    await Promise.all(viewers.map(viewer => viewer.shows(/[\r\n]finished\r/)))
    for (const viewer of viewers) t.same(await numbers(viewer.text()), upTo(4_000))
  })

  t.test(title('many viewers one after another each get all output of a running program'), async t => {
    const { terminals, opened } = await withTerminals(t)
    let before = await opened()
    before.type('clear; while :; do echo $((++n)); sleep 0.001; done\r')
    for (let round = 0; round < 12; round++) {
      await before.shows(/\n\d+\r/)
      before.leave()
      const viewer = await attached(terminals, 'web-a')
      await viewer.shows(/\n\d+\r/)
      const drawn = Math.max(...(await numbers(viewer.text())))
      await viewer.shows(new RegExp(`\n${drawn + 10}\r`))
      const seen = await numbers(viewer.text())
      // The last line may be incomplete.
      t.same(seen.slice(0, -1), upTo(seen.length - 1))
      before = viewer
    }
    before.leave()
  })

  t.test(title('input arrives unchanged at any length, and so does text of any script'), async t => {
    const { workspace, opened } = await withTerminals(t)
    const viewer = await opened()
    const lines = Array.from({ length: 60 }, (_, n) => `${n} ${'grüße 日本語 😀 $x "y" \\n #{z} '.repeat(30)}`)
    viewer.type('echo rea""ding; cat > typed.txt; echo ta""ken\r')
    await viewer.shows(/reading\r/)
    viewer.type(`${lines.join('\r')}\r\x04`)
    await viewer.shows(/taken\r/)
    t.equal(readFileSync(join(workspace, 'typed.txt'), 'utf8'), `${lines.join('\n')}\n`)
    viewer.type('clear; printf "\\346\\227"; sleep 0.2; printf "\\245 sp%s\\n" lit\r')
    await viewer.shows(/日 split\r/)
  })

  t.test(title('a slow reader slows down the program, loses nothing and does not grow a buffer'), async t => {
    const { workspace, terminals, opened } = await withTerminals(t)
    const viewer = await opened()
    const quick = await attached(terminals, 'web-a')
    const go = viewer.hold()
    const most = 1_500_000
    viewer.type(`clear; stty -onlcr; echo beg""un; { seq 1 ${most}; echo fin""ished; } | tee progress.txt\r`)
    const size = () =>
      existsSync(join(workspace, 'progress.txt')) ? statSync(join(workspace, 'progress.txt')).size : 0
    // It is blocked if it writes nothing for a while.
    let held = -1
    for (let now = size(); now !== held || now === 0; now = size()) {
      held = now
      await delay(1_000)
    }
    t.ok(held < 6_000_000, `${held} bytes were written by then`)
    t.ok(viewer.text().length < 100_000)
    go()
    await Promise.all([viewer, quick].map(one => one.shows(/finished\n/)))
    for (const one of [viewer, quick]) {
      const text = one.text()
      const said = text.slice(text.indexOf('begun\n') + 6, text.indexOf('finished\n'))
      t.ok(said === `${upTo(most).join('\n')}\n`, `${said.length} characters`)
    }
  })

  t.test(title('a terminal is kept for 24 h after its program, with its output and the exit code'), async t => {
    const clock = { now: Date.now() }
    const { terminals, opened, changed } = await withTerminals(t, () => clock.now)
    const viewer = await opened()
    changed.length = 0
    viewer.type('sleep 0.2; kill -SEGV $$\r')
    t.equal(await viewer.exit, 139)
    while (!changed.length) await delay(20)
    t.match(await terminals.list(caller), exactly({ name: 'web-a', running: false, exitCode: 139 }))
    const later = await attached(terminals, 'web-a')
    t.equal(await later.exit, 139)
    t.match(later.text(), /kill -SEGV/)
    clock.now += 24 * 60 * 60_000 - 60_000
    t.equal((await terminals.list(caller)).length, 1)
    clock.now += 120_000
    t.same(await terminals.list(caller), [])
    t.same(await terminals.list(caller), [])
  })

  t.test(title('the end of every program is detected, also if it ends at once'), async t => {
    const { terminals } = await withTerminals(t)
    const names = Array.from({ length: 12 }, (_, n) => `web-${n}`)
    for (const name of names) await terminals.open({ name, command: 'sleep 0.3; exit 7' }, context())
    const codes = async () => (await terminals.list(caller)).map(({ exitCode }) => exitCode)
    while ((await codes()).some(code => code === undefined)) await delay(50)
    t.same(
      await codes(),
      names.map(() => 7),
    )
  })

  t.test(title('a full-screen program is drawn for a later viewer, with the normal screen behind it'), async t => {
    const { terminals, opened } = await withTerminals(t)
    const viewer = await opened()
    viewer.type(
      'clear; echo beh""ind; printf "\\033[?1049h\\033[2J\\033[5;3Hin""front\\033[?25l\\033[?1002h\\033[?1006h"; cat\r',
    )
    await viewer.shows(/infront/)
    const later = await attached(terminals, 'web-a')
    const text = await later.shows(/infront/)
    t.match(text, /behind[^]*\x1b\[\?1049h[^]*infront/)
    t.match(text, /\x1b\[\?1002h/)
  })

  t.test(title('the foreground program and its folder are reported, and none at a prompt'), async t => {
    const { workspace, terminals, opened } = await withTerminals(t)
    mkdirSync(join(workspace, 'sub'))
    const viewer = await opened()
    t.notOk((await terminals.list(caller))[0]!.command)
    viewer.type('cd sub; sleep 3572\r')
    for (;;) {
      const [row] = await terminals.list(caller)
      if (row!.command !== 'sleep') continue
      t.equal(row!.cwd, 'sub')
      break
    }
    viewer.type('\x03')
    await viewer.shows(/\^C[^]*ready> $/)
  })

  t.test(title('ended programs get SIGHUP first, and are killed if they keep running'), async t => {
    const { workspace, terminals, opened } = await withTerminals(t)
    const polite = await opened('web-polite')
    polite.type('trap "echo told > told.txt; exit" HUP; clear; while :; do sleep 0.1; done\r')
    await polite.shows(/while/)
    await delay(500)
    await terminals.kill('web-polite', context())
    t.equal(readFileSync(join(workspace, 'told.txt'), 'utf8'), 'told\n')
    const stubborn = await opened('web-stubborn')
    // A unique duration, because another backend is tested at the same time.
    const sleep = `sleep 3573.${process.pid}`
    stubborn.type(`trap "" HUP TERM; ${sleep} & echo up-""now\r`)
    await stubborn.shows(/up-now/)
    const running = () => spawnSync('pgrep', ['-f', `^${sleep}$`], { encoding: 'utf8' }).stdout.trim()
    // The shell says that it goes on before the program has its name.
    for (let tries = 0; tries < 500 && !running(); tries++) await delay(20)
    t.ok(running())
    const began = performance.now()
    await terminals.kill('web-stubborn', context())
    t.ok(performance.now() - began > 4_900, 'it had its 5 s')
    t.equal(running(), '')
    t.same(await terminals.list(caller), [])
    await terminals.kill('web-stubborn', context())
  })

  t.test(title('terminal output is in its log, without credentials, with and without viewers'), async t => {
    const { data, terminals } = await withTerminals(t)
    const path = join(data, 'logs', 'terminals', 'web-a.log')
    const shows = async (pattern: RegExp): Promise<string> => {
      for (;;) {
        const text = existsSync(path) ? readFileSync(path, 'utf8') : ''
        if (pattern.test(text)) return text
        await delay(20)
      }
    }
    const command =
      'echo "authorization: Bearer hidden-value"; echo "sbc_hiddenvalue123"; printf "\\033[31mno '
      + 'col%s\\033[0m\\n" our; seq 1 3000'
    await terminals.open({ name: 'web-a', command }, context())
    const text = await shows(/\n3000\n/)
    t.match(text, /^\[.* the terminal begins\]\n/)
    t.match(text, /\nauthorization: \[redacted\]\nsbc_\[redacted\]\nno colour\n1\n2\n/)
    t.notMatch(text, /hidden|\x1b/)
    t.same(
      text
        .split('\n')
        .filter(line => /^\d+$/.test(line))
        .map(Number),
      upTo(3_000),
    )
    const viewer = await attached(terminals, 'web-a', 40, 10)
    viewer.type(`echo ${'word '.repeat(30)}; exit 3\r`)
    t.equal(await viewer.exit, 3)
    t.match(
      await shows(/the terminal has ended\]\n$/),
      new RegExp(`\\n${'word '.repeat(30).trim()} *\\n`),
      'a wrapped line is one line',
    )
    while (isLive(path)) await delay(10)
    t.same(readdirSync(join(data, 'logs', 'terminals')), ['web-a.log'])
  })

  t.test(title('during a flood every line is logged or counted, and memory does not grow'), async t => {
    const { data, terminals } = await withTerminals(t)
    const last = 400_000
    await terminals.open({ name: 'web-a', command: `seq -f %070.0f 1 ${last}; exit` }, context())
    const path = join(data, 'logs', 'terminals', 'web-a.log')
    const server = await serverOf(data, 'web-a')
    let most = 0
    while ((await terminals.list(caller))[0]!.running || isLive(path)) {
      most = Math.max(most, memoryOf(server))
      await delay(100)
    }
    const lines = [`${path}.2`, `${path}.1`, path]
      .filter(each => existsSync(each))
      .flatMap(each => readFileSync(each, 'utf8').trimEnd().split('\n'))
    const seen = lines.filter(line => /^\d{70}$/.test(line)).map(Number)
    const skipped = lines.reduce((sum, line) => sum + Number(/ (\d+) lines skipped/.exec(line)?.[1] ?? 0), 0)
    // A prompt or the echo of the command may be among them.
    t.ok(Math.abs(seen.length + skipped - last) <= 2, `${seen.length} and ${skipped}`)
    t.ok(
      seen.every((number, at) => at === 0 || number > seen[at - 1]!),
      'in order',
    )
    t.equal(seen.at(-1), last)
    t.ok(most < OWN + (16 << 20), `${most >> 20} MiB, of the ${(last * 72) >> 20} MiB of output`)
  })

  t.test(title('scrollback is text without control sequences, with wrapped lines joined, from the end'), async t => {
    const { terminals, opened } = await withTerminals(t)
    const viewer = await opened()
    viewer.type(`clear; printf "\\033[31mred\\033[0m\\n"; printf "%0200d\\n" 7; seq 1 500; echo fin""ished\r`)
    await viewer.shows(/finished\r\n[^]*ready> $/)
    const whole = await terminals.scrollback('web-a', undefined, caller)
    t.match(whole.text, /^red\n0{199}7\n1\n2\n[^]*\n500\nfinished\nready>/)
    t.notMatch(whole.text, '\x1b')
    t.equal(whole.lines, whole.text.split('\n').length)
    t.equal(whole.truncated, false)
    const last = await terminals.scrollback('web-a', 3, caller)
    t.same(
      { ...last, text: last.text.trim() },
      { name: 'web-a', text: '500\nfinished\nready>', lines: 3, truncated: true },
    )
    await t.rejects(terminals.scrollback('web-b', undefined, caller), { name: 'Refusal', reason: 'not-found' })
    await t.rejects(terminals.scrollback('web-a', 3, { ...caller, role: 'collaborator' }), {
      name: 'Refusal',
      reason: 'forbidden',
    })
  })
}
