import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { contains } from '../../../sdk/node/files/paths.js'
import { QUARANTINED, type BackendStatus, type RunnableExtension } from '../runtime.js'
import { Backoff } from './process/backoff.js'
import { ManifestEntries } from '../../../sdk/node/extension/entries.js'
import type { BackendLimits } from './process/limits.js'
import { BackendProcess, type Operate } from './process.js'
import { RouteTable } from './route-table.js'
import { INSIDE, startProcess, UNCONTAINED, type ProcessPlace } from './process/start-process.js'

/** The registrations of one backend while its process runs. */
export interface BackendParts {
  readonly operate: Operate
  /** Ends everything that belongs to the process. */
  end(): void
}

/** The dependencies of a backend. */
export interface BackendDeps {
  readonly place: ProcessPlace
  readonly limits: BackendLimits
  /** Makes the operations of a new process. */
  readonly parts: (backend: ExtensionBackend) => BackendParts
  readonly printed: (id: string, line: string) => void
  readonly failed: (id: string, error: unknown) => void
  readonly changed: (id: string) => void
  /** It ended against its will. */
  readonly crashed: (id: string, why: string, quarantined: boolean) => void
}

/** The backend of one extension: starts its process, starts it again after a crash, and stops it. */
export class ExtensionBackend {
  readonly extension: RunnableExtension
  readonly entries: ManifestEntries
  readonly routes: RouteTable
  /** The tools that it serves now. */
  readonly tools = new Set<string>()
  /** The documents that it derives now. */
  readonly documents = new Set<string>()
  readonly #deps: BackendDeps
  readonly #backoff: Backoff
  #status: BackendStatus = { state: 'starting' }
  #process: BackendProcess | undefined
  #starting: Promise<void> | undefined
  #again: NodeJS.Timeout | undefined
  #stopped = false

  constructor(extension: RunnableExtension, deps: BackendDeps) {
    this.extension = extension
    this.entries = new ManifestEntries(extension.id, extension.manifest.permissions)
    this.routes = new RouteTable(this.entries)
    this.#deps = deps
    this.#backoff = new Backoff(deps.limits)
  }

  get status(): BackendStatus {
    return this.#status
  }

  /** Whether it was stopped, which is no fault of what it was asked. */
  get isStopped(): boolean {
    return this.#stopped
  }

  /** Resident bytes of its process. */
  get resident(): number {
    return this.#process?.resident ?? 0
  }

  /** Begins to start it; does not wait. */
  start(): void {
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined))
  }

  /** Its process once it runs; refuses after the time that requests wait. */
  async running(signal?: AbortSignal): Promise<BackendProcess> {
    if (this.#status.state === 'running' && this.#process) return this.#process
    if (this.#starting && this.#status.state === 'starting') {
      const late = AbortSignal.timeout(this.#deps.limits.queueMs)
      await raced(this.#starting, signal ? AbortSignal.any([signal, late]) : late)
    }
    if (this.#status.state === 'running' && this.#process) return this.#process
    const { state, detail } = this.#status
    return refuse('unavailable', `the extension is not running: ${detail ?? state}`, { retryAfter: 1 })
  }

  /** Its process, if it runs now. */
  get process(): BackendProcess | undefined {
    return this.#status.state === 'running' ? this.#process : undefined
  }

  /** The pipe of its process, also while `activate` runs. */
  link(): BackendProcess['link'] {
    return (this.#process ?? refuse('unavailable', 'the extension is not running', { retryAfter: 1 })).link
  }

  /** Stops it permanently; resolves when none of its processes is left. */
  async stop(why: string): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#again)
    const running = this.#process
    if (this.#status.state === 'starting') running?.fail(why)
    await running?.stop(why)
    await this.#starting
    await this.#process?.stop(why)
    this.#set({ state: 'stopped', detail: why })
  }

  async #start(): Promise<void> {
    clearTimeout(this.#again)
    const { server } = this.extension.manifest
    if (server === undefined || !(await isFileIn(this.extension.dir, server)))
      return this.#set({ state: 'absent', detail: `${server ?? 'server'} is not there` })
    if (this.#stopped) return
    this.#set({ state: 'starting' })
    const parts = this.#deps.parts(this)
    const since = performance.now()
    let started: BackendProcess | undefined
    try {
      started = await this.#spawn(parts)
      if (!started) {
        parts.end()
        return this.#set({ state: 'error', detail: UNCONTAINED })
      }
      this.#process = started
      void started.ended.then(why => this.#ended(why, since, parts))
      if (this.#stopped) return started.fail('it was stopped')
      await this.#activate(started, server)
    } catch (error) {
      if (started) {
        started.fail(sentenceOf(error))
        await started.ended
        return
      }
      parts.end()
      this.#deps.failed(this.extension.id, error)
      this.#crash(`its process could not be started`, 0)
    }
  }

  async #spawn(parts: BackendParts): Promise<BackendProcess | undefined> {
    const { place, limits, printed, failed } = this.#deps
    const { id } = this.extension
    const process = await startProcess(this.extension, place, limits)
    return (
      process
      && new BackendProcess(process, {
        limits,
        operate: parts.operate,
        printed: line => printed(id, line),
        failed: error => failed(id, error),
      })
    )
  }

  async #activate(started: BackendProcess, server: string): Promise<void> {
    const { startMs } = this.#deps.limits
    const { id, version, source } = this.extension
    const late = setTimeout(() => started.fail(`activate did not end within ${startMs / 1000} s`), startMs)
    try {
      await started.link.request('activate', {
        id,
        version,
        source,
        server,
        dir: INSIDE.dir,
        dataDir: INSIDE.dataDir,
      })
      if (!this.#stopped) this.#set({ state: 'running' })
    } finally {
      clearTimeout(late)
    }
  }

  #ended(why: string, since: number, parts: BackendParts): void {
    parts.end()
    this.routes.clear()
    this.tools.clear()
    this.documents.clear()
    this.#process = undefined
    if (!this.#stopped) this.#crash(why, performance.now() - since)
  }

  #crash(why: string, ranMs: number): void {
    const wait = this.#backoff.crashed(ranMs)
    const { id } = this.extension
    if (wait === undefined) {
      this.#set({ state: 'stopped', detail: QUARANTINED + why })
      return this.#deps.crashed(id, why, true)
    }
    this.#set({ state: 'error', detail: `${why}; it starts again in ${Math.ceil(wait / 1000)} s` })
    this.#again = setTimeout(() => this.#stopped || this.start(), wait)
    this.#deps.crashed(id, why, false)
  }

  #set(status: BackendStatus): void {
    this.#status = status
    this.#deps.changed(this.extension.id)
  }
}

const sentenceOf = (error: unknown): string =>
  error instanceof Error ? error.message.replace(/^.*the extension is not running: /, '') : 'activate failed'

const isFileIn = async (dir: string, path: string): Promise<boolean> => {
  const file = join(dir, path)
  return contains(dir, file) && ((await stat(file).catch(() => undefined))?.isFile() ?? false)
}

const raced = async (work: Promise<unknown>, signal: AbortSignal): Promise<void> => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stop = () => resolve()
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.race([work, promise])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
