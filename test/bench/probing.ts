// A real daemon with a probe, its watchers, and an idle event loop beside it.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { askSocket } from '../../sdk/cli/daemon/socket.js'
import { makeWorkspace, root, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { ms, print, quick, verdict } from './measure.js'
import { clock, Lateness, probedIn, type Probed } from './probe.js'

/** The limit of open streams per session. */
export const STREAMS = 16

/** The parent of the daemons' folders; created for the first daemon. */
let top: string | undefined
const endings: (() => unknown)[] = []

/** Ends every daemon and removes its folders. */
export const tidy = async (): Promise<void> => {
  for (const ending of endings.reverse()) await ending()
  if (top) rmSync(top, { recursive: true, force: true })
}

/** When frames arrived at one watcher. */
export interface Seen {
  /** The time it began to watch: earlier frames were replayed. */
  since: number
  readonly arrived: Map<string, number>
  readonly over: Promise<void>
  stop(): void
}

/** Reads a stream of frames and parses only the ids. */
export const watch = (url: string, headers: { [name: string]: string }, body?: string): Promise<Seen> =>
  new Promise((resolve, reject) => {
    const arrived = new Map<string, number>()
    const over = Promise.withResolvers<void>()
    const asking = request(url, { method: body === undefined ? 'GET' : 'POST', headers, agent: false }, answer => {
      if (answer.statusCode !== 200) return reject(new Error(`expected a stream, found ${answer.statusCode}`))
      const seen: Seen = { since: clock(), arrived, over: over.promise, stop: () => asking.destroy() }
      let rest = ''
      answer
        .on('data', (piece: Buffer) => {
          const now = clock()
          const text = rest + piece.toString('latin1')
          let from = 0
          for (let at = text.indexOf('id: '); at >= 0; at = text.indexOf('id: ', from)) {
            const end = text.indexOf('\n', at)
            if (end < 0) break
            if (at === 0 || text[at - 1] === '\n') arrived.set(text.slice(at + 4, end), now)
            from = end
          }
          rest = text.slice(Math.max(from, text.lastIndexOf('\n') + 1))
        })
        .on('close', over.resolve)
      resolve(seen)
    })
    asking.on('error', error => (over.resolve(), reject(error)))
    asking.setNoDelay(true)
    asking.end(body)
  })

/** A running daemon with a probe in it. */
export interface Probing extends RunningDaemon {
  readonly mark: () => Promise<void>
  readonly headers: (watcher: number) => { [name: string]: string }
  /** Ends it, and returns the measurements of its probe. */
  readonly end: () => Promise<Probed>
}

/** Starts a daemon with this number of sessions of its owner. */
export const start = async (name: string, sessions: number): Promise<Probing> => {
  top ??= realpathSync(mkdtempSync(join(tmpdir(), 'bench-')))
  const file = join(top, `${name}.json`)
  const [workspace, data] = [join(top, name), join(top, `${name}-data`)]
  makeWorkspace(
    workspace,
    Object.fromEntries(
      Array.from({ length: quick ? 5 : 500 }, (_, file) => [
        `src/p${file % 20}/file-${file}.ts`,
        `export const v = ${file}\n`.repeat(40),
      ]),
    ),
  )
  mkdirSync(data, { mode: 0o700 })
  const probe = pathToFileURL(join(root, 'test', 'bench', 'probe.js')).href
  const daemon = await spawnDaemon(
    { teardown: ending => void endings.push(ending as () => unknown) },
    { workspace, data, env: { BENCH_PROBE: file, NODE_OPTIONS: `--import=${probe}` } },
  )
  const { socket } = JSON.parse(readFileSync(join(data, 'daemon.json'), 'utf8')) as { socket: string }
  const tokens: string[] = []
  for (let session = 0; session < sessions; session++)
    tokens.push(((await askSocket(socket, { do: 'session', device: `bench ${session}` })) as { token: string }).token)
  let marks = 0
  return {
    ...daemon,
    headers: watcher => ({
      authorization: `Bearer ${tokens[Math.floor(watcher / STREAMS)]!}`,
      'content-type': 'application/json',
    }),
    mark: async () => {
      marks++
      daemon.process.kill('SIGUSR2')
      while (!existsSync(`${file}.marks`) || readFileSync(`${file}.marks`, 'utf8') !== String(marks))
        await setTimeout(5)
    },
    end: async () => {
      await daemon.terminate()
      return probedIn(file)
    },
  }
}

/** Measures the loop delay of an idle process at the same time: the share of the machine's other work. */
export const besides = async (): Promise<() => Promise<Probed['late']>> => {
  const child = fork(fileURLToPath(import.meta.url), ['idle'])
  await once(child, 'message')
  return async () => {
    child.send('stop')
    const [late] = (await once(child, 'message')) as [Probed['late']]
    child.kill()
    return late
  }
}

/** The process that `besides` starts. */
const asIdle = (): void => {
  const lateness = new Lateness()
  process.on('message', () => process.send!(lateness.found()))
  process.send!('ready')
}

/** Prints the delays of both loops. */
export const shownLate = (what: string, { p50, p99, max, own }: Probed['late'], idle: Probed['late']): void => {
  print(
    `${what}: a loop with nothing to do was late (baseline)`,
    `p99 ${ms(idle.p99)}`,
    `p50 ${ms(idle.p50)}, at most ${ms(idle.max)}`,
  )
  print(
    `${what}: the daemon's loop was late`,
    `p99 ${ms(p99)}`,
    `p50 ${ms(p50)}, at most ${ms(max)}; its own processor time explains p99 ${ms(own)}`,
  )
  verdict(`${what}: loop delay p99`, p99, { most: 20, as: ms })
}

/** The maximum memory of a process. */
export const highWater = (pid: number): number =>
  Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024

if (process.argv[1] === fileURLToPath(import.meta.url) && process.argv[2] === 'idle') asIdle()
