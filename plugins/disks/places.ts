import { mkdir, realpath, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Place, ignored } from '../../sdk/index.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import { davfsCacheOf } from './carriers/mount-programs.js'

const MOUNT_ROOT = '/mnt/sandbox'

/** Where shares are mounted, and where the group keeps what their carriers need. */
export class DiskPlaces {
  readonly #root: string
  readonly #folder: string

  constructor({ mounts, folder }: Pick<Place, 'mounts' | 'folder'>) {
    this.#root = mounts?.root ?? MOUNT_ROOT
    this.#folder = folder
  }

  /** The folder of a share, as the kernel's table of mounts names it. */
  async mountPoint(id: string): Promise<string> {
    return join(await realpath(this.#root).catch(() => this.#root), id)
  }

  /** The private folder with the credential of a mounted share. */
  credentials(id: string): string {
    return join(this.#folder, 'credentials', id)
  }

  cache(id: string): string {
    return join(this.#folder, 'cache', id)
  }

  /** Makes the folders of a share and returns its mount point; refuses where the daemon's user may not. */
  async make(id: string): Promise<string> {
    try {
      await mkdir(this.#root, { recursive: true, mode: 0o755 })
      const mountPoint = await this.mountPoint(id)
      await mkdir(mountPoint, { recursive: true, mode: 0o700 })
      await mkdir(this.credentials(id), { recursive: true, mode: 0o700 })
      await mkdir(this.cache(id), { recursive: true, mode: 0o700 })
      return mountPoint
    } catch (error) {
      return refuse(
        'missing-program',
        `${this.#root} cannot be made (${codeOf(error) ?? 'unknown'}): make it and give it to the daemon's user, or `
          + 'name another folder with mounts.root of the deployment',
        { cause: error },
      )
    }
  }

  /** Removes the credential of a share. */
  async removeCredentials(id: string): Promise<void> {
    await rm(this.credentials(id), { recursive: true, force: true })
  }

  /** Removes the folder of a share that is not mounted; one that is not empty stays. */
  async removeFolder(id: string): Promise<void> {
    await rmdir(await this.mountPoint(id)).catch(ignored('a folder with files stays'))
  }

  /** Removes what carriers cached of a share. */
  async removeCaches(id: string): Promise<void> {
    await rm(this.cache(id), { recursive: true, force: true })
    await rm(davfsCacheOf(await this.mountPoint(id)), { recursive: true, force: true })
  }
}
