import type { Host } from '../../../sdk/index.js'
import type { Archive } from './archive.js'

const DAY_MS = 86_400_000
const EVERY_MS = 3_600_000

/** What keeping the board clear needs of the daemon. */
export interface RetentionDeps {
  readonly host: Pick<Host, 'call' | 'log' | 'on' | 'serves' | 'signal'>
  readonly archive: Pick<Archive, 'putOlder'>
  readonly now: () => number
}

/** Archives conversations that have been finished for as many days as the settings keep them on the board. */
export class Retention {
  readonly #deps: RetentionDeps
  #sweeping: Promise<void> | undefined

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** Sweeps once the sandbox is ready, which never waits for it, and every hour until the group stops. */
  begin(): void {
    const { host } = this.#deps
    host.on('daemon.ready', () => void this.sweep())
    const timer = setInterval(() => void this.sweep(), EVERY_MS).unref()
    host.signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  }

  /**
   * One sweep at a time: a caller during one waits for it. Failures are logged, and the next sweep tries again.
   */
  sweep(): Promise<void> {
    this.#sweeping ??= this.#sweep()
      .catch(error => {
        const { log, signal } = this.#deps.host
        if (!signal.aborted) log.warn('archiving finished conversations failed', { error: String(error) })
      })
      .finally(() => (this.#sweeping = undefined))
    return this.#sweeping
  }

  async #sweep(): Promise<void> {
    const { archive, host, now } = this.#deps
    // Nobody could say no without the settings, so then nothing is moved.
    if (!(await host.serves('settings.get'))) return
    const { agentRetentionDays: days } = await host.call('settings.get')
    if (days === 0) return
    const failed = await archive.putOlder(now() - days * DAY_MS)
    if (failed.length > 0) host.log.info('finished conversations stay on the board', { failed })
  }
}
