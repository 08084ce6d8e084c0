import { fork, type ChildProcess } from 'node:child_process'
import { programFile } from './package.js'
import type { RunOptions, RunResult } from './run-here.js'
import { ignored } from '../../ignored.js'

/** A request to the runner process: run a program, or stop one. */
export type RunnerRequest =
  | {
      readonly id: number
      readonly program: string
      readonly args: readonly string[]
      readonly options: FarOptions
      readonly reportsStart: boolean
      readonly reportsOutput: boolean
    }
  | { readonly stop: number }

/** The options that can be sent to another process. */
export type FarOptions = Omit<RunOptions, 'signal' | 'onOutput' | 'onStart'>

/** A message from the runner process: it is ready, or a program's start, output or end. */
export type RunnerMessage =
  | { readonly ready: true }
  | { readonly id: number; readonly pid: number }
  | { readonly id: number; readonly piece: Uint8Array; readonly from: 'stdout' | 'stderr' }
  | { readonly id: number; readonly result: RunResult }
  | {
      readonly id: number
      readonly failed: { readonly message: string; readonly code?: string; readonly syscall?: string }
    }

/** The file name of the runner program, by which its process is recognized. */
export const RUNNER = programFile('sdk/node/programs/runner-child.js')

/** From this much memory on, starting a program blocks the event loop longer than a request to another process. */
const MUCH = 160 << 20
const CHECK_MS = 1_000
/** The wait after the runner process exited unexpectedly. */
const RETRY_MS = 60_000

interface Waiting extends Pick<RunOptions, 'onOutput'> {
  readonly started?: (pid: number) => void
  readonly resolve: (result: RunResult) => void
  readonly reject: (error: Error) => void
}

/**
 * A small process that starts programs for this one: fork copies the page tables of the starting process, which blocks
 * it meanwhile. It ends with this process, even if that is killed.
 */
export class Runner {
  readonly #child: ChildProcess
  readonly #waiting = new Map<number, Waiting>()
  #ready = false
  #next = 0

  /** @param ended Called when it has ended. */
  constructor(ended: () => void) {
    this.#child = fork(RUNNER, [], {
      serialization: 'advanced',
      env: {},
      execArgv: [],
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      detached: true,
    })
    this.#child.on('message', (message: RunnerMessage) => this.#hear(message))
    const over = () => {
      this.#ready = false
      for (const { reject } of this.#waiting.values())
        reject(new Error('the process that starts programs has ended: retry'))
      this.#waiting.clear()
      ended()
    }
    this.#child.once('error', over).once('exit', over)
    this.#rest()
  }

  /** Whether it accepts requests. */
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
    const stop = () => void this.#send({ stop: id })
    signal?.addEventListener('abort', stop, { once: true })
    const { promise, resolve, reject } = Promise.withResolvers<RunResult>()
    const over = promise.catch(ignored('the caller that awaits it gets the failure'))
    this.#waiting.set(id, {
      resolve,
      reject,
      ...(onOutput && { onOutput }),
      ...(onStart && { started: pid => onStart(pid, over) }),
    })
    this.#child.ref()
    this.#child.channel?.ref()
    try {
      this.#send({
        id,
        program,
        args,
        options,
        reportsStart: onStart !== undefined,
        reportsOutput: onOutput !== undefined,
      })
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

  /** Ends the process; programs behind walls end with it. */
  close(): void {
    if (this.#child.connected) this.#child.disconnect()
  }

  /** Without pending requests it does not keep this process alive. */
  #rest(): void {
    this.#child.unref()
    this.#child.channel?.unref()
  }

  #send(request: RunnerRequest): void {
    this.#child.send(request, () => {})
  }

  #hear(message: RunnerMessage): void {
    if ('ready' in message) {
      this.#ready = true
      return
    }
    const waiting = this.#waiting.get(message.id)
    if (!waiting) return
    if ('pid' in message) waiting.started?.(message.pid)
    else if ('piece' in message) void waiting.onOutput?.(Buffer.from(message.piece), message.from)
    else if ('result' in message) waiting.resolve(message.result)
    else waiting.reject(Object.assign(new Error(message.failed.message), message.failed))
  }
}

let kept: Runner | undefined
let checkAt = 0

const startLater = (): void => {
  kept = undefined
  checkAt = performance.now() + RETRY_MS
}

/** The runner process, once this process uses more than 160 MiB; undefined: start programs from this process. */
export const runner = (): Runner | undefined => {
  const now = performance.now()
  if (!kept && now >= checkAt) {
    checkAt = now + CHECK_MS
    try {
      if (process.memoryUsage.rss() > MUCH) kept = new Runner(startLater)
    } catch {
      startLater()
    }
  }
  return kept?.ready ? kept : undefined
}
