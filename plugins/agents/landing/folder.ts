import { constants, type BigIntStats } from 'node:fs'
import { lstat, open, rmdir, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { bytePath } from '../../../sdk/node/byte-names.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

/** Why a folder of the tree cannot be entered: at `at` is a link, a file, another repository or a closed folder. */
export interface Obstacle {
  readonly at: string
  readonly what: 'link' | 'file' | 'repository' | 'closed'
}

/** An open folder, an obstacle on its path, or neither if it does not exist. */
export interface Reached {
  readonly folder?: Folder
  readonly obstacle?: Obstacle
}

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants
/** The errors of file systems that cannot flush folders. */
const UNFLUSHED = new Set(['EINVAL', 'ENOTSUP'])

/**
 * A folder of a tree, opened by descriptor, so that replacing a parent with a link has no effect.
 *
 * On systems without `/proc/self/fd` uses paths instead.
 */
export class Folder {
  readonly #handle: FileHandle
  readonly #path: string

  private constructor(handle: FileHandle, path: string) {
    this.#handle = handle
    this.#path = path
  }

  static async #open(path: string | Buffer, name: string): Promise<Folder> {
    return new Folder(await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), name)
  }

  /** Opens a folder of a tree, never through a link or into another repository. */
  static async reach(root: string, segments: readonly string[]): Promise<Reached> {
    let folder = await Folder.#open(root, root)
    for (const [depth, segment] of segments.entries()) {
      const at = segments.slice(0, depth + 1).join('/')
      const next = await folder.#enter(segment, at).finally(() => folder.close())
      if (!next.folder) return next
      folder = next.folder
      if (await folder.stat('.git')) {
        await folder.close()
        return { obstacle: { at, what: 'repository' } }
      }
    }
    return { folder }
  }

  async #enter(segment: string, at: string): Promise<Reached> {
    try {
      return { folder: await Folder.#open(this.at(segment), join(this.#path, segment)) }
    } catch (error) {
      const code = codeOf(error)
      if (code === 'ENOENT') return {}
      if (code === 'EACCES' || code === 'ENAMETOOLONG') return { obstacle: { at, what: 'closed' } }
      if (code !== 'ENOTDIR' && code !== 'ELOOP') throw error
      const stat = await this.stat(segment)
      return stat ? { obstacle: { at, what: stat.isSymbolicLink() ? 'link' : 'file' } } : {}
    }
  }

  /** The path of a name in this folder, through its descriptor. */
  at(name: string): string | Buffer {
    return bytePath(process.platform === 'linux' ? `/proc/self/fd/${this.#handle.fd}/${name}` : join(this.#path, name))
  }

  /** Stats a name in it without following links. */
  async stat(name: string): Promise<BigIntStats | undefined> {
    try {
      return await lstat(this.at(name), { bigint: true })
    } catch (error) {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined
      throw error
    }
  }

  /** Opens the same folder again with another descriptor, even if it was moved. */
  again(): Promise<Folder> {
    return Folder.#open(this.at('.'), this.#path)
  }

  /** Flushes its directory entries to the disk, if the file system supports it. */
  async flush(): Promise<void> {
    await this.#handle.sync().catch(error => {
      if (!UNFLUSHED.has(codeOf(error) ?? '')) throw error
    })
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** The folder and the name of a path. */
export const splitPath = (path: string): { segments: string[]; name: string } => {
  const segments = path.split('/')
  return { name: segments.pop()!, segments }
}

/** Identifies the state of a file without reading it. */
export const stampOf = (stat: BigIntStats | undefined): string => {
  if (!stat) return 'absent'
  return stat.isDirectory() ? 'folder' : `${stat.mode} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
}

/** Whether two stamps are of the same file, at most renamed in between. */
export const sameFile = (one: string, other: string): boolean =>
  one.slice(0, one.lastIndexOf(' ')) === other.slice(0, other.lastIndexOf(' '))

/** Removes a folder and its parents while they are empty; keeps the root of the tree. */
export const removeEmpty = async (root: string, path: string): Promise<void> => {
  for (let at = path; at !== ''; at = splitPath(at).segments.join('/')) {
    const { segments, name } = splitPath(at)
    const { folder } = await Folder.reach(root, segments)
    if (!folder) continue
    try {
      await rmdir(folder.at(name))
    } catch (error) {
      if (codeOf(error) === 'ENOENT') continue
      return
    } finally {
      await folder.close()
    }
  }
}
