import { setTimeout as later } from 'node:timers/promises'
import type { Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { LoadedExtension } from '../listing/catalog.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import type { KeptExtensions } from '../records/extension-records.js'
import type { UpdateHealth } from '../records/kept-extension.js'

const PROBES_MS = [15_000, 60_000]

/** What of the extensions the watch reads and changes. */
export type WatchedExtensions = Pick<LoadedExtensions, 'turns' | 'keep' | 'get' | 'backendOf' | 'autoStarted'> & {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal'>
  readonly kept: Pick<KeptExtensions, 'all' | 'get' | 'put'>
}

/** Checks twice after an update whether the declared parts are running. */
export class HealthWatch {
  readonly #all: WatchedExtensions
  readonly #revert: (id: string, health: UpdateHealth) => Promise<{ from: string; ref: string }>

  readonly #probesMs: readonly number[]

  constructor(
    all: WatchedExtensions,
    revert: (id: string, health: UpdateHealth) => Promise<{ from: string; ref: string }>,
    probesMs = PROBES_MS,
  ) {
    this.#all = all
    this.#revert = revert
    this.#probesMs = probesMs
  }

  /** Begins the checks of an earlier daemon again: what it started has ended with it, and is only starting now. */
  resume(): void {
    for (const { id, installed } of this.#all.kept.all()) if (installed?.health?.state === 'watching') this.watch(id)
  }

  watch(id: string): void {
    const { host } = this.#all
    const ref = this.#all.kept.get(id)?.installed?.current.ref
    void this.#probes(id, ref).catch(error => {
      if (!host.signal.aborted) host.log.warn('watching an update failed', { id, error: String(error) })
    })
  }

  async #probes(id: string, ref: string | undefined): Promise<void> {
    const { host, turns } = this.#all
    const began = performance.now()
    for (const ms of this.#probesMs) {
      await later(began + ms - performance.now(), undefined, { signal: host.signal, ref: false })
      if (await turns.with(id, () => this.#probe(id, ref, ms === this.#probesMs.at(-1)))) return
    }
  }

  /** True: the watch has ended. */
  async #probe(id: string, ref: string | undefined, last: boolean): Promise<boolean> {
    const all = this.#all
    const kept = all.kept.get(id)
    const { installed } = kept ?? {}
    if (!kept || !installed || installed.current.ref !== ref || installed.health?.state !== 'watching') return true
    const { health, ...rest } = installed
    if (!kept.enabled || kept.removing || installed.dev) {
      await all.kept.put({ ...kept, installed: rest })
      return true
    }
    const down = whatIsDown(all, all.get(id))
    const at = new Date().toISOString()
    if (down === undefined) {
      if (last) await all.keep({ ...kept, installed: { ...rest, health: { ...health, state: 'healthy', at } } })
      return last
    }
    const unhealthy: UpdateHealth = { ...health, state: 'unhealthy', detail: down.slice(0, 500), at }
    if (installed.policy.updates === 'auto' && installed.previous) {
      const { from } = await this.#revert(id, { ...unhealthy, fromRef: ref!, autoReverted: true })
      await record(all.host, { type: 'extension.auto-reverted', outcome: 'ok', extra: { id, from } })
    } else await all.keep({ ...kept, installed: { ...rest, health: unhealthy } })
    return true
  }
}

/** What of an extension should run and does not, as a sentence. */
const whatIsDown = (all: WatchedExtensions, extension: LoadedExtension): string | undefined => {
  const backend = all.backendOf(extension)
  const parts = [
    ...(backend ? [{ what: 'its backend', ...backend }] : []),
    ...all.autoStarted(extension).map(({ name, state, detail }) => ({ what: `its process ${name}`, state, detail })),
  ]
  const down = parts.find(({ state }) => state !== 'running')
  return down && `${down.what} is ${down.state}${down.detail === undefined ? '' : `: ${down.detail}`}`
}
