import type { ExtensionProcessExit } from '../../../sdk/node/extension/protocol.js'
import { Backoff } from '../backend/process/backoff.js'
import type { BackendLimits } from '../backend/process/limits.js'
import type { ExtensionProcess } from '../manifest/manifest.js'
import type { ExtensionProcessStatus } from './contract.js'
import { ignored } from '../../../sdk/index.js'

/** The command to start, with exactly this environment. */
export interface ProcessCommand {
  readonly program: string
  readonly args: readonly string[]
  readonly env: { readonly [name: string]: string | undefined }
  readonly port?: number
  /** Called when it has ended, or could not start. */
  readonly ended: () => void
}

/** One run of a program in its session. */
export interface SessionRun {
  /** Different for each run. */
  readonly purpose: string
  readonly running: boolean
  readonly pid?: number
  readonly port?: number
  readonly exitCode?: number
}

/** What a program is run with. */
export interface SupervisedDeps {
  readonly limits: Pick<BackendLimits, 'backoff' | 'healthyMs' | 'crashes' | 'crashesMs'>
  /** The name of its terminal session. */
  readonly session: string
  /** Makes the command for a start; `before` is the port of the start before. */
  readonly command: (before: number | undefined) => Promise<ProcessCommand>
  /** Runs the command in the session. */
  readonly run: (purpose: string, command: ProcessCommand) => Promise<SessionRun>
  /** Ends the session with all its processes. */
  readonly end: () => Promise<void>
  /** A text for one run. */
  readonly purpose: () => string
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
  /** The run that has not ended yet. */
  #run: { readonly purpose: string; readonly pid?: number; readonly ended: () => void } | undefined
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
    const pid = this.#run?.pid
    return {
      name: this.declared.name,
      running,
      state: this.#state,
      session: this.#deps.session,
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
    if (this.#state !== 'starting') {
      await this.#starting?.catch(ignored('its state says why'))
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
    await this.#starting?.catch(ignored('its state says why'))
    if (this.#run) {
      const { purpose } = this.#run
      await this.#deps.end()
      this.over(purpose)
    }
    this.#set('stopped')
  }

  /** Goes on with a run that a daemon before this one started. */
  adopt({ purpose, pid, port }: SessionRun): void {
    this.#wanted = true
    this.#run = { purpose, ...(pid !== undefined && { pid }), ended: () => {} }
    this.#port = port
    this.#since = Date.now()
    this.#set('running')
  }

  /** Leaves it to the next daemon. */
  leave(): void {
    this.#wanted = false
    clearTimeout(this.#again)
  }

  #begin(): Promise<void> {
    clearTimeout(this.#again)
    this.#starting ??= this.#spawn().finally(() => (this.#starting = undefined))
    return this.#starting
  }

  async #spawn(): Promise<void> {
    this.#set('starting')
    const command = await this.#deps.command(this.#port)
    const { port, ended } = command
    const purpose = this.#deps.purpose()
    this.#run = { purpose, ended }
    this.#port = port
    this.#since = Date.now()
    this.#exitCode = undefined
    try {
      const { running, pid, exitCode } = await this.#deps.run(purpose, command)
      if (!running) return this.over(purpose, exitCode)
      // Its end may have been reported before the answer came.
      if (this.#run?.purpose !== purpose) return
      this.#run = { purpose, ended, ...(pid !== undefined && { pid }) }
      this.#set('running')
    } catch (error) {
      if (this.#run?.purpose === purpose) this.#run = undefined
      ended()
      throw error
    }
  }

  /** A run ended; without an exit code somebody removed its session. */
  over(purpose: string, exitCode?: number): void {
    if (this.#run?.purpose !== purpose) return
    const ran = Date.now() - (this.#since ?? Date.now())
    this.#run.ended()
    this.#run = undefined
    this.#exitCode = exitCode
    this.#deps.exited(exitCode === undefined ? {} : { code: exitCode })
    if (!this.#wanted) return
    const why = exitCode === undefined ? 'its terminal was closed' : `it ended with ${exitCode}`
    const { restart = 'on-failure' } = this.declared
    if (restart === 'never' || (restart === 'on-failure' && exitCode === 0)) {
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
