import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { access, constants as fsConstants, stat } from 'node:fs/promises'
import { constants } from 'node:os'
import { refuse } from '../refusal.js'
import { codeOf } from './paths.js'

/** Variables by name, complete: a program sees these and no others. */
export interface Env {
  readonly [name: string]: string
}

/** How a program is to run. */
export interface RunOptions {
  readonly cwd: string
  readonly env: Env
  /** What the program reads; nothing when left out. */
  readonly input?: string | Uint8Array
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** It is behind a wall, which is killed at once when it is to end. */
  readonly walled?: boolean
  /** The most bytes kept of each of the two outputs: the first half and the last. */
  readonly maxBytes?: number
  /** Hears every piece of output as it comes, kept or not. */
  readonly onOutput?: (piece: Buffer, from: 'stdout' | 'stderr') => void
  /** Told of the process, and of its end. */
  readonly onStart?: (pid: number, over: Promise<unknown>) => void
}

/** What became of a program. */
export interface RunResult {
  /** The exit code; 128 and the signal's number when a signal ended it. */
  readonly code: number
  readonly signal?: NodeJS.Signals
  readonly stdout: Buffer
  readonly stderr: string
  /** Something was left out of an output; a line in it says how much. */
  readonly truncated: boolean
  readonly timedOut: boolean
}

const GRACE_MS = 2000
const MAX_BYTES = 8 * 1024 * 1024

/** The Debian package of a program whose package has another name. */
const PACKAGES: { readonly [program: string]: string } = {
  bwrap: 'bubblewrap', unshare: 'util-linux', setpriv: 'util-linux', prlimit: 'util-linux', rg: 'ripgrep',
  node: 'nodejs', sh: 'dash', pdftotext: 'poppler-utils',
}

const INHERITED = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TERM', 'COLORTERM', 'TZ',
  'TMPDIR',
] as const

/** The folders of a PATH a daemon may trust: not those npm adds, which lie in projects, nor relative ones. */
const trusted = (path: string): string[] =>
  path.split(':').filter(folder => folder.startsWith('/') && !folder.endsWith('/node_modules/.bin'))

const SYSTEM = ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']
const found = new Map<string, string>()

/**
 * The absolute path of a program the daemon itself runs, the system's first, and the same one for as long as it runs:
 * a turn may write to folders of the PATH. Undefined when there is none.
 */
export const ownProgram = async (name: string): Promise<string | undefined> => {
  const known = found.get(name)
  if (known) return known
  for (const folder of [...SYSTEM, ...trusted(process.env.PATH ?? '')]) {
    const path = `${folder}/${name}`
    if (!(await access(path, fsConstants.X_OK).then(() => true, () => false))) continue
    found.set(name, path)
    return path
  }
  return undefined
}

/** The environment of a child: a fixed list of the daemon's own variables and what is added, nothing else. */
export const listEnv = (extra: { readonly [name: string]: string | undefined } = {}): Env => {
  const env: { [name: string]: string } = { PATH: '/usr/local/bin:/usr/bin:/bin' }
  for (const name of INHERITED) if (process.env[name] !== undefined) env[name] = process.env[name]
  env.PATH = trusted(env.PATH!).join(':')
  for (const [name, value] of Object.entries(extra)) {
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}

/** Keeps the first and the last half of what it is given, within a bound. */
class Kept {
  readonly #half: number
  #head: Buffer[] = []
  #headBytes = 0
  #tail: Buffer[] = []
  #tailBytes = 0
  left = 0

  constructor(maxBytes: number) {
    this.#half = Math.max(1, maxBytes >> 1)
  }

  add(piece: Buffer): void {
    const room = this.#half - this.#headBytes
    const first = piece.subarray(0, room)
    if (first.length > 0) {
      this.#head.push(first)
      this.#headBytes += first.length
    }
    const rest = piece.subarray(first.length)
    if (rest.length === 0) return
    this.#tail.push(rest)
    this.#tailBytes += rest.length
    while (this.#tailBytes - (this.#tail[0]?.length ?? 0) >= this.#half) this.#drop(this.#tail.shift()!.length)
  }

  bytes(): Buffer {
    if (this.#tailBytes > this.#half) {
      const over = this.#tailBytes - this.#half
      this.#tail[0] = this.#tail[0]!.subarray(over)
      this.#drop(over)
    }
    const gap = this.left > 0 ? [Buffer.from(`\n… ${this.left} bytes left out …\n`)] : []
    return Buffer.concat([...this.#head, ...gap, ...this.#tail])
  }

  #drop(bytes: number): void {
    this.left += bytes
    this.#tailBytes -= bytes
  }
}

/** Sends a signal to a whole process group; a group that is gone is fine. */
export const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH' && codeOf(error) !== 'EPERM') throw error
  }
}

/**
 * Ends a program behind a wall with everything in it, also while the wall is still being built.
 *
 * Until then the process inside hears no SIGTERM, does not end with its parent yet, and may have left the group already.
 */
export const killWalled = (pid: number): void => {
  let children: string[] = []
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  } catch {
    // A system without that file has only the group.
  }
  for (const child of children) {
    try {
      process.kill(Number(child), 'SIGKILL')
    } catch {
      // It is gone.
    }
  }
  signalGroup(pid, 'SIGKILL')
}

/** Refuses with the program's name and how to install it. */
export const missingProgram = (program: string): never => {
  const name = program.split('/').at(-1) ?? program
  const how = `install it (Debian: apt-get install ${PACKAGES[name] ?? name})`
  return refuse('missing-program', `expected the program ${name} and found none: ${how}`)
}

const failedStart = async (error: unknown, program: string, cwd: string): Promise<never> => {
  if (codeOf(error) !== 'ENOENT') throw error
  const folder = await stat(cwd).catch(() => undefined)
  if (folder?.isDirectory()) return missingProgram(program)
  throw new Error(`cannot start ${program}: its working folder is gone`, { cause: error })
}

let starts = Promise.resolve()

/** One start for each turn of the loop: it stands still until a program is there, and many that start at once would hold it up for long. */
const inTurn = (): Promise<void> => (starts = starts.then(() => new Promise(resolve => setImmediate(resolve))))

/**
 * Runs a program to its end in a process group of its own, which is gone when this answers.
 *
 * When the time is over the result says so; an aborted signal is thrown. Either way the group is asked to end and,
 * after 2 s, killed; behind a wall it is killed at once.
 */
export const run = async (program: string, args: readonly string[], options: RunOptions): Promise<RunResult> => {
  const { cwd, env, input, signal, timeoutMs, walled = false, maxBytes = MAX_BYTES, onOutput, onStart } = options
  await inTurn()
  signal?.throwIfAborted()
  const child: ChildProcess = spawn(program, args, {
    cwd, env: { ...env }, detached: true, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const { pid } = child
  const out = new Kept(maxBytes)
  const err = new Kept(maxBytes)
  child.stdout!.on('data', (piece: Buffer) => (out.add(piece), onOutput?.(piece, 'stdout')))
  child.stderr!.on('data', (piece: Buffer) => (err.add(piece), onOutput?.(piece, 'stderr')))
  // A program may end without reading its input: that is its right, and no failure of ours.
  child.stdin?.on('error', () => {}).end(input)

  let timedOut = false
  let killer: NodeJS.Timeout | undefined
  const stop = () => {
    if (pid === undefined || killer) return
    const kill = () => (walled ? killWalled(pid) : signalGroup(pid, 'SIGKILL'))
    if (walled) kill()
    else signalGroup(pid, 'SIGTERM')
    killer = setTimeout(kill, GRACE_MS)
  }
  const late = timeoutMs === undefined ? undefined : setTimeout(() => {
    timedOut = true
    stop()
  }, timeoutMs)
  signal?.addEventListener('abort', stop, { once: true })

  const { promise, resolve, reject } = Promise.withResolvers<[number | null, NodeJS.Signals | null]>()
  child.once('error', reject)
  // The leader's end is the end of the group: what it left running would keep the outputs open for ever.
  child.once('exit', () => {
    if (pid !== undefined && !killer) signalGroup(pid, 'SIGKILL')
  })
  child.once('close', (code, by) => resolve([code, by]))
  if (pid !== undefined) onStart?.(pid, promise)
  try {
    const [code, by] = await promise
    if (pid !== undefined) signalGroup(pid, 'SIGKILL')
    signal?.throwIfAborted()
    const stdout = out.bytes()
    const stderr = err.bytes().toString()
    return {
      code: code ?? 128 + (by ? constants.signals[by] : 0),
      ...(by && { signal: by }),
      stdout,
      stderr,
      truncated: out.left + err.left > 0,
      timedOut,
    }
  } catch (error) {
    if (pid === undefined) return await failedStart(error, program, cwd)
    throw error
  } finally {
    clearTimeout(late)
    clearTimeout(killer)
    signal?.removeEventListener('abort', stop)
  }
}
