import { createHash } from 'node:crypto'
import { chmod, lstat, mkdir, rename, rm, rmdir, statfs, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, ignored } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { isBound } from './binding.js'
import type { StoredSecret } from './vault/vault.js'

const TMPFS = 0x01021994
const PLACES = (): string[] => ['/dev/shm', process.env['XDG_RUNTIME_DIR'] ?? ''].filter(Boolean)
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$|^[A-Za-z0-9][A-Za-z0-9_-]*\/[A-Za-z0-9_][A-Za-z0-9_.-]*$/

/** What processes are given of the stored values: files in memory, one folder for each process. */
export class SecretMounts {
  readonly #own: string
  readonly #stored: () => Promise<readonly StoredSecret[]>
  readonly #turns = new KeyedMutex()
  readonly #mounts = new Map<string, ReadonlySet<string>>()

  /** `owner` tells the folders of this daemon from those of others. */
  constructor(owner: string, stored: () => Promise<readonly StoredSecret[]>) {
    this.#own = `sandbox-secrets-${hash(owner)}`
    this.#stored = stored
  }

  /** Removes what a daemon before left. */
  async sweep(): Promise<void> {
    for (const place of PLACES())
      await rm(join(place, this.#own), { recursive: true, force: true }).catch(
        ignored('a folder of another user is not ours to remove'),
      )
  }

  /**
   * The folder of a process with the values that are stored under these names now; it follows every change. For a
   * process that has one, other names replace those before, in the same folder.
   */
  mount(process: string, names: readonly string[]): Promise<string> {
    const wrong = names.find(name => name.length > 200 || !NAME.test(name))
    if (wrong !== undefined)
      refuse('invalid', `names: expected a key, or a connection and its field, found ${JSON.stringify(wrong)}`)
    return this.#turns.with('', async () => {
      const place = await memoryPlace()
      await ownFolder(join(place, this.#own))
      const folder = join(place, this.#own, hash(process))
      const before = this.#mounts.get(process)
      if (!before) await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { mode: 0o700, recursive: true })
      this.#mounts.set(process, new Set(names))
      for (const name of before ?? []) if (!names.includes(name)) await removeFile(folder, name)
      await this.#fill(folder, names)
      return folder
    })
  }

  unmount(process: string): Promise<void> {
    return this.#turns.with('', async () => {
      if (!this.#mounts.delete(process)) return
      await rm(join(await memoryPlace(), this.#own, hash(process)), { recursive: true, force: true })
    })
  }

  /** Brings the files of the changed names up to date. */
  refresh(changed: readonly string[]): Promise<void> {
    if (this.#mounts.size === 0 || changed.length === 0) return Promise.resolve()
    return this.#turns.with('', async () => {
      for (const [process, names] of this.#mounts) {
        const folder = join(await memoryPlace(), this.#own, hash(process))
        await this.#fill(
          folder,
          changed.filter(name => names.has(name)),
        )
      }
    })
  }

  async #fill(folder: string, names: readonly string[]): Promise<void> {
    if (names.length === 0) return
    const stored = new Map((await this.#stored()).map(each => [each.name, each]))
    for (const name of names) {
      const file = join(folder, name)
      const found = stored.get(name)
      // A value bound to hosts goes to these alone, and a file goes anywhere.
      if (!found || isBound(found)) {
        await removeFile(folder, name)
        continue
      }
      await mkdir(dirname(file), { recursive: true, mode: 0o700 })
      const next = `${folder}.next`
      await writeFile(next, found.value, { mode: 0o600 })
      await rename(next, file)
    }
  }
}

/** Removes a file, and with the last field of a connection its folder. */
const removeFile = async (folder: string, name: string): Promise<void> => {
  await rm(join(folder, name), { force: true })
  if (name.includes('/')) await rmdir(dirname(join(folder, name))).catch(ignored('a folder with other files stays'))
}

const hash = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** A folder of the machine whose files are in memory alone. */
const memoryPlace = async (): Promise<string> => {
  for (const place of PLACES()) if ((await statfs(place).catch(() => undefined))?.type === TMPFS) return place
  return refuse('unavailable', 'this machine has no folder in memory (/dev/shm) for values that processes read')
}

/** Others can write where it is: it must be a folder of this user's that nobody else enters. */
const ownFolder = async (path: string): Promise<void> => {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    const found = await lstat(path)
    if (!found.isDirectory() || found.uid !== process.geteuid?.())
      refuse('unavailable', `${path} belongs to somebody else: no value was written there`)
    await chmod(path, 0o700)
  }
}
