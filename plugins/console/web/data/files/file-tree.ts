import { signal } from '@preact/signals-core'
import type { WorkspaceEntry } from '../../../../workspace/contract.js'
import { askDaemon, faultSentence } from '../api.js'
import { keepOwn, readOwn } from '../own-storage.js'
import { onPaths } from './file-changes.js'
import { folderOfPath, nameOfPath, rowsOfTree, withFoldersFirst, type KnownFolder, type TreeRow } from './tree-rows.js'

/** A folder of several pages is read again at most this often. */
const LARGE_MS = 5_000
const STORED = 'files.open'

/** The files of the shared tree as far as a person opened them, kept current by events. */
export class FileTree {
  readonly rows = signal<readonly TreeRow[]>([])
  /** The workspace's name. */
  readonly root = signal('')
  /** Why the tree cannot be read at all. */
  readonly fault = signal('')
  /** The system's limit of watches is reached: changes show after 30 s. */
  readonly polling = signal(false)
  readonly #folders = new Map<string, KnownFolder>()
  readonly #opened = new Set<string>(['.'])
  readonly #reading = new Map<string, Promise<void>>()
  readonly #again = new Set<string>()
  /** Large folders that are read again in a moment. */
  readonly #later = new Set<string>()
  readonly #readAt = new Map<string, number>()
  #shown = false
  #begun: Promise<void> | undefined

  constructor() {
    for (const path of JSON.parse(readOwn(STORED) || '[]') as string[]) this.#opened.add(path)
  }

  /** Reads the tree and follows its changes until the returned function is called. */
  watch(): () => void {
    const stop = onPaths(paths => this.#changed(paths))
    void this.#begin()
    return stop
  }

  isOpen(path: string): boolean {
    return this.#opened.has(path)
  }

  /** Opens a folder, or closes it. */
  toggle(path: string, open = !this.#opened.has(path)): void {
    if (open) this.#opened.add(path)
    else this.#opened.delete(path)
    if (open && !this.#folders.has(path)) void this.#read(path)
    this.#keep()
    this.#show()
  }

  /** Opens the folders above a path. */
  reveal(path: string): void {
    for (let folder = folderOfPath(path); folder !== '.'; folder = folderOfPath(folder))
      if (!this.#opened.has(folder)) this.toggle(folder, true)
  }

  /** Whether a path is a file or a folder, as far as the tree or the daemon knows; nothing where there is neither. */
  async kindOf(path: string): Promise<'file' | 'dir' | undefined> {
    if (path === '.') return 'dir'
    const folder = folderOfPath(path)
    if (!this.#folders.has('.')) await (this.#begun ?? this.#begin())
    if (folder !== '.' && !this.#folders.has(folder)) {
      if ((await this.kindOf(folder)) !== 'dir') return undefined
      await this.#read(folder)
    }
    const known = this.#folders.get(folder)
    const found = known?.entries.find(entry => entry.path === path)
    if (found || !known) return found?.type
    // It may be on another page, or have come just now: the name before it leads to where it would be listed.
    const name = nameOfPath(path)
    const before = name.slice(0, -1) + String.fromCharCode(name.charCodeAt(name.length - 1) - 1)
    const { entries } = await askDaemon('GET /workspace/children', { path: folder, after: before })
    return entries.find(entry => entry.path === path)?.type
  }

  /** Reads the next entries of a folder. */
  more(path: string): void {
    const known = this.#folders.get(path)
    if (known && known.hidden > 0 && !this.#reading.has(path)) void this.#read(path, known)
  }

  /** Reads a folder again, as after something was done in it. */
  refresh(path: string): void {
    if (this.#folders.has(path)) void this.#read(path)
  }

  #begin(): Promise<void> {
    return (this.#begun = this.#beginAnew())
  }

  async #beginAnew(): Promise<void> {
    try {
      const { root, tree, hidden, watch } = await askDaemon('GET /workspace/tree', {})
      this.root.value = root
      this.fault.value = ''
      this.polling.value = watch === 'polling'
      this.#folders.clear()
      this.#take('.', tree)
      if (hidden > 0) await this.#read('.')
      for (const path of this.#opened) if (!this.#folders.has(path)) void this.#reopen(path)
    } catch (error) {
      this.fault.value = faultSentence(error)
    }
    this.#show()
  }

  /** Reads a folder that was open before; one that is gone is open no more. */
  async #reopen(path: string): Promise<void> {
    const kind = await this.kindOf(path).catch(() => undefined)
    if (kind === 'dir') return this.#read(path)
    this.#opened.delete(path)
    this.#keep()
  }

  /** Keeps the folders that the tree came with, opened or not. */
  #take(path: string, entries: readonly WorkspaceEntry[]): void {
    this.#folders.set(path, { entries: withFoldersFirst(entries), hidden: 0 })
    for (const { path: below, children } of entries) if (children) this.#take(below, children)
  }

  #read(path: string, after?: KnownFolder): Promise<void> {
    const reading = this.#reading.get(path)
    if (reading) {
      if (!after) this.#again.add(path)
      return reading
    }
    const work = this.#page(path, after).finally(() => {
      this.#reading.delete(path)
      if (this.#again.delete(path)) void this.#read(path)
    })
    this.#reading.set(path, work)
    return work
  }

  async #page(path: string, before: KnownFolder | undefined): Promise<void> {
    const shown = this.#folders.get(path)?.entries.length ?? 0
    try {
      let entries = [...(before?.entries ?? [])]
      let hidden = 0
      do {
        const last = entries.reduce((most, { name }) => (name > most ? name : most), '')
        const page = await askDaemon('GET /workspace/children', { path, ...(last && { after: last }) })
        entries = [...entries, ...page.entries]
        ;({ hidden } = page)
        // Read again, a folder shows at least what it showed before.
      } while (!before && hidden > 0 && entries.length < shown)
      this.#folders.set(path, { entries: withFoldersFirst(entries), hidden })
    } catch (error) {
      this.#folders.set(path, { entries: [], hidden: 0, fault: faultSentence(error) })
    }
    this.#readAt.set(path, Date.now())
    this.#show()
  }

  #changed(paths: readonly string[] | undefined): void {
    if (paths === undefined) return void this.#begin()
    const folders = new Set<string>()
    for (const path of paths) {
      let folder = path === '.' ? '.' : folderOfPath(path)
      while (folder !== '.' && !this.#folders.has(folder)) folder = folderOfPath(folder)
      folders.add(folder)
      // The path may be a folder that came, went, or has other entries.
      if (this.#folders.has(path)) folders.add(path)
    }
    for (const folder of folders) this.#renew(folder)
  }

  /** Reads a changed folder again if it is shown, a large one not with every change. */
  #renew(path: string): void {
    if (!this.#opened.has(path)) {
      this.#folders.delete(path)
      return
    }
    const large = (this.#folders.get(path)?.entries.length ?? 0) > 5_000
    const wait = large ? (this.#readAt.get(path) ?? 0) + LARGE_MS - Date.now() : 0
    if (wait <= 0) return void this.#read(path)
    if (this.#later.has(path)) return
    this.#later.add(path)
    setTimeout(() => this.#later.delete(path) && void this.#read(path), wait)
  }

  #keep(): void {
    keepOwn(STORED, JSON.stringify([...this.#opened].slice(0, 500)))
  }

  /** Shows all changes of a moment at once. */
  #show(): void {
    if (this.#shown) return
    this.#shown = true
    queueMicrotask(() => {
      this.#shown = false
      this.rows.value = rowsOfTree(this.#folders, this.#opened)
    })
  }
}
