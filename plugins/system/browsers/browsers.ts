import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type Input, refuse, ignored } from '../../../sdk/index.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { withoutNear, type NetworkReach } from '../../../sdk/node/network/policy.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { profileApart } from './apart.js'
import type { BrowserAct, BrowserActed, BrowserCalls, BrowserReading, BrowserSession, BrowserUse } from './contract.js'
import type { ChromiumDeps } from './chromium.js'
import { addressOf } from './gate.js'
import { cookieHosts } from './cookie-hosts.js'
import { fit, quotaExceeded, BROWSER_QUOTA, type DiskQuota } from './quota.js'
import { RunningBrowser, type Start } from './running.js'
import { readPage, takeStep } from './steps.js'

/** Dependencies of the browsers. */
export interface BrowsersDeps extends ChromiumDeps {
  /** The daemon's own listeners, which pages cannot connect to. */
  readonly listeners: () => Promise<readonly Listener[]>
  /** Called whenever a browser or one of its pages changes. */
  readonly changed: (name: string) => void
  /** Called when a browser was closed, or crashed. */
  readonly ended?: (about: Pick<BrowserSession, 'name' | 'conversationId'>) => void
  /** What a conversation reaches; undefined: it has no reach of its own. */
  readonly reachOf?: (conversationId: string) => Promise<NetworkReach | undefined>
  /** The port of the proxy of an exit that is proven now. */
  readonly exitPort?: (id: string) => Promise<number>
  readonly now?: () => number
}

interface Entry {
  readonly about: Pick<BrowserSession, 'name' | 'label' | 'server' | 'conversationId'>
  readonly starting: Promise<RunningBrowser>
  running?: RunningBrowser
  activityAt: number
  finishedAt?: number
  /** Why it was closed, unless a call closed it. */
  why?: string
}

/** Each uses a few hundred megabytes. */
const MOST_RUNNING = 8
const KEPT_MS = 60 * 60_000
/** Names that people choose. */
const PERSON_NAME = /^web-[A-Za-z0-9_-]{1,40}$/
const NO_SIGN_INS = 'web'

/** Every browser of the sandbox, by name: running ones, and for an hour those that ended. */
export class Browsers {
  readonly #deps: BrowsersDeps
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  readonly #profiles = new KeyedMutex()

  constructor(deps: BrowsersDeps) {
    this.#deps = deps
    this.#now = deps.now ?? Date.now
  }

  /** Removes browser files that a killed daemon left behind. */
  async sweep(): Promise<void> {
    await rm(this.#folder('fresh'), { recursive: true, force: true, maxRetries: 5 })
  }

  /** Every browser, the last used first. */
  async list(): Promise<BrowserSession[]> {
    this.#dropExpired()
    await Promise.all([...this.#entries.values()].map(({ running }) => running?.look()))
    return [...this.#entries.values()].map(shown).sort((a, b) => b.activityAt - a.activityAt)
  }

  /** Starts a browser; if its first page cannot be shown, removes it again. */
  async open(asked: Input<BrowserCalls, 'browsers.open'>): Promise<BrowserSession> {
    const { conversationId, profile = NO_SIGN_INS, apart, near = true, url, exit } = asked
    if (url !== undefined) addressOf(url)
    const name = asked.name ?? `${conversationId === undefined ? 'web' : 'agent'}-${randomBytes(5).toString('hex')}`
    this.#dropExpired()
    const before = this.#entries.get(name)
    if (before && before.finishedAt === undefined)
      refuse('conflict', `the browser ${name} is running: use it, or close it first`)
    const live = this.#live
    if (live.length >= MOST_RUNNING) refuse('too-many', `${live.length} browsers are running: close one first`)
    const fresh = profile === NO_SIGN_INS
    const server = fresh || !apart ? profile : `${profile}.${apart.key}`
    const assertUnused = (server: string) => {
      const other = fresh ? undefined : this.#live.find(({ about }) => about.server === server)
      if (other)
        refuse('conflict', `the browser ${other.about.name} uses the sign-ins of ${profile}: use it, or close it first`)
    }
    assertUnused(server)
    const folder = fresh ? this.#folder('fresh', randomBytes(8).toString('hex')) : this.#folder('profiles', profile)
    const reach = () => this.#reach(conversationId, near)
    // One after another: a profile is not copied while a browser starts on it.
    const placed = this.#profiles.with(profile, async () =>
      fresh || !apart
        ? folder
        : profileApart(folder, this.#folder('apart', profile), apart, () => assertUnused(profile)),
    )
    const starting = placed.then(async own => {
      const through = exit === undefined ? {} : { exitPort: await this.#exitPort(exit) }
      return this.#start({ deps: this.#deps, fresh, folder: own, reach, ...through })
    })
    const entry: Entry = {
      about: {
        name,
        label: asked.label ?? name,
        server,
        ...(conversationId !== undefined && { conversationId }),
      },
      starting,
      activityAt: this.#now(),
    }
    this.#entries.set(name, entry)
    try {
      const running = await starting
      entry.running = running
      running.listen(() => this.#deps.changed(name))
      void running.ended.then(() => {
        entry.finishedAt ??= this.#now()
        this.#deps.changed(name)
        this.#deps.ended?.(entry.about)
      })
      void this.#bound(entry, running, await placed).catch(error =>
        this.#deps.log.warn('closing a browser failed', { browser: name, error: String(error) }),
      )
      if (url !== undefined) await running.act({ action: 'open', url })
    } catch (error) {
      await entry.running?.end()
      if (before) this.#entries.set(name, before)
      else this.#entries.delete(name)
      throw error
    }
    this.#deps.changed(name)
    return shown(entry)
  }

  /** Performs one action on one page; with `byPerson`, `open` under an unused name `web-…` starts a browser. */
  async page({ name, ...act }: BrowserAct, byPerson = false): Promise<BrowserActed> {
    this.#dropExpired()
    if (act.action === 'open' && byPerson && PERSON_NAME.test(name) && !this.#entries.has(name)) {
      const url =
        act.url
        ?? refuse('invalid', 'open needs url, found none', { errors: [{ path: 'url', expected: 'an address' }] })
      return { session: await this.open({ name, url }) }
    }
    const { entry, running } = await this.#running(name)
    const capture = await running.act(act).catch(error => {
      if (entry.finishedAt !== undefined || !running.alive) return refuse('conflict', gone(entry))
      throw error
    })
    entry.activityAt = this.#now()
    return { session: shown(entry), ...(capture && { capture }) }
  }

  /** Does something on a page, and reads the page then. */
  async use({ name, pageId, ...step }: BrowserUse): Promise<BrowserReading> {
    this.#dropExpired()
    const { entry, running } = await this.#running(name)
    try {
      await takeStep(running.tab(pageId).page, step)
      // A click may have opened another page, which is the active one then.
      const tab = running.tab(pageId)
      const read = await readPage(tab.page)
      await running.look()
      entry.activityAt = this.#now()
      return { session: shown(entry), pageId: tab.id, ...read }
    } catch (error) {
      if (entry.finishedAt !== undefined || !running.alive) return refuse('conflict', gone(entry))
      throw error
    }
  }

  /** The running browser of a name, and its record. */
  running(name: string): Promise<Pick<Entry, 'about'> & { readonly running: RunningBrowser }> {
    return this.#running(name)
  }

  /** Closes a browser; undefined when it was closed. */
  async end(name: string): Promise<Pick<Entry, 'about'> | undefined> {
    this.#dropExpired()
    const entry = this.#entries.get(name) ?? refuse('not-found', `expected the name of a browser, found ${name}`)
    if (entry.finishedAt !== undefined) return undefined
    const running = await entry.starting
    await running.end()
    return entry
  }

  /** Closes every browser of a conversation. */
  async endOf(conversationId: string): Promise<void> {
    const names = [...this.#entries.values()].flatMap(({ about }) =>
      about.conversationId === conversationId ? [about.name] : [],
    )
    await Promise.all(names.map(name => this.end(name).catch(ignored('it may have ended already'))))
  }

  /** The hosts of which a profile has cookies; of one that is used, those that were stored so far. */
  kept(profile: string): Promise<string[]> {
    return cookieHosts(this.#folder('profiles', profile))
  }

  /** Closes the browsers of a profile, and removes it with its copies. */
  async forget(profile: string): Promise<void> {
    const names = [...this.#entries.values()].flatMap(({ about, finishedAt }) =>
      about.server.split('.')[0] === profile && finishedAt === undefined ? [about.name] : [],
    )
    await Promise.all(names.map(name => this.end(name)))
    for (const folder of [this.#folder('profiles', profile), this.#folder('apart', profile)])
      await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }

  /** Closes every browser. */
  async stop(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map(name => this.end(name).catch(ignored('it may have ended already'))))
  }

  #exitPort(id: string): Promise<number> {
    const { exitPort } = this.#deps
    return exitPort ? exitPort(id) : refuse('unavailable', `the exit ${id} cannot be used: there are no exits here`)
  }

  async #start(start: Start): Promise<RunningBrowser> {
    const { folder, fresh } = start
    const lost = fresh ? undefined : await fit(folder, this.#quota.folder)
    if (lost !== undefined)
      this.#deps.log.warn(`a profile of a browser took more than ${mebibytes(this.#quota.folder)}: removed ${lost}`, {
        folder,
      })
    return RunningBrowser.start(start)
  }

  /** Closes a browser that exceeds its disk quota. */
  async #bound(entry: Entry, running: RunningBrowser, folder: string): Promise<void> {
    const most = this.#quota.folder
    if (!(await quotaExceeded(folder, most, running.ended))) return
    entry.why = `it was closed because the stored data of its pages grew beyond ${mebibytes(most)}`
    this.#deps.log.warn('a browser was closed because it exceeded its disk quota', {
      browser: entry.about.name,
      bytes: most,
    })
    await running.end()
  }

  get #live(): Entry[] {
    return [...this.#entries.values()].filter(({ finishedAt }) => finishedAt === undefined)
  }

  get #quota(): DiskQuota {
    return this.#deps.room ?? BROWSER_QUOTA
  }

  #dropExpired(): void {
    const oldest = this.#now() - KEPT_MS
    for (const [name, { finishedAt = Infinity }] of this.#entries) if (finishedAt < oldest) this.#entries.delete(name)
  }

  async #running(name: string): Promise<{ entry: Entry; about: Entry['about']; running: RunningBrowser }> {
    const entry = this.#entries.get(name) ?? refuse('not-found', `expected the name of a browser, found ${name}`)
    const running = entry.running ?? (await entry.starting)
    return running.alive && entry.finishedAt === undefined
      ? { entry, about: entry.about, running }
      : refuse('conflict', gone(entry))
  }

  /** What the pages of a browser reach now. */
  async #reach(conversationId: string | undefined, near: boolean): Promise<NetworkReach> {
    const [listeners, found] = await Promise.all([
      this.#listeners(),
      conversationId === undefined ? undefined : this.#deps.reachOf?.(conversationId),
    ])
    if (!found) return { near, listeners }
    const { own } = found
    const reach = { ...found, listeners, ...(own && { own: { ...own, rules: { ...own.rules, listeners } } }) }
    return near ? reach : withoutNear(reach, 'this browser is kept from it')
  }

  async #listeners(): Promise<Listener[]> {
    const gates = [...this.#entries.values()].flatMap(({ running }) =>
      running?.alive ? [{ host: '127.0.0.1', port: running.port }] : [],
    )
    return [...(await this.#deps.listeners()), ...gates]
  }

  #folder(...names: string[]): string {
    return join(this.#deps.place.folder, 'browsers', ...names)
  }
}

const gone = ({ about: { name }, why = 'it was closed, or it crashed' }: Entry): string =>
  `the browser ${name} is not running: ${why}; open another`

const mebibytes = (bytes: number): string => `${Math.round(bytes / 1024 ** 2)} MiB`

const shown = ({ about, running, activityAt, finishedAt }: Entry): BrowserSession => ({
  ...about,
  running: running?.alive === true && finishedAt === undefined,
  activityAt,
  ...(finishedAt !== undefined && { finishedAt }),
  pages: running?.pages ?? [],
})
