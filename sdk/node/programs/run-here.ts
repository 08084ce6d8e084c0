import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import type { Env } from './list-env.js'
import { codeOf } from '../files/paths.js'
import { lowerPriority } from './priority.js'

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

/** How a program of this very process is to run. */
export interface HereOptions extends Omit<RunOptions, 'onOutput'> {
  /** As in `RunOptions`; a promise holds the output up until it is settled. */
  readonly onOutput?: (piece: Buffer, from: 'stdout' | 'stderr') => Promise<void> | void
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
 * Until then the process inside receives no SIGTERM, does not end with its parent yet, and may have left the group
 * already.
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

/** Runs a program from this process; one that does not start fails with what the system says. */
export const runHere = async (program: string, args: readonly string[], options: HereOptions): Promise<RunResult> => {
  const { cwd, env, input, signal, timeoutMs, walled = false, maxBytes = MAX_BYTES, onOutput, onStart } = options
  signal?.throwIfAborted()
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...env },
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid !== undefined && walled) lowerPriority(pid)
  const out = new Kept(maxBytes)
  const err = new Kept(maxBytes)
  for (const [from, kept] of [
    ['stdout', out],
    ['stderr', err],
  ] as const) {
    const stream = child[from]!
    stream.on('data', (piece: Buffer) => {
      kept.add(piece)
      const taken = onOutput?.(piece, from)
      if (!taken) return
      stream.pause()
      void taken.finally(() => stream.resume())
    })
  }
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
  const late =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
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
  } finally {
    clearTimeout(late)
    clearTimeout(killer)
    signal?.removeEventListener('abort', stop)
  }
}
