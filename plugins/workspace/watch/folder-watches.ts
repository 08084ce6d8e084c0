import { lstatSync, watch, type BigIntStats, type FSWatcher } from 'node:fs'
import { dirname, join } from 'node:path'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { isTemporary } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { IgnoreRules, isIgnored, pathIn } from '../tree/ignore-rules.js'
import { textNamesOfFolder } from '../tree/sweep.js'

interface WatchedFolder {
  readonly watcher: FSWatcher
  readonly identity: string
  /** The watched folders in it, by path. */
  readonly inner: Set<string>
}

export interface FolderWatchesDeps {
  /** The tree's real folder. */
  readonly root: string
  readonly changed: (paths: readonly string[]) => void
  /** Folders, or git folders in them, came or went. */
  readonly folders: () => void
  /** More may have changed than was reported. */
  readonly lost: () => void
  /** Called when the system's limit of watches is reached. */
  readonly exhausted: () => void
  /** Called with a temporary name that an earlier daemon may have left. */
  readonly temporary: (path: string) => Promise<void>
}

/** The system's limits of watches and of instances of watching, and of open files. */
const EXHAUSTED = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])
/** The system's queue has 16,384 events; a batch of more than this may mean that some were dropped. */
const MOST_AT_ONCE = 8_000
const SLICE_MS = 5
const NOT_WATCHED = new Set(['refs'])

/** A folder that was deleted and made again may have the same inode. */
const identityOf = ({ ino, birthtimeNs }: BigIntStats): string => `${ino} ${birthtimeNs}`

const slice = () => new Promise<void>(resolve => setImmediate(resolve))

/** Watches each folder of a tree that is not ignored, and those that appear. */
export class FolderWatches {
  readonly #deps: FolderWatchesDeps
  readonly #folders = new Map<string, WatchedFolder>()
  #rules: IgnoreRules
  #stopped = false
  #seen = 0
  #again: Promise<void> | undefined
  /** Watches that are not needed any more: to close all of a large folder at once would hold others up. */
  #closing: FSWatcher[] = []

  constructor(deps: FolderWatchesDeps) {
    this.#deps = deps
    this.#rules = new IgnoreRules(deps.root)
  }

  get size(): number {
    return this.#folders.size
  }

  /** Watches the whole tree and reports later changes. */
  start(): Promise<void> {
    return this.#add('.', false)
  }

  stop(): void {
    this.#stopped = true
    for (const { watcher } of this.#folders.values()) this.#close(watcher)
    this.#folders.clear()
  }

  #close(watcher: FSWatcher): void {
    if (this.#closing.push(watcher) === 1) setImmediate(() => this.#closeSome())
  }

  #closeSome(): void {
    const began = performance.now()
    while (this.#closing.length > 0 && performance.now() - began < SLICE_MS) this.#closing.pop()!.close()
    if (this.#closing.length > 0) setImmediate(() => this.#closeSome())
  }

  /** Watches a folder and all below it; `report` announces everything found there as new. */
  async #add(from: string, report: boolean): Promise<void> {
    const waiting = [from]
    let began = performance.now()
    for (let path = waiting.pop(); path !== undefined && !this.#stopped; path = waiting.pop()) {
      // Watched before it is read, so that one of the two reports names that are created in between.
      if (!this.#watch(path)) continue
      const found: string[] = []
      const scope = this.#rules.in(path)
      for (const entry of textNamesOfFolder(this.#deps.root, path)) {
        const folder = entry.isDirectory()
        const temporary = isTemporary(entry.name)
        // Most names of a large tree are files, and only what is new is reported.
        if (!folder && !report && !temporary) continue
        const below = pathIn(path, entry.name)
        if (temporary) await this.#deps.temporary(below)
        if (!folder && !report) continue
        if (this.#passes(below) || isIgnored(scope, below, folder)) continue
        found.push(below)
        if (folder && this.#folders.get(below) === undefined) waiting.push(below)
      }
      if (report) this.#deps.changed(found)
      if (performance.now() - began > SLICE_MS) {
        await slice()
        began = performance.now()
      }
    }
  }

  /** Whether changes of a path are not reported. */
  #passes(path: string): boolean {
    const parts = path.split('/')
    const closed = closedAs(parts)
    return closed !== undefined || NOT_WATCHED.has(parts[0]!) || isTemporary(parts.at(-1)!)
  }

  #watch(path: string): boolean {
    const place = join(this.#deps.root, path)
    try {
      const stats = lstatSync(place, { bigint: true })
      if (!stats.isDirectory()) return false
      if (this.#folders.get(path)?.identity === identityOf(stats)) return true
      this.#drop(path)
      const watcher = watch(place, { persistent: false }, (kind, name) => {
        if (this.#folders.get(path)?.watcher === watcher) this.#event(path, kind, name)
      })
      watcher.on('error', () => this.#drop(path))
      this.#folders.set(path, { watcher, identity: identityOf(stats), inner: new Set() })
      this.#around(path)?.inner.add(path)
      return true
    } catch (error) {
      if (EXHAUSTED.has(codeOf(error) ?? '')) this.#deps.exhausted()
      return false
    }
  }

  #drop(path: string): void {
    const folder = this.#folders.get(path)
    for (const inner of folder?.inner ?? []) this.#drop(inner)
    if (folder) this.#close(folder.watcher)
    this.#folders.delete(path)
    this.#around(path)?.inner.delete(path)
    this.#rules.delete(path)
  }

  /** The parent of a watched folder. */
  #around(path: string): WatchedFolder | undefined {
    return path === '.' ? undefined : this.#folders.get(dirname(path))
  }

  #event(folder: string, kind: string, name: string | null): void {
    if (this.#stopped) return
    if (this.#seen++ === 0) setImmediate(() => (this.#seen = 0))
    if (name === null || this.#seen === MOST_AT_ONCE) return void this.#rescan()
    const path = pathIn(folder, name)
    if (name === '.git' && kind === 'rename') this.#deps.folders()
    if (this.#passes(path)) return
    const stats = lstatSync(join(this.#deps.root, path), { throwIfNoEntry: false, bigint: true })
    const directory = stats?.isDirectory() ?? this.#folders.has(path)
    if (isIgnored(this.#rules.in(folder), path, directory)) return
    this.#deps.changed([path])
    if (name === '.gitignore') {
      this.#rules.drop(folder)
      return void this.#rescan()
    }
    if (kind !== 'rename') return
    if (directory) this.#deps.folders()
    if (!stats?.isDirectory()) return this.#folders.has(path) ? this.#drop(path) : undefined
    if (this.#folders.get(path)?.identity !== identityOf(stats)) void this.#add(path, true)
  }

  /** Reads the whole tree again, after events were lost or rules changed. */
  #rescan(): Promise<void> {
    this.#again ??= slice().then(async () => {
      this.#again = undefined
      this.#rules = new IgnoreRules(this.#deps.root)
      let began = performance.now()
      for (const path of [...this.#folders.keys()]) {
        if (performance.now() - began > SLICE_MS) {
          await slice()
          began = performance.now()
        }
        // With a folder goes what is in it.
        if (this.#stopped || !this.#folders.has(path)) continue
        const gone = !lstatSync(join(this.#deps.root, path), { throwIfNoEntry: false })?.isDirectory()
        if (gone || (path !== '.' && this.#rules.ignores(path, true))) this.#drop(path)
      }
      this.#deps.lost()
      this.#deps.folders()
      await this.#add('.', false)
      this.#deps.lost()
    })
    return this.#again
  }
}
