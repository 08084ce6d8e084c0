import { randomBytes } from 'node:crypto'
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull, writeFailure } from '../../../sdk/node/files/disk.js'
import { flushFolder, flushTree } from '../../../sdk/node/files/files.js'
import { Kept } from '../../../sdk/node/files/kept.js'
import { openParent, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { openLocal } from '../../../sdk/node/files/local-folder.js'
import { pathIn } from '../tree/ignore-rules.js'
import type { AppName } from './contract.js'
import { fillWith, type UsableTemplate } from './templates.js'

const STAGED = 'apps'

/** Apps that are whole in a folder of the sandbox and move to their places now. */
interface Moving {
  readonly id: string
  /** The apps folder, from the workspace root. */
  readonly folder: string
  readonly names: readonly AppName[]
}
interface ScaffoldBook {
  readonly moving: readonly Moving[]
}

/** An app to be made of a template. */
export interface PlannedApp {
  readonly name: AppName
  readonly template: UsableTemplate
}

/** Makes apps: all of a call, or none, whenever the daemon ends. */
export class Scaffold {
  readonly #root: string
  readonly #book: Kept<ScaffoldBook>
  readonly #changed: (paths: readonly string[]) => void

  private constructor(root: string, book: Kept<ScaffoldBook>, changed: (paths: readonly string[]) => void) {
    this.#root = root
    this.#book = book
    this.#changed = changed
  }

  /** Completes what an earlier daemon began to move. */
  static async open(
    { place, files }: Pick<Host, 'place' | 'files'>,
    changed: (paths: readonly string[]) => void,
  ): Promise<Scaffold> {
    const book = await Kept.open<ScaffoldBook>(files, 'scaffold', { moving: [] })
    const scaffold = new Scaffold(place.workspace, book, changed)
    for (const moving of book.value.moving) await scaffold.#move(moving)
    return scaffold
  }

  /** Makes apps in a folder of the workspace; one that exists is refused. */
  async make(tree: PathTree, folder: string, apps: readonly PlannedApp[]): Promise<void> {
    for (const { name } of apps) await this.#assertFree(tree, pathIn(folder, name))
    const id = randomBytes(9).toString('hex')
    await using local = await openLocal(this.#root, STAGED)
    await this.#sweep(local.at)
    const staged = join(local.at, id)
    try {
      await mkdir(staged)
      for (const { name, template } of apps) await fillWith(template, join(staged, name), name)
      await flushTree(staged)
    } catch (error) {
      await rm(staged, { recursive: true, force: true })
      throw isFull(error) ? writeFailure(error) : error
    }
    failpoint('workspace.apps.staged')
    const moving = { id, folder, names: apps.map(({ name }) => name) }
    await this.#book.change(book => ({ moving: [...book.moving, moving] }))
    failpoint('workspace.apps.noted')
    await this.#move(moving)
  }

  async #assertFree(tree: PathTree, path: string): Promise<void> {
    await using parent = await openParent(tree, path, { make: true })
    if (await lstat(parent.target).catch(() => undefined)) refuse('conflict', `${shownPath(path)} exists already`)
  }

  /** Moves what is staged to its places; what has moved already stays. */
  async #move({ id, folder, names }: Moving): Promise<void> {
    const tree: PathTree = { root: this.#root, reach: undefined, readsGit: false }
    await using local = await openLocal(this.#root, STAGED)
    const moved: string[] = []
    for (const name of names) {
      await using parent = await openParent(tree, pathIn(folder, name), { make: true })
      const there = await lstat(parent.target).catch(() => undefined)
      if (there) continue
      await rename(join(local.at, id, name), parent.target).catch(error => {
        // A person may have removed what was staged.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      })
      await flushFolder(parent.at)
      moved.push(...parent.made, pathIn(parent.path, name))
      failpoint('workspace.apps.moved')
    }
    await rm(join(local.at, id), { recursive: true, force: true })
    await this.#book.change(book => ({ moving: book.moving.filter(each => each.id !== id) }))
    this.#changed(moved)
  }

  /** Removes what an interrupted call staged. */
  async #sweep(at: string): Promise<void> {
    const known = new Set(this.#book.value.moving.map(({ id }) => id))
    for (const name of await readdir(at))
      if (!known.has(name) && !name.startsWith('.')) await rm(join(at, name), { recursive: true, force: true })
  }
}
