import { refuse, type Context } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { admitsHost } from '../manifest/engines.js'
import { switchedOff } from '../records/extension-records.js'
import type { InstalledCode, OfferedUpdate } from '../records/kept-extension.js'
import { advisoryIn, listingIn, type Registries } from './registry.js'
import type { ExtensionRegistry } from './registry-file.js'
import { UpdateReviews } from './reviews.js'
import type { ExtensionUpdates, InstalledExtension } from './updates.js'

const FIRST_MS = 60_000
const EVERY_MS = 24 * 60 * 60_000
const OLD_MS = 6 * 60 * 60_000
const CHECKED = 'updates-checked'
const SHA = /^[0-9a-f]{40}$/

/** Checks the registries of installed extensions for updates and advisories. */
export class UpdateChecks {
  readonly #all: LoadedExtensions
  readonly #registries: Registries
  readonly #updates: ExtensionUpdates
  readonly #reviews: UpdateReviews
  #running: Promise<string> | undefined
  #checkedAt: string | undefined

  constructor(all: LoadedExtensions, registries: Registries, updates: ExtensionUpdates) {
    this.#all = all
    this.#registries = registries
    this.#updates = updates
    this.#reviews = new UpdateReviews(all, updates)
  }

  async load(): Promise<void> {
    this.#checkedAt = await this.#all.host.store.get<string>(CHECKED)
  }

  /** Checks soon after the start, and then once a day. */
  start(): void {
    const { host } = this.#all
    const first = setTimeout(() => this.#byItself(), FIRST_MS).unref()
    const every = setInterval(() => this.#byItself(), EVERY_MS).unref()
    host.signal.addEventListener('abort', () => {
      clearTimeout(first)
      clearInterval(every)
    })
  }

  /** The time of the last check; checks again if that is long ago. */
  checkedAt(): string | undefined {
    if (this.#asked().length > 0 && Date.now() - Date.parse(this.#checkedAt ?? '1970-01-01') > OLD_MS) this.#byItself()
    return this.#checkedAt
  }

  /** Checks every registry now, or joins a running check. 424: none could be reached. */
  check(): Promise<string> {
    this.#running ??= this.#check().finally(() => (this.#running = undefined))
    return this.#running
  }

  #asked(): InstalledExtension[] {
    return this.#all.kept
      .all()
      .filter(kept => kept.installed?.registry !== undefined && !kept.removing) as InstalledExtension[]
  }

  #byItself(): void {
    if (this.#asked().length === 0) return
    this.check().catch(error => {
      if (!this.#all.host.signal.aborted)
        this.#all.host.log.info('checking for updates of extensions failed', { error: String(error) })
    })
  }

  async #check(): Promise<string> {
    const addresses = [...new Set(this.#asked().map(({ installed }) => installed.registry!))]
    const found = new Map<string, ExtensionRegistry>()
    let failure: unknown
    for (const address of addresses) {
      try {
        found.set(address, await this.#registries.read(address))
      } catch (error) {
        failure = error
        this.#all.host.log.info('a registry of extensions cannot be read', { address, error: String(error) })
      }
    }
    if (addresses.length > 0 && found.size === 0)
      refuse('dependency', `no registry could be read: ${(failure as Error).message}`, { cause: failure })
    for (const { id, installed } of this.#asked()) {
      const registry = found.get(installed.registry!)
      if (registry) await this.#judge(id, registry)
    }
    this.#checkedAt = new Date().toISOString()
    await this.#all.host.store.set(CHECKED, this.#checkedAt)
    return this.#checkedAt
  }

  /** Stores the entry of an extension in a registry, and applies its policy. */
  async #judge(id: string, registry: ExtensionRegistry): Promise<void> {
    const all = this.#all
    const waiting = await all.turns.with(id, async () => {
      const kept = all.kept.get(id)
      if (!kept?.installed || kept.removing) return undefined
      const { update: before, advisory: warned, ...rest } = kept.installed
      const update = offered(registry, id, kept.installed)
      const advisory = this.#advisory(registry, id, kept.installed)
      const isNew = advisory !== undefined && warned?.reason !== advisory.reason
      const off = isNew && advisory.autoDisabled
      const installed = { ...rest, ...(update && { update }), ...(advisory && { advisory }) }
      const judged = { ...kept, installed }
      const next = off ? switchedOff(judged) : judged
      if (JSON.stringify(next) !== JSON.stringify(kept)) await all.keep(next)
      if (isNew) await record(all.host, { type: 'extension.advisory', outcome: 'ok', extra: { id, ...advisory } })
      const isOffered = update !== undefined && before?.ref !== update.ref
      if (isOffered)
        await record(all.host, { type: 'extension.update-offered', outcome: 'ok', extra: { id, ref: update.ref } })
      return update && next.enabled ? { update, policy: kept.installed.policy.updates } : undefined
    })
    if (waiting?.policy === 'auto') await this.#applyByItself(id, waiting.update)
    if (waiting?.policy === 'agent' && !waiting.update.review) await this.#review(id, waiting.update)
  }

  #advisory(registry: ExtensionRegistry, id: string, installed: InstalledCode): InstalledCode['advisory'] {
    const found = advisoryIn(registry, id, installed)
    if (!found) return undefined
    const { advisory } = installed
    if (advisory?.reason === found.reason) return advisory
    const autoDisabled = installed.policy.advisories === 'auto-disable'
    const at = found.at === '' ? new Date().toISOString() : found.at
    return { reason: found.reason, registry: installed.registry!, at, autoDisabled }
  }

  /** Applies an update that is verified, runs here and adds no power; others need a person. */
  async #applyByItself(id: string, update: OfferedUpdate): Promise<void> {
    try {
      if (update.trust !== 'verified') refuse('conflict', 'its registry did not verify it')
      await this.#updates.apply(id, {}, BY_ITSELF)
    } catch (error) {
      await this.#note(id, update, { needsReview: (error as Error).message.slice(0, 500) })
    }
  }

  /** Lets an agent read an update; whether it is applied, a person decides. */
  async #review(id: string, update: OfferedUpdate): Promise<void> {
    try {
      await this.#note(id, update, { review: await this.#reviews.start(id, update) })
    } catch (error) {
      await this.#note(id, update, { needsReview: (error as Error).message.slice(0, 500) })
    }
  }

  /** Adds to the record of an update what became of it. */
  async #note(id: string, update: OfferedUpdate, said: Pick<OfferedUpdate, 'needsReview' | 'review'>): Promise<void> {
    await this.#all.turns.with(id, async () => {
      const kept = this.#all.kept.get(id)
      const now = kept?.installed?.update
      if (!kept?.installed || now?.ref !== update.ref) return
      const { needsReview: _before, ...rest } = now
      const next = { ...rest, ...said }
      if (JSON.stringify(next) !== JSON.stringify(now))
        await this.#all.keep({ ...kept, installed: { ...kept.installed, update: next } })
    })
  }
}

const BY_ITSELF: Context = {
  caller: { kind: 'plugin', actor: 'sandbox:extensions', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
}

/** The update that a registry offers; the record of a known one is unchanged. */
const offered = (registry: ExtensionRegistry, id: string, installed: InstalledCode): OfferedUpdate | undefined => {
  const listed = listingIn(registry, id)
  if (!listed || listed.trust === 'blocked' || !SHA.test(listed.source.ref)) return undefined
  const { source, version, trust = 'listed', securityFix, engines } = listed
  if (source.ref === installed.current.ref) return undefined
  const { update } = installed
  if (update?.ref === source.ref && update.trust === trust) return update
  return {
    ref: source.ref,
    ...(version !== undefined && { version }),
    url: source.url,
    ...(source.path !== undefined && { path: source.path }),
    trust,
    ...(securityFix !== undefined && { securityFix }),
    registry: installed.registry!,
    at: new Date().toISOString(),
    ...(!admitsHost(engines) && { needsReview: `it is for host versions ${engines}` }),
  }
}
