import { lstatSync, readdirSync, watch, type FSWatcher } from 'node:fs'
import { join, posix } from 'node:path'
import { codeOf } from '../../../sdk/node/files/paths.js'

/** The system's limits of watches and of instances of watching, and of open files. */
const EXHAUSTED = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])
const MOST_FOLDERS = 500
const HALTED = new Set(['rebase-merge', 'rebase-apply', 'sequencer'])
/** The folders of a git dir that are watched besides those below `refs`. */
const FOLDERS = new Set(['logs', 'logs/refs', 'reftable', ...HALTED])
const STATE = /^(?:HEAD|index|packed-refs|(?:MERGE|CHERRY_PICK|REVERT|REBASE)_HEAD|refs|reftable)$/

const isFollowed = (path: string): boolean => FOLDERS.has(path) || /^refs(?:\/|$)/.test(path)

/** Whether a change of a path in a git dir changes refs, the index, the stash or a halted operation. */
const isState = (path: string): boolean => {
  const [first = '', ...rest] = path.split('/')
  if (HALTED.has(first) || (rest.length === 0 && STATE.test(first))) return true
  // Dropping an older stash changes its reflog only.
  if (first === 'logs') return path === 'logs/HEAD' || path === 'logs/refs/stash'
  return (first === 'refs' || first === 'reftable') && rest.length > 0 && !path.endsWith('.lock')
}

/** What a watch of a git dir calls. */
export interface GitFolderEvents {
  readonly moved: () => void
  /** Called when the system's limit of watches is reached. */
  readonly exhausted: () => void
}

interface Watched {
  readonly watcher: FSWatcher
  readonly inode: bigint
}

/** Watches one git dir: HEAD, index, refs, reflogs and halted operations. */
export class GitFolderWatch {
  readonly #dir: string
  readonly #events: GitFolderEvents
  readonly #folders = new Map<string, Watched>()

  constructor(dir: string, events: GitFolderEvents) {
    this.#dir = dir
    this.#events = events
    this.#add('')
  }

  /** Whether the watched folder is still the one at its path. */
  get isCurrent(): boolean {
    const found = lstatSync(this.#dir, { throwIfNoEntry: false, bigint: true })
    return found !== undefined && this.#folders.get('')?.inode === found.ino
  }

  stop(): void {
    for (const { watcher } of this.#folders.values()) watcher.close()
    this.#folders.clear()
  }

  /** Watches a folder, and those below it that are followed. */
  #add(from: string): void {
    const waiting = [from]
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      // Watched before it is read, so that one of the two notices folders that are created in between.
      if (!this.#watch(path)) continue
      for (const entry of readdirSync(join(this.#dir, path), { withFileTypes: true })) {
        const below = posix.join(path, entry.name)
        if (entry.isDirectory() && isFollowed(below)) waiting.push(below)
      }
    }
  }

  #watch(path: string): boolean {
    const place = join(this.#dir, path)
    try {
      const stats = lstatSync(place, { bigint: true })
      if (this.#folders.get(path)?.inode === stats.ino) return true
      this.#drop(path)
      if (this.#folders.size >= MOST_FOLDERS) return false
      const watcher = watch(place, { persistent: false }, (kind, name) => this.#event(path, kind, name))
      watcher.on('error', () => this.#drop(path))
      this.#folders.set(path, { watcher, inode: stats.ino })
      return true
    } catch (error) {
      if (EXHAUSTED.has(codeOf(error) ?? '')) this.#events.exhausted()
      return false
    }
  }

  #drop(path: string): void {
    for (const [each, { watcher }] of this.#folders) {
      if (each !== path && !each.startsWith(`${path}/`)) continue
      watcher.close()
      this.#folders.delete(each)
    }
  }

  #event(folder: string, kind: string, name: string | null): void {
    if (!this.#folders.has(folder)) return
    if (name === null) return this.#events.moved()
    const path = posix.join(folder, name)
    if (isState(path)) this.#events.moved()
    if (kind !== 'rename' || !isFollowed(path)) return
    if (lstatSync(join(this.#dir, path), { throwIfNoEntry: false })?.isDirectory()) this.#add(path)
    else this.#drop(path)
  }
}
