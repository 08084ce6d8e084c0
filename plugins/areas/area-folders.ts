import { setTimeout as delay } from 'node:timers/promises'
import type { ReachFolder } from '../../sdk/index.js'
import type { StoredArea } from './area-file.js'
import { grantedFolders } from './folders.js'
import { ignored } from '../../sdk/index.js'

/** Dependencies of `AreaFolders`. */
export interface AreaFoldersDeps {
  readonly workspace: string
  readonly signal: AbortSignal
  readonly find: (id: string) => StoredArea | undefined
  /** Ends streams and sessions that rely on what these areas granted. */
  readonly moved: (ids: ReadonlySet<string>) => Promise<void>
  readonly failed: (error: unknown) => void
}

const PAUSE = { least: 500, most: 2000 }
/** How much longer than a check the pause after it is. */
const SHARE = 20
/** Resolved to different folders since the last check. */
const MIXED = ''

/**
 * The folders that areas grant, as last resolved, and whether they still exist: folders are removed and restored
 * without notice.
 */
export class AreaFolders {
  readonly #deps: AreaFoldersDeps
  readonly #answered = new Map<string, string>()
  #looking = false

  constructor(deps: AreaFoldersDeps) {
    this.#deps = deps
  }

  /** What an area grants now; from then on it is checked regularly, once for all callers. */
  async of(area: StoredArea): Promise<ReachFolder[]> {
    const folders = await grantedFolders(this.#deps.workspace, area)
    const [before, now] = [this.#answered.get(area.id), JSON.stringify(folders)]
    this.#answered.set(area.id, before === undefined || before === now ? now : MIXED)
    void this.#begin()
    return folders
  }

  /** Stops checking an area, because its holders were notified already. */
  drop(id: string): void {
    this.#answered.delete(id)
  }

  /** Checks every resolved area, and reports those that grant something else now. */
  async look(): Promise<void> {
    const { find, moved, workspace } = this.#deps
    const stale = new Set<string>()
    for (const id of this.#answered.keys()) {
      const area = find(id)
      const now = area && JSON.stringify(await grantedFolders(workspace, area))
      const before = this.#answered.get(id)
      if (now === undefined) this.drop(id)
      else if (before !== undefined && before !== now) {
        // Immediately, so that later results do not count as reported.
        this.#answered.set(id, now)
        stale.add(id)
      }
    }
    if (stale.size === 0) return
    await moved(stale).catch(error => {
      for (const id of stale) this.#answered.set(id, MIXED)
      throw error
    })
  }

  async #begin(): Promise<void> {
    if (this.#looking) return
    this.#looking = true
    const { failed, signal } = this.#deps
    let pause = PAUSE.least
    while (this.#answered.size > 0 && !signal.aborted) {
      await delay(pause, undefined, { signal, ref: false }).catch(ignored('the wait was cut short'))
      if (signal.aborted) break
      const began = performance.now()
      await this.look().catch(failed)
      pause = Math.min(PAUSE.most, Math.max(PAUSE.least, SHARE * (performance.now() - began)))
    }
    this.#looking = false
  }
}
