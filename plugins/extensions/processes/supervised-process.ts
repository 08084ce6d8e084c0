import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as later } from 'node:timers/promises'
import { lowerPriority } from '../../../sdk/node/programs/priority.js'
import { killWalled } from '../../../sdk/node/programs/run.js'
import { Backoff } from '../backend/process/backoff.js'
import type { BackendLimits } from '../backend/process/limits.js'
import { eachLine } from '../backend/process/output-lines.js'
import { terminateInner } from '../backend/process/process-watch.js'
import type { ExtensionProcessExit } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { ExtensionProcessStatus } from './contract.js'

/** The command to start, with exactly this environment. */
export interface ProcessCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string | undefined }
  readonly port?: number
  /** Called when it has ended, or could not start. */
  readonly ended: () => void
}

/** What a program is run with. */
export interface SupervisedDeps {
  readonly limits: Pick<BackendLimits, 'backoff' | 'healthyMs' | 'crashes' | 'crashesMs' | 'stopMs'>
  /** Makes the command for a start; `before` is the port of the start before. */
  readonly command: (before: number | undefined) => Promise<ProcessCommand>
  readonly printed: (line: string) => void
  readonly changed: () => void
  /** A process of it ended, however. */
  readonly exited: (end: Omit<ExtensionProcessExit, 'name'>) => void
  /** It ended and is not started again, against its rule. */
  readonly quarantined: (why: string) => void
}

type State = ExtensionProcessStatus['state']

/** One background program: starts it, starts it again by its rule, and stops it. */
export class SupervisedProcess {
  readonly declared: ExtensionProcess
  readonly #deps: SupervisedDeps
  #backoff: Backoff
  #state: State = 'stopped'
  #detail: string | undefined
  #child: ChildProcess | undefined
  #ended: Promise<void> = Promise.resolve()
  #starting: Promise<void> | undefined
  #again: NodeJS.Timeout | undefined
  #wanted = false
  #port: number | undefined
  #since: number | undefined
  #exitCode: number | undefined
  #restarts = 0

  constructor(declared: ExtensionProcess, deps: SupervisedDeps) {
    this.declared = declared
    this.#deps = deps
    this.#backoff = new Backoff(deps.limits)
  }

  /** Whether it runs or is going to. */
  get isUp(): boolean {
    return this.#wanted
  }

  get status(): ExtensionProcessStatus {
    const running = this.#state === 'running'
    const pid = this.#child?.pid
    return {
      name: this.declared.name,
      running,
      state: this.#state,
      ...(running && pid !== undefined && { pid }),
      ...(running && this.#port !== undefined && { port: this.#port }),
      ...(running && this.#since !== undefined && { since: this.#since }),
      ...(this.#exitCode !== undefined && { exitCode: this.#exitCode }),
      restarts: this.#restarts,
      ...(this.#detail !== undefined && { detail: this.#detail }),
    }
  }

  /** Starts it unless it runs; resolves when it does. Ends a quarantine. */
  async start(): Promise<void> {
    if (this.#state === 'running') return
    this.#wanted = true
    if (!this.#starting) {
      this.#backoff = new Backoff(this.#deps.limits)
      this.#restarts = 0
    }
    try {
      await this.#begin()
    } catch (error) {
      this.#wanted = false
      this.#set('stopped', (error as Error).message)
      throw error
    }
  }

  /** Ends it with its children; resolves when they are gone. */
  async stop(): Promise<void> {
    this.#wanted = false
    clearTimeout(this.#again)
    await this.#starting?.catch(() => {})
    const { pid } = this.#child ?? {}
    if (pid !== undefined) {
      terminateInner(pid)
      const over = new AbortController()
      const late = later(this.#deps.limits.stopMs, undefined, { signal: over.signal }).then(
        () => killWalled(pid),
        () => {},
      )
      await this.#ended
      over.abort()
      await late
    }
    this.#set('stopped')
  }

  #begin(): Promise<void> {
    clearTimeout(this.#again)
    this.#starting ??= this.#spawn().finally(() => (this.#starting = undefined))
    return this.#starting
  }

  async #spawn(): Promise<void> {
    this.#set('starting')
    const { program, args, env, port, ended } = await this.#deps.command(this.#port)
    const child = spawn(program, args, {
      cwd: '/',
      env: { ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) eachLine(stream, this.#deps.printed)
    const { promise, resolve } = Promise.withResolvers<void>()
    child.once('exit', (code, signal) => {
      if (child.pid !== undefined) killWalled(child.pid)
      ended()
      this.#over(code, signal)
      resolve()
    })
    try {
      await once(child, 'spawn')
    } catch (error) {
      ended()
      throw error
    }
    lowerPriority(child.pid!)
    this.#child = child
    this.#ended = promise
    this.#port = port
    this.#since = Date.now()
    this.#exitCode = undefined
    this.#set('running')
  }

  #over(code: number | null, signal: NodeJS.Signals | null): void {
    const ran = Date.now() - (this.#since ?? Date.now())
    this.#child = undefined
    this.#exitCode = code ?? undefined
    this.#deps.exited({ ...(code !== null && { code }), ...(signal && { signal }) })
    if (!this.#wanted) return
    const why = signal ? `it was ended by ${signal}` : `it ended with ${code}`
    const { restart = 'on-failure' } = this.declared
    if (restart === 'never' || (restart === 'on-failure' && code === 0)) {
      this.#wanted = false
      return this.#set('exited', why)
    }
    this.#restartIn(this.#backoff.crashed(ran), why)
  }

  #restartIn(wait: number | undefined, why: string): void {
    if (wait === undefined) {
      this.#wanted = false
      this.#set('quarantined', `quarantined: ${why}`)
      return this.#deps.quarantined(why)
    }
    this.#set('restarting', `${why}; it starts again in ${Math.ceil(wait / 1000)} s`)
    this.#again = setTimeout(() => {
      if (!this.#wanted) return
      this.#restarts++
      this.#begin().catch((error: Error) => this.#wanted && this.#restartIn(this.#backoff.crashed(0), error.message))
    }, wait)
  }

  #set(state: State, detail?: string): void {
    const same = this.#state === state && this.#detail === detail
    this.#state = state
    this.#detail = detail
    if (!same) this.#deps.changed()
  }
}
