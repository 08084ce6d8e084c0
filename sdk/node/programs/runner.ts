import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { packageFolder } from './package.js'
import type { RunOptions, RunResult } from './run-here.js'

/** What the process that starts programs is asked: to run one, or to stop that. */
export type Asked =
  | {
      readonly id: number
      readonly program: string
      readonly args: readonly string[]
      readonly options: FarOptions
      readonly tellsStart: boolean
      readonly tellsOutput: boolean
    }
  | { readonly stop: number }

/** What of the options another process can be told. */
export type FarOptions = Omit<RunOptions, 'signal' | 'onOutput' | 'onStart'>

/** What it answers: that it is there, and of a program its start, its output and its end. */
export type Told =
  | { readonly ready: true }
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly piece: Uint8Array; readonly from: 'stdout' | 'stderr' }
  | { readonly id: number; readonly result: RunResult }
  | {
      readonly id: number
      readonly failed: { readonly message: string; readonly code?: string; readonly syscall?: string }
    }

/** The program of that process, by which it is known among processes. */
export const RUNNER = 'runner-child.js'

/** From this much memory on, starting a program holds the loop up for longer than asking another process does. */
const MUCH = 160 << 20
const LOOK_MS = 1_000
/** After it ended by itself. */
const AGAIN_MS = 60_000

interface Waiting extends Pick<RunOptions, 'onOutput'> {
  readonly started?: (pid: number) => void
  readonly resolve: (result: RunResult) => void
  readonly reject: (error: Error) => void
}

/**
 * A small process that starts programs for this one: the system copies the tables of all the memory of whoever starts a
 * program, and nothing else happens meanwhile. It ends with this process, however that ends.
 */
export class Runner {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #ready = false
  #next = 0

  /** @param ended Told when it is there no more. */
  constructor(ended: () => void) {
    this.#child = fork(join(packageFolder(import.meta.dirname), 'dist/bundle/sdk/node/programs', RUNNER), [], {
      serialization: 'advanced',
      env: {},
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      detached: true,
    })
    this.#child.on('message', (told: Told) => this.#hear(told))
    const over = () => {
      this.#ready = false
      for (const { reject } of this.#waiting.values())
        reject(new Error('the process that starts programs has ended: ask again'))
      this.#waiting.clear()
      ended()
    }
    this.#child.once('error', over).once('exit', over)
    this.#rest()
  }

  /** Whether it takes programs by now. */
  get ready(): boolean {
    return this.#ready
  }

  /** Runs a program as `runHere` does. */
  async run(
    program: string,
    args: readonly string[],
    { signal, onOutput, onStart, ...options }: RunOptions,
  ): Promise<RunResult> {
    const id = ++this.#next
    const stop = () => void this.#say({ stop: id })
    signal?.addEventListener('abort', stop, { once: true })
    const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
    const over = promise.catch(() => {})
    this.#waiting.set(id, {
      resolve,
      reject,
      ...(onOutput && { onOutput }),
      ...(onStart && { started: pid => onStart(pid, over) }),
    })
    this.#child.ref()
    this.#child.channel?.ref()
    try {
      this.#say({ id, program, args, options, tellsStart: onStart !== undefined, tellsOutput: onOutput !== undefined })
      const result = await promise
      signal?.throwIfAborted()
      return { ...result, stdout: Buffer.from(result.stdout) }
    } catch (error) {
      signal?.throwIfAborted()
      throw error
    } finally {
      signal?.removeEventListener('abort', stop)
      this.#waiting.delete(id)
      if (!this.#waiting.size) this.#rest()
    }
  }

  /** Ends it; programs it started behind walls end with it. */
  close(): void {
    if (this.#child.connected) this.#child.disconnect()
  }

  /** Nothing waits for it: it keeps no process alive. */
  #rest(): void {
    this.#child.unref()
    this.#child.channel?.unref()
  }

  #say(asked: Asked): void {
    this.#child.send(asked, () => {})
  }

  #hear(told: Told): void {
    if ('ready' in told) {
      this.#ready = true
      return
    }
    const waiting = this.#waiting.get(told.id)
    if (!waiting) return
    if ('pid' in told) waiting.started?.(told.pid)
    else if ('piece' in told) void waiting.onOutput?.(Buffer.from(told.piece), told.from)
    else if ('result' in told) waiting.resolve(told.result)
    else waiting.reject(Object.assign(new Error(told.failed.message), told.failed))
  }
}

let kept: Runner | undefined
let lookAt = 0

const startLater = (): void => {
  kept = undefined
  lookAt = performance.now() + AGAIN_MS
}

/**
 * The process that starts programs, once this one holds so much memory that it is worth one; without it this one starts
 * them.
 */
export const runner = (): Runner | undefined => {
  const now = performance.now()
  if (!kept && now >= lookAt) {
    lookAt = now + LOOK_MS
    try {
      if (process.memoryUsage.rss() > MUCH) kept = new Runner(startLater)
    } catch {
      startLater()
    }
  }
  return kept?.ready ? kept : undefined
}
