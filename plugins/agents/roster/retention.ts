import type { Host } from '../../../sdk/index.js'
import { repeat } from '../../../sdk/node/concurrency/repeat.js'
import type { Archive } from './archive.js'

const DAY_MS = 86_400_000
const EVERY_MS = 3_600_000

/** The dependencies of `Retention`. */
export interface RetentionDeps {
  readonly host: Pick<Host, 'call' | 'log' | 'on' | 'serves' | 'signal'>
  readonly archive: Pick<Archive, 'putOlder'>
  readonly now: () => number
}

/** Archives finished conversations after the number of days in the settings. */
export class Retention {
  readonly #deps: RetentionDeps
  #sweeping: Promise<void> | undefined

  constructor(deps: RetentionDeps) {
    this.#deps = deps
  }

  /** Sweeps when the sandbox is ready, without delaying it, and every hour until the group stops. */
  begin(): void {
    const { host } = this.#deps
    host.on('daemon.ready', () => void this.sweep())
    repeat(host, EVERY_MS, 'putting away old conversations', () => this.sweep())
  }

  /**
   * Runs one sweep at a time; concurrent callers wait for the same one. Failures are logged and retried by the next
   * sweep.
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
    // Without the settings nothing is archived, since no one could turn it off.
    if (!(await host.serves('settings.get'))) return
    const { agentRetentionDays: days } = await host.call('settings.get')
    if (days === 0) return
    const failed = await archive.putOlder(now() - days * DAY_MS)
    if (failed.length > 0) host.log.info('finished conversations stay on the board', { failed })
  }
}
