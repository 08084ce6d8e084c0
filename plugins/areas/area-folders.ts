import { setTimeout as delay } from 'node:timers/promises'
import type { ReachFolder } from '../../sdk/index.js'
import type { StoredArea } from './area-file.js'
import { grantedFolders } from './folders.js'

/** What looking after the ground of areas takes. */
export interface AreaFoldersDeps {
  readonly workspace: string
  readonly signal: AbortSignal
  readonly find: (id: string) => StoredArea | undefined
  /** Ends what stands on what these areas granted. */
  readonly moved: (ids: ReadonlySet<string>) => Promise<void>
  readonly failed: (error: unknown) => void
}

const PAUSE = { least: 500, most: 2000 }
/** How much longer than a look the pause after it is. */
const SHARE = 20
/** Answered in more than one way since the last look. */
const MIXED = ''

/**
 * What was answered of the ground of areas, and whether it still holds: folders go and come back without anybody
 * telling.
 */
export class AreaFolders {
  readonly #deps: AreaFoldersDeps
  readonly #answered = new Map<string, string>()
  #looking = false

  constructor(deps: AreaFoldersDeps) {
    this.#deps = deps
  }

  /** What an area grants now; from then on it is looked at, once for all who were answered. */
  async of(area: StoredArea): Promise<ReachFolder[]> {
    const folders = await grantedFolders(this.#deps.workspace, area)
    const [before, now] = [this.#answered.get(area.id), JSON.stringify(folders)]
    this.#answered.set(area.id, before === undefined || before === now ? now : MIXED)
    void this.#begin()
    return folders
  }

  /** Whoever stands on what this area granted was told already. */
  forget(id: string): void {
    this.#answered.delete(id)
  }

  /** Looks at every area that was answered of, and tells of those that grant something else by now. */
  async look(): Promise<void> {
    const { find, moved, workspace } = this.#deps
    const stale = new Set<string>()
    for (const id of this.#answered.keys()) {
      const area = find(id)
      const now = area && JSON.stringify(await grantedFolders(workspace, area))
      const before = this.#answered.get(id)
      if (now === undefined) this.forget(id)
      else if (before !== undefined && before !== now) {
        // At once, so that what is answered from here on is not taken for told.
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
      await delay(pause, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) break
      const began = performance.now()
      await this.look().catch(failed)
      pause = Math.min(PAUSE.most, Math.max(PAUSE.least, SHARE * (performance.now() - began)))
    }
    this.#looking = false
  }
}
