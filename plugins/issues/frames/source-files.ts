import { Refusal } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { openFile, openPath, type PathTree } from '../../../sdk/node/files/open-path.js'
import { isSecretFile } from '../../../sdk/node/access/secret-files.js'

/** A file in the workspace, with what changes when it does. */
export interface SourceFile {
  readonly path: string
  readonly size: number
  readonly version: string
}

const NOT_THERE = new Set(['not-found', 'invalid', 'unprocessable'])

/** The files of one repository, as far as a caller reaches it. */
export class SourceFiles {
  readonly #tree: PathTree
  readonly #repo: string
  readonly #found = new Map<string, Promise<SourceFile | undefined>>()

  /** @param repo Its folder, from the root of the workspace. */
  constructor(tree: PathTree, repo: string) {
    this.#tree = tree
    this.#repo = repo
  }

  /** The file at a path; undefined: there is none, or it is not to be seen. */
  find(path: string): Promise<SourceFile | undefined> {
    const known = this.#found.get(path) ?? this.#look(path)
    this.#found.set(path, known)
    return known
  }

  async #look(path: string): Promise<SourceFile | undefined> {
    try {
      await using found = await openPath(this.#tree, path)
      if (!found?.stats.isFile() || !this.#isInside(found.path)) return undefined
      const { size, mtimeMs, ino } = found.stats
      return { path: found.path, size, version: `${found.path} ${size} ${mtimeMs} ${ino}` }
    } catch (error) {
      return nothingThere(error)
    }
  }

  /** Whether a real path is in the repository and may be shown. */
  #isInside(path: string): boolean {
    const isBelow = this.#repo === '.' || path.startsWith(`${this.#repo}/`)
    return isBelow && !isClosedName(path.split('/')) && !isSecretFile(path)
  }

  /** The bytes of a file from a place on; undefined: it is larger than `most`, or gone. */
  async read({ path, size }: SourceFile, most: number, from = 0): Promise<Buffer | undefined> {
    if (size - from > most) return undefined
    try {
      await using found = await openPath(this.#tree, path)
      if (found?.path !== path) return undefined
      await using handle = await openFile(found, path)
      const buffer = Buffer.alloc(size - from)
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, from)
      return buffer.subarray(0, bytesRead)
    } catch (error) {
      return nothingThere(error)
    }
  }
}

const nothingThere = (error: unknown): undefined => {
  if (!(error instanceof Refusal) || !NOT_THERE.has(error.reason)) throw error
  return undefined
}
