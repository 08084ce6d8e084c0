import { refuse, ignored } from '../../../sdk/index.js'
import type { BackendStatus, ExtensionRuntime, RunnableExtension } from '../runtime.js'
import { ExtensionBackend, type BackendDeps } from './backend.js'

/** Runs the backends of all extensions. */
export class Backends implements ExtensionRuntime {
  readonly #deps: BackendDeps
  readonly #backends = new Map<string, ExtensionBackend>()

  constructor(deps: BackendDeps) {
    this.#deps = deps
  }

  async start(extension: RunnableExtension): Promise<void> {
    await this.#backends.get(extension.id)?.stop('it is started anew')
    const backend = new ExtensionBackend(extension, this.#deps)
    this.#backends.set(extension.id, backend)
    backend.start()
  }

  async stop(id: string, why: string): Promise<void> {
    await this.#backends.get(id)?.stop(why)
  }

  status(id: string): BackendStatus | undefined {
    return this.#backends.get(id)?.status
  }

  problems(id: string): string[] {
    return this.#backends.get(id)?.routes.problems ?? []
  }

  settingsChanged(id: string, keys: string[]): void {
    void this.#backends.get(id)?.process?.link.request('settings', { keys }).catch(ignored('its process has ended'))
  }

  async close(deadline: number): Promise<void> {
    const late = new Promise<void>(resolve => setTimeout(resolve, Math.max(0, deadline - Date.now())).unref())
    await Promise.race([
      Promise.all([...this.#backends.values()].map(backend => backend.stop('the sandbox is stopping'))),
      late,
    ])
  }

  /** The backend of an extension; refuses one that was never started. */
  of(id: string): ExtensionBackend {
    return this.#backends.get(id) ?? refuse('unavailable', 'the extension is not running', { retryAfter: 1 })
  }

  get all(): readonly ExtensionBackend[] {
    return [...this.#backends.values()]
  }
}
