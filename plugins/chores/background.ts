import type { ChoreBook } from './chore-book.js'
import type { ChoreLane } from './chore-lane.js'
import type { ProbeId, ProbeTarget } from './contract.js'

/** The measurements, cheap ones first. */
const BY_COST: readonly ProbeId[] = ['ui', 'bundle', 'outdated', 'audit', 'jscpd', 'knip']
/** The first tick after the start begins a pass, then every sixth. */
export const TICK_MS = 5 * 60_000
const TICKS = 6

/** Dependencies of the passes of the background. */
export interface BackgroundDeps {
  readonly book: Pick<ChoreBook, 'isStale' | 'keepOnly'>
  readonly lane: Pick<ChoreLane, 'offer'>
  readonly repos: () => Promise<readonly string[]>
  readonly isBusy: () => Promise<boolean>
}

/** Measures what was never measured or is old, 5 minutes after the start and then every 30, while no turn runs. */
export class Background {
  readonly #deps: BackgroundDeps
  #ticks = 0

  constructor(deps: BackgroundDeps) {
    this.#deps = deps
  }

  /** Called every 5 minutes. */
  async tick(): Promise<void> {
    if (this.#ticks++ % TICKS === 0) await this.#pass()
  }

  async #pass(): Promise<void> {
    const { book, lane, repos, isBusy } = this.#deps
    if (await isBusy()) return
    const all = await repos()
    await book.keepOnly(all)
    const now = Date.now()
    const stale = BY_COST.flatMap(id =>
      all.flatMap((repo): ProbeTarget[] => (book.isStale(repo, id, now) ? [{ repo, id }] : [])),
    )
    lane.offer(stale)
  }
}
