import { spawn, type ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { constants } from 'node:os'
import type { Env } from './list-env.js'
import { codeOf } from '../files/paths.js'
import { pace } from '../concurrency/pace.js'
import { lowerPriority } from './priority.js'
import { ignored } from '../../ignored.js'

/** How to run a program. */
export interface RunOptions {
  readonly cwd: string
  readonly env: Env
  /** Standard input; default: empty. */
  readonly input?: string | Uint8Array
  readonly signal?: AbortSignal
  readonly timeoutMs?: number
  /** The program is behind a wall, which is killed without SIGTERM. */
  readonly walled?: boolean
  /** `own`: somebody waits for it, so it keeps the priority of this process. Default: lower behind a wall. */
  readonly priority?: 'own'
  /** The most bytes kept of each output: half from its start, half from its end. */
  readonly maxBytes?: number
  /** How many bytes of each output it may write a second; left out: any number. */
  readonly pace?: number
  /** Called with every piece of output, kept or not. */
  readonly onOutput?: (piece: Buffer, from: 'stdout' | 'stderr') => void
  /** Called with the pid, and a promise of its end. */
  readonly onStart?: (pid: number, over: Promise<unknown>) => void
}

/** How to run a program from this process. */
export interface HereOptions extends Omit<RunOptions, 'onOutput'> {
  /** As in `RunOptions`; a returned promise pauses the output until it settles. */
  readonly onOutput?: (piece: Buffer, from: 'stdout' | 'stderr') => Promise<void> | void
}

/** The result of a program. */
export interface RunResult {
  /** The exit code; 128 plus the signal's number if a signal ended it. */
  readonly code: number
  readonly signal?: NodeJS.Signals
  readonly stdout: Buffer
  readonly stderr: string
  /** Part of an output was left out; a line in it says how much. */
  readonly truncated: boolean
  readonly timedOut: boolean
}

const GRACE_MS = 2000
const MAX_BYTES = 8 * 1024 * 1024

/** Keeps the start and the end of an output, within a limit. */
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

/** Sends a signal to a process group; ignores a group that does not exist. */
export const signalGroup = (pid: number, signal: NodeJS.Signals): void => {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (codeOf(error) !== 'ESRCH' && codeOf(error) !== 'EPERM') throw error
  }
}

/**
 * Kills everything behind a wall, also while the wall is still being built.
 *
 * Until it is built, the process inside ignores SIGTERM, does not yet end with its parent, and may have left the group.
 */
export const killWalled = (pid: number): void => {
  let children: string[] = []
  try {
    children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
  } catch {
    // Without that file only the group can be signalled.
  }
  for (const child of children) {
    try {
      process.kill(Number(child), 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
  signalGroup(pid, 'SIGKILL')
}

/**
 * Closes the outputs of a program that has exited once they are silent for 2 s: a process that left its group, as the
 * connection that ssh shares, keeps them open for as long as it runs.
 *
 * @param isHeld Whether somebody does not read the outputs for now.
 */
export const closeSilentOutputs = (child: ChildProcess, isHeld: () => boolean = () => false): void => {
  const outputs = [child.stdout, child.stderr].filter(output => output !== null) as Socket[]
  const bytes = () => outputs.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  let timer: NodeJS.Timeout | undefined
  child.once('exit', () => {
    let before = bytes()
    timer = setInterval(() => {
      const now = bytes()
      const isSilent = now === before && !isHeld() && outputs.every(({ readableLength }) => readableLength === 0)
      before = now
      if (isSilent) for (const output of outputs) output.destroy()
    }, GRACE_MS)
  })
  child.once('close', () => clearInterval(timer))
}

/** Runs a program from this process; throws the system's error if it does not start. */
export const runHere = async (program: string, args: readonly string[], options: HereOptions): Promise<RunResult> => {
  const { cwd, env, input, signal, timeoutMs, walled = false, maxBytes = MAX_BYTES } = options
  const { priority, pace: most, onOutput, onStart } = options
  signal?.throwIfAborted()
  const child: ChildProcess = spawn(program, args, {
    cwd,
    env: { ...env },
    detached: true,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid !== undefined && walled && !priority) lowerPriority(pid)
  const out = new Kept(maxBytes)
  const err = new Kept(maxBytes)
  let held = 0
  for (const [from, kept] of [
    ['stdout', out],
    ['stderr', err],
  ] as const) {
    const stream = child[from]!
    const paced = most === undefined ? undefined : pace(most)
    stream.on('data', (piece: Buffer) => {
      kept.add(piece)
      const [taken, rest] = [onOutput?.(piece, from), paced?.(piece.length)]
      if (!taken && !rest) return
      held++
      stream.pause()
      void Promise.all([taken, rest]).finally(() => {
        held--
        stream.resume()
      })
    })
  }
  // A program may exit without reading its input; that is not an error.
  child.stdin?.on('error', ignored('a program may end before it reads its input')).end(input)

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
  // When the leader exits, kill its group: a child left running would keep the outputs open.
  child.once('exit', () => {
    if (pid !== undefined && !killer) signalGroup(pid, 'SIGKILL')
  })
  closeSilentOutputs(child, () => held > 0)
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
