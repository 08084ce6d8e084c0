import { readdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { Refusal, refuse, type Context, type Host, type Ok } from '../../sdk/index.js'
import { accessViewFor } from '../../sdk/node/access/asked-reach.js'
import { record } from '../../sdk/node/record/record.js'
import { carrierNamed, chooseCarrier } from './carriers/choosing.js'
import { limitOutput } from './carriers/carrier-program.js'
import type { DiskDetail, DiskFolders, DiskLine, DiskLink, DiskState } from './contract.js'
import { checkSignIn, checkTarget, DISK_KIND, diskOf, sourceOf, type DiskEntry, type DiskSecrets } from './entry.js'
import { isLinked, linkPlace, makeLink, removeLink } from './link.js'
import { detach, endCarriers, isMounted } from './machine/detaching.js'
import { ShareHealths } from './machine/health.js'
import { folderHolders, namedHolders } from './machine/holders.js'
import { readMountTable, type MountRow } from './machine/mount-table.js'
import { mountShare, type MountOrder } from './mounting.js'
import { DiskPlaces } from './places.js'
import { shareAddress } from './servers/address.js'
import { MountSteps } from './steps.js'
import { DiskStore, type StoredDisk } from './stored.js'

type DisksHost = Pick<Host, 'call' | 'serves' | 'place' | 'signal' | 'log' | 'store' | 'files'>

interface DiskWork {
  readonly kind: 'mounting' | 'unmounting'
  /** Ends a mount. */
  readonly stop: AbortController
  readonly over: Promise<void>
}

const FLUSH_MS = 30_000
const FORCE_MS = 5_000
const STALE_MS = 5_000
const TIDY_MS = 15_000

/** The configured shares, and what is done with them. */
export class Disks {
  readonly #host: DisksHost
  readonly #places: DiskPlaces
  readonly #store: DiskStore
  readonly #healths: ShareHealths
  readonly #work = new Map<string, DiskWork>()
  /** The last published state of each share. */
  readonly #states = new Map<string, string>()

  constructor(host: DisksHost) {
    this.#host = host
    this.#places = new DiskPlaces(host.place)
    this.#store = new DiskStore(host)
    this.#healths = new ShareHealths(host.signal)
  }

  async list({ caller }: Pick<Context, 'caller'>): Promise<DiskLink[]> {
    const [entries, table] = await Promise.all([this.#entries(), readMountTable()])
    const disks = await Promise.all(entries.map(entry => this.#shown(entry, table)))
    const view = await accessViewFor(this.#host, caller)
    if (view.reach === undefined) return disks
    // Where a link lies in the workspace is only for those who reach its folder.
    return Promise.all(
      disks.map(async ({ link, ...disk }) => ({
        ...disk,
        ...(link !== undefined && (await view.sees(dirname(link))) && { link }),
      })),
    )
  }

  async read(id: string): Promise<DiskDetail> {
    const entry = await this.#find(id)
    const [disk, stored, log, { carriers, missing }] = await Promise.all([
      this.#shown(entry, await readMountTable()),
      this.#store.get(id),
      this.#store.log(id),
      chooseCarrier(entry),
    ])
    const mounted = disk.state === 'mounted' || disk.state === 'stale'
    const { kind, sha256, pinnedAt } = stored.pin ?? {}
    return {
      ...disk,
      missing: missing.map(one => ({ ...one })),
      carriers: carriers.map(one => ({ ...one })),
      users: mounted ? await folderHolders(disk.mountPoint) : [],
      ...(kind && { pin: { kind, sha256: sha256!, pinnedAt: pinnedAt! } }),
      log,
      ...(stored.logAt !== undefined && { logAt: stored.logAt }),
    }
  }

  /** A share as it is now, by its configuration. */
  async shown(entry: DiskEntry): Promise<DiskLink> {
    return this.#shown(entry, await readMountTable())
  }

  /** Mounts a share; what forbids it is refused before the first step. */
  async mount(id: string, context?: Context): Promise<AsyncIterable<DiskLine, { disk: DiskLink }>> {
    const entry = await this.#find(id)
    const { promise: over, resolve: release } = Promise.withResolvers<void>()
    const stop = new AbortController()
    this.#begin(id, { kind: 'mounting', stop, over })
    const end = () => {
      this.#work.delete(id)
      release()
    }
    const steps = new MountSteps()
    try {
      const ready = await this.#ready(entry)
      if (!ready) {
        end()
        steps.log('it is mounted already')
        steps.finish(await this.shown(entry))
        return steps
      }
      const order = { entry, ...ready, report: (line: string) => steps.log(line), stop: stop.signal }
      void this.#mounting(order, steps, context).finally(end)
      return steps
    } catch (error) {
      end()
      throw error
    }
  }

  async #mounting(order: MountOrder & { stale: boolean }, steps: MountSteps, context?: Context): Promise<void> {
    const { entry, carrier, stale } = order
    const { id } = entry
    const source = sourceOf(entry.config)
    this.#publish(id, 'mounting')
    steps.state('mounting')
    try {
      if (stale) {
        steps.log('its server does not answer: it is detached first')
        await detach(await this.#places.mountPoint(id), FORCE_MS, 'once')
        await this.#left(entry, await this.#store.get(id))
      }
      await mountShare({ host: this.#host, places: this.#places, store: this.#store, healths: this.#healths }, order)
      this.#work.delete(id)
      const disk = await this.shown(entry)
      this.#publish(id, disk.state)
      const extra = { id, source, via: carrier.via, readOnly: String(disk.readOnly) }
      await record(this.#host, { type: 'disk.mounted', outcome: 'ok', extra }, context)
      steps.state('mounted')
      steps.finish(disk)
    } catch (error) {
      this.#work.delete(id)
      this.#publish(id, 'failed')
      const message = (error as Error).message
      await record(
        this.#host,
        { type: 'disk.failed', outcome: 'error', error: message, extra: { id, source } },
        context,
      )
      steps.fail(error)
    }
  }

  /** Everything that mounting needs; undefined: it is mounted. */
  async #ready(
    entry: DiskEntry,
  ): Promise<(Pick<MountOrder, 'secrets' | 'carrier'> & { readonly stale: boolean }) | undefined> {
    const { id, config } = entry
    const mountPoint = await this.#places.mountPoint(id)
    const row = (await readMountTable()).get(mountPoint)
    if (row && !row.via) refuse('conflict', `${mountPoint} is another mount (${row.type}): take it off first`)
    const stale = row !== undefined && !(await this.#healths.of(mountPoint)).answers
    if (row && !stale) return undefined
    checkTarget(config, {})
    const secrets = await this.#secrets(entry)
    checkTarget(config, secrets)
    checkSignIn(entry, secrets)
    const { chosen: carrier, reason } = await chooseCarrier(entry)
    if (!carrier) return refuse('missing-program', reason!)
    if (!row && (await readdir(mountPoint).catch(() => [])).length > 0)
      refuse('conflict', `${mountPoint} is not empty: move what is in it`)
    const { link } = config
    if (link !== undefined && !(await isLinked(this.#host.place.workspace, link, mountPoint)))
      await linkPlace(this.#host.place.workspace, link)
    return { secrets, carrier, stale }
  }

  async unmount(id: string, force: boolean, context?: Context): Promise<Ok> {
    const entry = await this.#find(id)
    const busy = this.#work.get(id)
    if (busy?.kind === 'mounting') {
      busy.stop.abort()
      await busy.over
      if (!(await isMounted(await this.#places.mountPoint(id)))) return { ok: true }
    }
    const { promise: over, resolve: release } = Promise.withResolvers<void>()
    this.#begin(id, { kind: 'unmounting', stop: new AbortController(), over })
    try {
      if (!(await this.#unmounted(entry, force))) return { ok: true }
      const extra = { id, forced: String(force) }
      await record(this.#host, { type: 'disk.unmounted', outcome: 'ok', extra }, context)
      return { ok: true }
    } finally {
      this.#work.delete(id)
      release()
    }
  }

  /** Takes a share off; false: it was not mounted. */
  async #unmounted(entry: DiskEntry, force: boolean): Promise<boolean> {
    const { id } = entry
    const mountPoint = await this.#places.mountPoint(id)
    const row = (await readMountTable()).get(mountPoint)
    if (row && !row.via) refuse('conflict', `${mountPoint} is another mount (${row.type}), which is not taken off here`)
    if (!row) {
      await this.#left(entry, await this.#store.get(id))
      return false
    }
    if (!force) await this.#detachUnused(entry, mountPoint, row)
    else {
      const said = await detach(mountPoint, FORCE_MS, 'once')
      if (said !== undefined) refuse('failed', `${id} is still mounted: ${said}`)
    }
    const notice = force ? undefined : await this.#tidied(entry, row)
    await this.#left(entry, await this.#store.get(id), notice)
    return true
  }

  async #detachUnused({ id }: DiskEntry, mountPoint: string, row: MountRow): Promise<void> {
    const stale = !(await this.#healths.of(mountPoint)).answers
    const late = AbortSignal.timeout(FLUSH_MS)
    if (!stale && (await carrierNamed(row.via)?.flush?.(this.#places.cache(id), late)) === false)
      refuse('conflict', `${id} has data that could not be written within ${FLUSH_MS / 1000} s: force loses it`)
    const said = await detach(mountPoint, stale ? STALE_MS : FLUSH_MS)
    if (said === undefined) return
    const holders = await folderHolders(mountPoint)
    if (holders.length > 0) refuse('conflict', `${id} is in use by ${namedHolders(holders)}: end that, or force it`)
    refuse('conflict', `${id} could not be unmounted: ${said}; force detaches it at once`)
  }

  /** Puts the server in order, where its carrier left something there; a failure changes nothing. */
  async #tidied(entry: DiskEntry, row: MountRow): Promise<string | undefined> {
    const carrier = carrierNamed(row.via)
    if (!carrier?.tidy) return undefined
    const signal = AbortSignal.any([this.#host.signal, AbortSignal.timeout(TIDY_MS)])
    try {
      const [secrets, address] = [await this.#secrets(entry), await shareAddress(this.#host, entry.config, signal)]
      return await carrier.tidy({ entry, secrets, address, signal })
    } catch (error) {
      this.#host.log.warn('a share could not be put in order after its unmount', { id: entry.id, error: String(error) })
      return undefined
    }
  }

  /** Removes what a mount that is gone left, and publishes that. */
  async #left(entry: Pick<DiskEntry, 'id'>, stored: StoredDisk, notice?: string): Promise<void> {
    const { id } = entry
    const { since, via: _, link, aside: ___, mounting, notice: __, ...rest } = stored
    const mountPoint = await this.#places.mountPoint(id)
    if (link !== undefined) await removeLink(this.#host.place.workspace, link, mountPoint)
    await this.#places.removeCredentials(id)
    if (since === undefined && !mounting && notice === undefined) return
    await this.#store.set(id, { ...rest, ...(notice !== undefined && { notice }) })
    this.#publish(id, 'unmounted')
  }

  async #shown(entry: DiskEntry, table: ReadonlyMap<string, MountRow>): Promise<DiskLink> {
    const { id, config } = entry
    const [mountPoint, stored] = [await this.#places.mountPoint(id), await this.#store.get(id)]
    const row = table.get(mountPoint)
    const base = {
      id,
      provider: config.provider,
      source: sourceOf(config),
      mountPoint,
      autoMount: config.autoMount !== 'off',
    }
    const linked = stored.link !== undefined && (await isLinked(this.#host.place.workspace, stored.link, mountPoint))
    const off = { ...base, readOnly: config.readOnly === 'on' }
    const work = this.#work.get(id)
    if (work?.kind === 'mounting') return { ...off, state: 'mounting' }
    if (row?.via) {
      const { answers, ...rest } = await this.#healths.of(mountPoint)
      return {
        ...base,
        readOnly: row.readOnly,
        state: answers ? 'mounted' : 'stale',
        via: row.via,
        ...(stored.since !== undefined && { since: stored.since }),
        ...(linked && { link: stored.link! }),
        ...rest,
      }
    }
    if (row) return { ...off, state: 'failed', detail: `its folder is another mount (${row.type})` }
    // Somebody took the mount off, or its carrier ended.
    if (stored.since !== undefined && !work) await this.#left(entry, stored)
    const { chosen, reason } = await chooseCarrier(entry)
    if (!chosen) return { ...off, state: 'unavailable', detail: reason! }
    if (stored.failed !== undefined) return { ...off, state: 'failed', detail: stored.failed }
    return { ...off, state: 'unmounted', ...(stored.notice !== undefined && { detail: stored.notice }) }
  }

  /** Looks at what is mounted and publishes what changed by itself, such as a server that does not answer. */
  async look(): Promise<void> {
    const up = new Set((await this.#store.all()).filter(([, { since }]) => since !== undefined).map(([id]) => id))
    if (up.size === 0) return
    const [entries, table] = await Promise.all([this.#entries(), readMountTable()])
    await Promise.all(
      entries.map(async entry => {
        if (!up.has(entry.id) || this.#work.has(entry.id)) return
        await limitOutput(this.#places.credentials(entry.id))
        const { state } = await this.#shown(entry, table)
        await this.#keepLink(entry.id, state)
        if (this.#states.get(entry.id) !== state) this.#publish(entry.id, state)
      }),
    )
  }

  /**
   * Removes the link of a share whose server does not answer, and makes it again when it does: reading the workspace
   * follows links, and would wait for that server.
   */
  async #keepLink(id: string, state: DiskState): Promise<void> {
    const stored = await this.#store.get(id)
    const { link, aside, ...rest } = stored
    if (link === undefined || this.#work.has(id)) return
    const [{ workspace }, mountPoint] = [this.#host.place, await this.#places.mountPoint(id)]
    if (state === 'stale' && !aside && (await isLinked(workspace, link, mountPoint))) {
      await this.#store.set(id, { ...stored, aside: true })
      await removeLink(workspace, link, mountPoint)
    } else if (state === 'mounted' && aside) {
      await makeLink(workspace, link, mountPoint).catch(error =>
        this.#host.log.warn('the link of a share was not made again', { id, error: String(error) }),
      )
      await this.#store.set(id, { ...rest, link })
    }
  }

  /** Takes off what mounts left that the end of the daemon cut off. */
  async recover(): Promise<void> {
    for (const [id, stored] of await this.#store.all()) {
      const mountPoint = await this.#places.mountPoint(id)
      if (stored.mounting) {
        await endCarriers(mountPoint)
        if (await isMounted(mountPoint)) await detach(mountPoint, FORCE_MS, 'once')
        await this.#left({ id }, stored)
        await this.#places.removeFolder(id)
      } else if (stored.since !== undefined) this.#states.set(id, 'mounted')
    }
  }

  /** Mounts the shares that are mounted when the daemon starts. */
  async mountAll(): Promise<void> {
    for (const { id, config } of await this.#entries()) {
      if (config.autoMount === 'off') continue
      void this.#mountBehind(id).catch(
        error =>
          this.#host.signal.aborted || this.#host.log.warn('a share was not mounted', { id, error: String(error) }),
      )
    }
  }

  async #mountBehind(id: string): Promise<void> {
    const steps = await this.mount(id)
    for await (const _ of steps);
  }

  /** A tunnel is up: shares that could not be mounted without it are tried again, once. */
  async mountFailed(): Promise<void> {
    const entries = (await this.#entries()).filter(({ config }) => config.autoMount !== 'off')
    await Promise.all(
      entries.map(async ({ id }) => {
        try {
          // A mount that began before the tunnel was up may go on until its server is late.
          await this.#work.get(id)?.over
          if ((await this.#store.get(id)).failed !== undefined) await this.#mountBehind(id)
        } catch (error) {
          if (!this.#host.signal.aborted)
            this.#host.log.warn('a share was not mounted behind a tunnel', { id, error: String(error) })
        }
      }),
    )
  }

  /** The folders of the shares that are mounted and answer, of these connections or of all. */
  async forTurn(ids?: readonly string[]): Promise<DiskFolders> {
    const entries = (await this.#entries()).filter(({ id }) => ids?.includes(id) ?? true)
    const table = entries.length > 0 ? await readMountTable() : new Map<string, MountRow>()
    const disks = await Promise.all(entries.map(entry => this.#shown(entry, table)))
    const folders = (readOnly: boolean) =>
      disks.filter(disk => disk.state === 'mounted' && disk.readOnly === readOnly).map(({ mountPoint }) => mountPoint)
    return { read: folders(true), write: folders(false) }
  }

  /** Refuses while a share is mounted or worked on. */
  async assertOff(id: string): Promise<void> {
    if (this.#work.has(id)) refuse('conflict', `${id} is being mounted or unmounted: wait until that is done`)
    if (await isMounted(await this.#places.mountPoint(id))) refuse('conflict', `${id} is mounted: unmount it first`)
  }

  /** Removes everything that is kept of a share that is not mounted. */
  async forget(id: string): Promise<void> {
    await this.assertOff(id)
    await this.#left({ id }, await this.#store.get(id))
    await this.#places.removeCaches(id)
    await this.#places.removeFolder(id)
    await this.#store.drop(id)
    this.#states.delete(id)
  }

  async rename(id: string, to: string): Promise<void> {
    await this.assertOff(id)
    await this.#places.removeFolder(id)
    await this.#store.move(id, to)
  }

  async #entries(): Promise<DiskEntry[]> {
    if (!(await this.#host.serves('capabilities.records'))) return []
    const { capabilities } = await this.#host.call('capabilities.records', { kind: DISK_KIND })
    return capabilities.flatMap(record => diskOf(record) ?? [])
  }

  async #find(id: string): Promise<DiskEntry> {
    const found = (await this.#entries()).find(entry => entry.id === id)
    return found ?? refuse('not-found', `there is no share ${id}: GET /disks lists them`)
  }

  async #secrets({ id, secrets: names }: DiskEntry): Promise<DiskSecrets> {
    const closed = 'its credential is in the secret store, which is not open: open it with POST /secrets/unlock'
    const values: { [field: string]: string } = {}
    for (const field of names) {
      if (!(await this.#host.serves('secrets.get'))) refuse('unavailable', closed)
      const value = await this.#host.call('secrets.get', { name: `${id}/${field}` }).then(
        found => found.value,
        (error: unknown) => {
          if (error instanceof Refusal) return refuse('unavailable', closed, { cause: error })
          throw error
        },
      )
      if (value === undefined) return refuse('unavailable', `${field} is no longer in the secret store: save it again`)
      values[field] = value
    }
    return values
  }

  #begin(id: string, work: DiskWork): void {
    const busy = this.#work.get(id)
    if (busy) refuse('conflict', `${id} is ${busy.kind}: wait until that is done`)
    this.#work.set(id, work)
  }

  #publish(id: string, state: string): void {
    this.#states.set(id, state)
    this.#host
      .call('kernel.events.publish', { domain: 'disks', key: id })
      .catch(error => this.#host.log.warn('publishing a change of shares failed', { error: String(error) }))
  }
}
