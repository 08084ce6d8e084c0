import { randomBytes } from 'node:crypto'
import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Files } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import type { OpenedPath, OpenedParent } from '../../../sdk/node/files/open-path.js'
import { LOCAL_FOLDER, openLocal } from '../../../sdk/node/files/local-folder.js'
import type { TrashItem } from './contract.js'
import type { Extent } from './measure.js'

/** A stored item. */
interface StoredItem extends TrashItem {
  /** The path of a finished or started restore. */
  restored?: { path: string; at: number }
}

const DAYS = 86_400_000
const KEPT_MS = 30 * DAYS
const MOST_BYTES = 5 * 1024 ** 3

/** The limits of the trash. */
export const MOST_TRASH: Extent = { bytes: MOST_BYTES, files: 2_000_000 }

/** The deleted items: a record per item in the daemon's data, and the files on the disk of the workspace. */
export class TrashStore {
  readonly #root: string
  readonly #files: Files
  readonly #items = new Map<string, StoredItem>()

  constructor(root: string, files: Files) {
    this.#root = root
    this.#files = files
  }

  /** Reads the records, and completes steps that a kill interrupted. */
  async open(): Promise<void> {
    for (const name of await this.#files.list('trash/')) {
      const item = await this.#files.read<StoredItem>(name)
      if (item) this.#items.set(item.id, item)
    }
    if (this.#items.size === 0 && !(await this.#there())) return
    await using folder = await this.#folder()
    const names = new Set(await readdir(folder.at))
    for (const item of [...this.#items.values()]) {
      // Without its record it was never deleted; without the files it was never moved, or is already restored.
      if (!names.has(item.id) && !item.restored) await this.#forget(item.id)
      if (names.has(item.id) && item.restored) await this.#keep({ ...item, restored: undefined })
    }
    for (const name of names)
      if (!this.#items.has(name)) await rm(join(folder.at, name), { recursive: true, force: true })
    await this.sweep()
  }

  /** The items that can be restored, newest first. */
  get items(): TrashItem[] {
    return [...this.#items.values()]
      .filter(({ restored }) => !restored)
      .map(({ restored: _, ...item }) => item)
      .sort((one, other) => other.deletedAt - one.deletedAt)
  }

  get bytes(): number {
    return this.items.reduce((sum, { size }) => sum + size, 0)
  }

  /** Moves a name of an open folder into the trash. */
  async take(
    parent: OpenedParent,
    { path, by, extent }: { path: string; by: string; extent: Extent },
  ): Promise<string> {
    await using folder = await this.#folder()
    const id = randomBytes(9).toString('hex')
    const stats = await lstat(parent.target)
    const last = Math.max(0, ...[...this.#items.values()].map(({ deletedAt }) => deletedAt))
    const deletedAt = Math.max(Date.now(), last + 1)
    await this.#keep({
      id,
      path,
      type: stats.isDirectory() ? 'dir' : 'file',
      size: extent.bytes,
      files: extent.files,
      deletedAt,
      by,
      expiresAt: deletedAt + KEPT_MS,
    })
    failpoint('workspace.trash.noted')
    try {
      await rename(parent.target, join(folder.at, id))
    } catch (error) {
      await this.#forget(id)
      throw error
    }
    failpoint('workspace.trash.taken')
    await flushFolder(parent.at)
    await flushFolder(folder.at)
    await this.sweep()
    return id
  }

  /** Deletes a name of an open folder permanently; it disappears at once. */
  async remove(parent: OpenedParent): Promise<void> {
    await using folder = await this.#folder()
    const gone = join(folder.at, randomBytes(9).toString('hex'))
    await rename(parent.target, gone)
    await flushFolder(parent.at)
    await rm(gone, { recursive: true, force: true })
  }

  /** An item that can be restored, or one restored within the last day. */
  find(id: string): StoredItem {
    return (
      this.#items.get(id) ?? refuse('not-found', `nothing in the trash has the id ${JSON.stringify(id.slice(0, 64))}`)
    )
  }

  /** Puts an item into an open folder in which its name is free. */
  async restore(id: string, parent: OpenedParent, path: string): Promise<void> {
    await using folder = await this.#folder()
    await this.#keep({ ...this.find(id), restored: { path, at: Date.now() } })
    failpoint('workspace.restore.noted')
    try {
      await rename(join(folder.at, id), parent.target)
    } catch (error) {
      await this.#keep({ ...this.find(id), restored: undefined })
      throw error
    }
    failpoint('workspace.restore.moved')
    await flushFolder(parent.at)
    await flushFolder(folder.at)
  }

  /** Removes items that are too old, and the oldest while the trash is too large. */
  async sweep(now = Date.now()): Promise<void> {
    for (const { id, restored } of this.#items.values())
      if (restored && restored.at < now - DAYS) await this.#forget(id)
    const oldest = this.items.toReversed()
    let { bytes } = this
    for (const { id, size, expiresAt } of oldest) {
      if (expiresAt > now && bytes <= MOST_BYTES) break
      bytes -= size
      // Without its record it is removed at the next start too.
      await this.#forget(id)
      await using folder = await this.#folder()
      await rm(join(folder.at, id), { recursive: true, force: true })
    }
  }

  async #keep(item: StoredItem): Promise<void> {
    await this.#files.write(`trash/${item.id}`, item)
    this.#items.set(item.id, item)
  }

  async #forget(id: string): Promise<void> {
    await this.#files.remove(`trash/${id}`)
    this.#items.delete(id)
  }

  async #there(): Promise<boolean> {
    return (await lstat(join(this.#root, ...LOCAL_FOLDER, 'trash')).catch(() => undefined)) !== undefined
  }

  #folder(): Promise<OpenedPath> {
    return openLocal(this.#root, 'trash')
  }
}
