import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { Kept, type KeptFiles } from '../../../sdk/node/files/kept.js'
import type { Bundle } from './contract.js'

const KEPT = 3
const KEPT_MS = 7 * 24 * 3_600_000
const STOPPED = 'the sandbox stopped while it was packed'

interface Rows {
  readonly bundles: readonly Bundle[]
}

/** The backups on disk and the one being packed. */
export class BundleStore {
  readonly folder: string
  readonly #kept: Kept<Rows>
  readonly #now: () => number
  /** Progress of the one being packed. */
  #done = 0

  private constructor(folder: string, kept: Kept<Rows>, now: () => number) {
    this.folder = folder
    this.#kept = kept
    this.#now = now
  }

  /** Opens the store; a backup that the last daemon was packing is marked as failed, and its files are removed. */
  static async open(files: KeptFiles, folder: string, now: () => number = Date.now): Promise<BundleStore> {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    const store = new BundleStore(folder, await Kept.open<Rows>(files, 'bundles', { bundles: [] }), now)
    await store.#settle()
    await store.sweep()
    return store
  }

  get packing(): Bundle | undefined {
    return this.#kept.value.bundles.find(({ state }) => state === 'packing')
  }

  get all(): Bundle[] {
    return this.#kept.value.bundles.map(bundle => ({
      ...bundle,
      ...(bundle.state === 'packing' && { doneBytes: Math.min(this.#done, bundle.sizeBytes) }),
    }))
  }

  find(name: string): Bundle {
    return (
      this.#kept.value.bundles.find(bundle => bundle.name === name)
      ?? refuse('not-found', `there is no bundle ${JSON.stringify(name.slice(0, 120))}`)
    )
  }

  /** The path of a finished backup. */
  place(name: string): string {
    return join(this.folder, this.find(name).name)
  }

  async begin(asked: Pick<Bundle, 'sizeBytes' | 'secrets' | 'createdBy'>, encrypted: boolean): Promise<Bundle> {
    const createdAt = this.#now()
    const stamp = new Date(createdAt)
      .toISOString()
      .replace(/[-:]|\..*/g, '')
      .replace('T', '-')
    const name = `sandbox-${stamp}-${randomBytes(3).toString('hex')}.${encrypted ? 'sealed' : 'tar.gz'}`
    const bundle: Bundle = { name, state: 'packing', createdAt, ...asked }
    this.#done = 0
    await this.#kept.change(({ bundles }) => ({ bundles: [bundle, ...bundles] }))
    return bundle
  }

  /** Adds to the number of packed bytes. */
  moved(bytes: number): void {
    this.#done += bytes
  }

  /** Updates a backup, unless it was removed meanwhile. */
  async change(name: string, patch: Pick<Bundle, 'state'> & Partial<Bundle>): Promise<void> {
    await this.#kept.change(({ bundles }) => ({
      bundles: bundles.map(bundle => (bundle.name === name ? { ...bundle, ...patch } : bundle)),
    }))
  }

  async remove(name: string): Promise<void> {
    const place = this.place(name)
    await this.#kept.change(({ bundles }) => ({ bundles: bundles.filter(bundle => bundle.name !== name) }))
    await rm(place, { force: true })
  }

  /** Removes backups older than a week, all but the newest three, and files without a record. */
  async sweep(): Promise<void> {
    const oldest = this.#now() - KEPT_MS
    await this.#kept.change(value => {
      const counts = { ready: 0, failed: 0 }
      const bundles = value.bundles.filter(
        ({ state, createdAt }) => state === 'packing' || (createdAt >= oldest && ++counts[state] <= KEPT),
      )
      return bundles.length === value.bundles.length ? value : { bundles }
    })
    const known = new Set(this.#kept.value.bundles.map(({ name }) => name))
    for (const name of await readdir(this.folder))
      if (!known.has(name)) await rm(join(this.folder, name), { force: true })
  }

  async #settle(): Promise<void> {
    const { packing } = this
    if (!packing) return
    // If the daemon was killed between the last two steps the file is complete: it gets its name only then.
    const size = await stat(join(this.folder, packing.name)).then(
      found => found.size,
      () => undefined,
    )
    await this.change(
      packing.name,
      size === undefined ? { state: 'failed', sizeBytes: 0, detail: STOPPED } : { state: 'ready', sizeBytes: size },
    )
  }
}
