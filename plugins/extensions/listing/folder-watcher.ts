import { watch, type FSWatcher } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { WORKSPACE_EXTENSIONS } from './workspace-folder.js'

const QUIET_MS = 300
const MOST_WATCHES = 2_000
const UNWATCHED = new Set(['.git', 'node_modules'])
const EXHAUSTED = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])

/** Watches the folders of the workspace's extensions, and reports by name which of them changed, after a moment. */
export class ExtensionWatcher {
  readonly #root: string
  readonly #changed: (names: ReadonlySet<string>) => void
  readonly #watches = new Map<string, FSWatcher>()
  readonly #names = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #stopped = false
  /** The system's limit of watches is reached: changes are detected by the next call. */
  exhausted = false

  constructor(root: string, changed: (names: ReadonlySet<string>) => void) {
    this.#root = root
    this.#changed = changed
  }

  /** Watches the existing folders and their parents. */
  async start(): Promise<void> {
    for (let depth = 0; depth <= WORKSPACE_EXTENSIONS.length; depth++) {
      const path = WORKSPACE_EXTENSIONS.slice(0, depth).join('/')
      if (!(await this.#watch(path))) return
    }
    await this.#below(WORKSPACE_EXTENSIONS.join('/'))
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    for (const watcher of this.#watches.values()) watcher.close()
    this.#watches.clear()
  }

  async #below(folder: string): Promise<void> {
    const waiting = [folder]
    for (let path = waiting.pop(); path !== undefined && !this.#stopped; path = waiting.pop()) {
      if (!(await this.#watch(path))) continue
      for (const entry of await readdir(join(this.#root, path), { withFileTypes: true }).catch(() => []))
        if (entry.isDirectory() && !UNWATCHED.has(entry.name)) waiting.push(posix.join(path, entry.name))
    }
  }

  async #watch(path: string): Promise<boolean> {
    const place = join(this.#root, path)
    const found = await lstat(place).catch(() => undefined)
    if (!found?.isDirectory() || this.#stopped) return false
    if (this.#watches.has(path)) return true
    if (this.#watches.size >= MOST_WATCHES) {
      this.exhausted = true
      return false
    }
    try {
      const watcher = watch(place, { persistent: false }, (_, name) => this.#event(path, name))
      watcher.on('error', () => this.#drop(path))
      this.#watches.set(path, watcher)
      return true
    } catch (error) {
      if (EXHAUSTED.has(codeOf(error) ?? '')) this.exhausted = true
      return false
    }
  }

  #drop(path: string): void {
    for (const [watched, watcher] of this.#watches) {
      if (watched !== path && !watched.startsWith(`${path}/`)) continue
      watcher.close()
      this.#watches.delete(watched)
    }
  }

  #event(folder: string, name: string | null): void {
    if (this.#stopped) return
    const depth = folder === '' ? 0 : folder.split('/').length
    const onTheWay = depth < WORKSPACE_EXTENSIONS.length
    // Changes beside the path to the extensions, such as in the workspace's root, are ignored.
    if (onTheWay && name !== WORKSPACE_EXTENSIONS[depth]) return
    const path = name === null ? folder : posix.join(folder, name)
    if (!onTheWay && name !== null && UNWATCHED.has(name)) return
    void this.#follow(path, onTheWay)
    if (onTheWay) this.#names.add('')
    else this.#names.add(path.split('/')[WORKSPACE_EXTENSIONS.length] ?? '')
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#report(), QUIET_MS).unref()
  }

  async #follow(path: string, onTheWay: boolean): Promise<void> {
    const found = await lstat(join(this.#root, path)).catch(() => undefined)
    if (!found?.isDirectory()) return this.#drop(path)
    // The watch of a replaced folder is on the deleted one.
    if (onTheWay || !this.#watches.has(path)) {
      if (onTheWay) this.#drop(path)
      await (onTheWay ? this.start() : this.#below(path))
    }
  }

  #report(): void {
    const names = new Set(this.#names)
    this.#names.clear()
    this.#changed(names)
  }
}
