import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { GroupRoute, LoadedGroup } from '../../../sdk/kernel.js'
import { HOST_API_VERSION } from '../manifest/engines.js'
import { comparedPowers } from '../powers/compared.js'
import type { ExtensionPower } from '../powers/power.js'
import { ExtensionUsage } from '../records/extension-usage.js'
import { KeptExtensions } from '../records/extension-records.js'
import type { ExtensionApproval, KeptExtension } from '../records/kept-extension.js'
import type { ExtensionProcessStatus } from '../processes/contract.js'
import type { ExtensionProcesses } from '../processes/extension-processes.js'
import {
  QUARANTINED,
  type BackendStatus,
  type ExtensionRecords,
  type ExtensionRuntime,
  type RunnableExtension,
} from '../runtime.js'
import { ExtensionSettings } from '../settings/extension-settings.js'
import { ExtensionCatalog, type LoadedExtension } from './catalog.js'
import { ExtensionWatcher } from './folder-watcher.js'

const GONE_MS = 30 * 24 * 60 * 60_000

/** All loaded extensions, their records, and their running backends. */
export class LoadedExtensions implements ExtensionRecords {
  readonly host: Host
  readonly kept: KeptExtensions
  readonly usage: ExtensionUsage
  readonly catalog: ExtensionCatalog
  readonly values: ExtensionSettings
  /** One change of an extension at a time. */
  readonly turns = new KeyedMutex()
  #runtime: ExtensionRuntime | undefined
  #processes: ExtensionProcesses | undefined
  readonly #watcher: ExtensionWatcher
  /** The revision that each backend was started from. */
  readonly #started = new Map<string, string>()
  /** The extensions at the last reconciliation of the backends. */
  #settled: ReadonlyMap<string, string> = new Map()
  #groups: readonly LoadedGroup[] = []
  #build = ''
  #open = false
  #loading: Promise<void> | undefined

  constructor(host: Host) {
    const { workspace } = host.place
    this.host = host
    this.kept = new KeptExtensions(host.journal)
    this.usage = new ExtensionUsage(host.store)
    this.values = new ExtensionSettings(host)
    this.catalog = new ExtensionCatalog({
      workspace,
      code: this.codeFolder,
      dev: this.devFolder,
      kept: this.kept,
    })
    this.#watcher = new ExtensionWatcher(workspace, names => void this.#rescanned(names))
    host.signal.addEventListener('abort', () => this.#watcher.stop())
  }

  /** The runtime of their backends, which also calls this class; set before anything starts. */
  runBackendsOn(runtime: ExtensionRuntime): void {
    this.#runtime = runtime
  }

  /** Their background programs; comes before anything is started. */
  runProcessesOn(processes: ExtensionProcesses): void {
    this.#processes = processes
  }

  /** The folder with the code of installed extensions: `<id>/<commit>/`. */
  get codeFolder(): string {
    return join(this.host.place.folder, 'code')
  }

  /** Where the copies lie that extensions run from while somebody works on them: `<id>/<revision>/`. */
  get devFolder(): string {
    return join(this.host.place.folder, 'dev')
  }

  dataFolder(id: string): string {
    return join(this.host.place.folder, 'data', id)
  }

  /** Reads the records and the folders, once; starts nothing yet. */
  load(): Promise<void> {
    return (this.#loading ??= this.#load())
  }

  async #load(): Promise<void> {
    const [{ groups }, { build }] = await Promise.all([this.host.call('kernel.groups'), this.host.call('kernel.info')])
    this.#groups = groups
    this.#build = build
    await Promise.all([this.kept.load(), this.usage.load(), this.#watcher.start()])
    for (const { id, installed } of this.kept.all()) if (installed) await this.catalog.reload(id)
    await this.catalog.rescan()
    await this.#forgetGone()
  }

  /** Starts approved extensions, from here on. */
  async open(): Promise<void> {
    this.#open = true
    if (this.catalog.loaded.size > 0 || this.kept.all().length > 0) await this.#recoverProcesses()
    await Promise.all([...this.catalog.loaded.keys()].map(id => this.converge(id)))
  }

  async #recoverProcesses(): Promise<void> {
    const runnable = async (id: string) => {
      const found = this.runnable(id)
      return found && this.asRunnable(found)
    }
    await this.#processes
      ?.recover(runnable)
      .catch(error => this.host.log.warn('taking over programs of extensions failed', { error: String(error) }))
  }

  async close(): Promise<void> {
    this.#open = false
    this.#watcher.stop()
    await this.usage.flush()
  }

  get groups(): readonly LoadedGroup[] {
    return this.#groups
  }

  get build(): string {
    return this.#build
  }

  get routes(): readonly GroupRoute[] {
    return this.#groups.flatMap(({ routes }) => routes)
  }

  isBuiltin(id: string): boolean {
    return this.#groups.some(({ name }) => id === `sandbox.${name}`)
  }

  /** An extension that is not built in. 404: no such extension. */
  get(id: string): LoadedExtension {
    return this.catalog.loaded.get(id) ?? noExtension(id)
  }

  isEnabled(id: string): boolean {
    return this.kept.get(id)?.enabled ?? true
  }

  /** The powers that were approved: by a person, or with what was installed. */
  approvalOf(id: string): ExtensionApproval | undefined {
    const record = this.kept.get(id)
    const { dev, current } = record?.installed ?? {}
    return dev?.approval ?? current?.approval ?? record?.approval
  }

  /** Whether it requests a power that was not approved. */
  isPending({ id, powers }: { readonly id: string; readonly powers: readonly ExtensionPower[] }): boolean {
    const approval = this.approvalOf(id)
    return !approval || comparedPowers(powers, approval.powers).added.length > 0
  }

  /** The extension where it may run now. */
  runnable(id: string): LoadedExtension | undefined {
    const found = this.catalog.loaded.get(id)
    if (!found?.compatible || !this.#open || !this.isEnabled(id) || this.isPending(found)) return undefined
    return this.kept.get(id)?.removing ? undefined : found
  }

  /** Starts and stops backends after a change; `anew` restarts one. */
  async converge(id: string, { anew = false } = {}): Promise<void> {
    const wanted = this.runnable(id)
    await this.#convergeBackend(id, wanted, anew)
    await this.#processes?.converge(id, wanted && (await this.asRunnable(wanted)))
  }

  /** Starts a backend again that crashed too often. */
  async endQuarantine(id: string): Promise<void> {
    const found = this.catalog.loaded.get(id)
    if (found && this.backendOf(found)?.detail?.startsWith(QUARANTINED)) await this.converge(id, { anew: true })
  }

  /** What runs of an extension, with its data folder. */
  async asRunnable({ id, version, source, dir, revision, manifest }: LoadedExtension): Promise<RunnableExtension> {
    const dataDir = this.dataFolder(id)
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    return { id, version, source, dir, dataDir, revision, manifest }
  }

  /** How the programs stand that start by themselves. */
  autoStarted({ id, manifest }: LoadedExtension): ExtensionProcessStatus[] {
    const declared = (manifest.contributes?.processes ?? []).filter(({ autoStart }) => autoStart)
    return declared.flatMap(({ name }) => this.#processes?.status(id, name) ?? [])
  }

  async #convergeBackend(id: string, wanted: LoadedExtension | undefined, anew: boolean): Promise<void> {
    const runtime = this.#runtime
    if (!runtime) return
    const server = wanted?.manifest.server
    if (!wanted || server === undefined || !wanted.folder.files.has(server)) {
      if (!this.#started.delete(id)) return
      return runtime.stop(id, this.isEnabled(id) ? 'it may not run as it is now' : 'it is switched off')
    }
    if (!anew && this.#started.get(id) === wanted.revision) return
    this.#started.set(id, wanted.revision)
    await runtime.start(await this.asRunnable(wanted))
  }

  /** The status of a backend; undefined: it has none. */
  backendOf({ id, manifest, compatible, engines, folder }: LoadedExtension): BackendStatus | undefined {
    const { server } = manifest
    if (server === undefined) return undefined
    if (!compatible)
      return { state: 'incompatible', detail: `it is for host versions ${engines}; this one is ${HOST_API_VERSION}` }
    if (!this.runnable(id)) return { state: 'stopped' }
    if (!folder.files.has(server)) return { state: 'absent', detail: `${server} is not there` }
    return this.#runtime?.status(id) ?? { state: 'stopped' }
  }

  /** What its running backend asked for and does not get. */
  backendProblems(id: string): string[] {
    return this.runnable(id) ? (this.#runtime?.problems(id) ?? []) : []
  }

  refused(id: string): 'absent' | 'off' | 'pending' | undefined {
    const found = this.catalog.loaded.get(id)
    if (!found?.compatible || this.kept.get(id)?.removing) return 'absent'
    if (!this.isEnabled(id)) return 'off'
    return this.isPending(found) ? 'pending' : undefined
  }

  async settings(id: string): Promise<{ [key: string]: string | number | boolean }> {
    const found = this.get(id)
    const { settings, secretsSet } = await this.values.of(id, found.manifest)
    return { ...settings, ...Object.fromEntries(secretsSet.map(key => [key, `{{secret:ext/${id}/${key}}}`])) }
  }

  used(id: string, entry: string): void {
    this.usage.count(id, entry)
  }

  /** Its settings have other values. */
  settingsChanged(id: string, keys: string[]): void {
    this.#runtime?.settingsChanged(id, keys)
  }

  changed(id: string): void {
    this.host
      .call('kernel.events.publish', { domain: 'extensions', key: id })
      .catch(error => this.host.log.warn('publishing a change of extensions failed', { error: String(error) }))
  }

  /** Stores a new record, starts and stops backends, and publishes the change. */
  async keep(record: KeptExtension, how?: { anew?: boolean }): Promise<void> {
    await this.kept.put(record)
    await this.converge(record.id, how)
    this.changed(record.id)
  }

  /** Reads changed folders again; backends follow soon. */
  async refresh(): Promise<void> {
    await this.catalog.refresh()
    void this.#settle().catch(error => this.#failed(error))
  }

  /** Reads changed folders of the workspace again, and starts and stops backends. */
  async #rescanned(names: ReadonlySet<string>): Promise<void> {
    try {
      await this.catalog.rescan(names)
      await this.#forgetGone()
      await this.#settle()
    } catch (error) {
      this.#failed(error)
    }
  }

  /** Reconciles the backends with the extensions, and publishes the differences. */
  async #settle(): Promise<void> {
    const { loaded, invalid } = this.catalog
    const now = new Map([
      ...[...loaded.values()].map(found => [found.id, `${found.revision} ${this.isPending(found)}`] as const),
      ...invalid.map(({ dir, error }) => [dir, error] as const),
    ])
    const changed = [...new Set([...now.keys(), ...this.#settled.keys()])].filter(
      key => now.get(key) !== this.#settled.get(key),
    )
    this.#settled = now
    for (const key of changed) {
      await this.turns.with(key, () => this.converge(key))
      this.changed(key)
    }
  }

  #failed(error: unknown): void {
    if (!this.host.signal.aborted)
      this.host.log.warn('reading the extensions of the workspace failed', { error: String(error) })
  }

  /** Records missing folders, and drops the records of those missing for 30 days. */
  async #forgetGone(): Promise<void> {
    for (const record of this.kept.all()) {
      if (record.source !== 'workspace' || record.removing) continue
      const unusable = record.folder !== undefined && this.catalog.isUnusable(record.folder)
      const there = this.catalog.loaded.has(record.id) || unusable
      const { goneAt, ...rest } = record
      if (there && goneAt !== undefined) await this.kept.put(rest)
      if (!there && goneAt === undefined) await this.kept.put({ ...rest, goneAt: Date.now() })
      if (!there && goneAt !== undefined && Date.now() - goneAt > GONE_MS) await this.kept.delete(record.id)
    }
  }
}

/** Refuses an unknown id. */
export const noExtension = (id: string): never =>
  refuse('not-found', `there is no extension ${JSON.stringify(id.slice(0, 121))}: GET /extensions lists them`)
