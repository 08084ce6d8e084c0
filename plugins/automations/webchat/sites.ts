import type { Store } from '../../../sdk/index.js'
import type { ChatSite } from './contract.js'
import { admitsOrigin, originProblem } from './origins.js'

/** What is stored of a site. */
type StoredSite = Omit<ChatSite, 'allowed'>

/** The dependencies of the count of sites. */
export interface ChatSitesDeps {
  readonly now: () => number
  readonly store: Pick<Store, 'set' | 'delete'>
  /** Called at the first load or refusal of a site in an hour. */
  readonly seen: (automationId: string) => void
}

export const SITES_KEY = 'sites/'
const HOUR = 3_600_000
/** Strangers can name any origin: of many the one seen longest ago goes, those that never loaded it first. */
const MOST = 100
const WRITE_MS = 10_000
/** The longest that an automation's list can have. */
const MOST_CHARACTERS = 300

/** Which sites loaded the chat of an automation or were refused it. */
export class ChatSites {
  readonly #deps: ChatSitesDeps
  readonly #sites = new Map<string, Map<string, StoredSite>>()
  readonly #written = new Map<string, number>()

  constructor(deps: ChatSitesDeps) {
    this.#deps = deps
  }

  load(documents: readonly (readonly [key: string, value: unknown])[]): void {
    const found = documents.filter(([key]) => key.startsWith(SITES_KEY))
    for (const [key, value] of found) {
      const sites = (value as StoredSite[]).map(site => [site.origin, site] as const)
      this.#sites.set(key.slice(SITES_KEY.length), new Map(sites))
    }
  }

  /** Newest first. */
  of(id: string, allowed: readonly string[] | undefined): ChatSite[] {
    const found = [...(this.#sites.get(id)?.values() ?? [])].sort((one, other) => other.lastSeenAt - one.lastSeenAt)
    return found.map(site => ({ ...site, allowed: admitsOrigin(allowed, site.origin) }))
  }

  /** Counts a load, or a refusal. */
  async count(id: string, origin: string, as: 'loads' | 'refused'): Promise<void> {
    if (origin.length > MOST_CHARACTERS || originProblem(origin) !== undefined) return
    const sites = this.#sites.get(id) ?? new Map<string, StoredSite>()
    this.#sites.set(id, sites)
    const now = this.#deps.now()
    const before = sites.get(origin)
    const { loads, refused } = before ?? { loads: 0, refused: 0 }
    const next = { origin, lastSeenAt: now, loads, refused }
    sites.set(origin, { ...next, [as]: next[as] + 1 })
    if (sites.size > MOST) sites.delete(oldest(sites))
    const isNews = !before || now - before.lastSeenAt >= HOUR
    if (isNews) this.#deps.seen(id)
    // Strangers can name new origins as fast as they ask, so a refusal alone is not written at once.
    const isDue = now - (this.#written.get(id) ?? 0) >= WRITE_MS
    if (isDue || (isNews && as === 'loads')) await this.#write(id)
  }

  /** Writes what was counted since the last write. */
  async flush(): Promise<void> {
    for (const id of this.#sites.keys()) await this.#write(id)
  }

  async forget(id: string): Promise<void> {
    this.#sites.delete(id)
    this.#written.delete(id)
    await this.#deps.store.delete(SITES_KEY + id)
  }

  async #write(id: string): Promise<void> {
    this.#written.set(id, this.#deps.now())
    await this.#deps.store.set(SITES_KEY + id, [...(this.#sites.get(id)?.values() ?? [])])
  }
}

const oldest = (sites: ReadonlyMap<string, StoredSite>): string => {
  const rank = ({ loads, lastSeenAt }: StoredSite) => (loads > 0 ? Number.MAX_SAFE_INTEGER / 2 : 0) + lastSeenAt
  return [...sites.values()].reduce((one, other) => (rank(other) < rank(one) ? other : one)).origin
}
