import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, readdir, readlink, lstat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { openPath } from '../../node/files/open-path.js'
import { CommandFailure, EXIT } from '../verb.js'
import type { TarEntry } from './tar.js'

const MOST_FILES = 50_000
const MOST_BYTES = 1024 ** 3
const DEEPEST = 64
const PIECE = 256 * 1024
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK

const failed = (message: string): never => {
  throw new CommandFailure(EXIT.refused, message)
}

/** A folder of the workspace, held open while an image is made of it. */
export class SourceFolder implements AsyncDisposable {
  readonly #name: string
  readonly #root: FileHandle

  private constructor(name: string, root: FileHandle) {
    this.#name = name
    this.#root = root
  }

  /** Opens it; a link on the way leads nowhere outside of the workspace. */
  static async open(workspace: string, name: string): Promise<SourceFolder> {
    await using found = await openPath({ root: workspace, reach: undefined, readsGit: false }, name)
    if (!found?.stats.isDirectory()) return failed(`${name} is no folder of the workspace`)
    return new SourceFolder(name, await open(found.at, constants.O_RDONLY | constants.O_DIRECTORY))
  }

  /** What it has, in an order of its own, without `.git`. Links are kept as links, and other things left out. */
  async *entries(): AsyncGenerator<TarEntry> {
    const count = { files: 0, bytes: 0 }
    yield* this.#below(this.#root, '', count, 0)
  }

  async *#below(
    folder: FileHandle,
    under: string,
    count: { files: number; bytes: number },
    depth: number,
  ): AsyncGenerator<TarEntry> {
    if (depth > DEEPEST) failed(`${this.#name} has more than ${DEEPEST} folders in each other`)
    const at = `/proc/self/fd/${folder.fd}`
    for (const name of (await readdir(at)).sort()) {
      if (name === '.git') continue
      const path = under === '' ? name : `${under}/${name}`
      if (++count.files > MOST_FILES) failed(`${this.#name} has more than ${MOST_FILES} files: keep others elsewhere`)
      const stats = await lstat(join(at, name))
      const mode = stats.mode & 0o755
      if (stats.isSymbolicLink())
        yield { path, mode: 0o777, type: 'link', target: await readlink(join(at, name)), size: 0 }
      else if (stats.isDirectory()) {
        await using inner = await open(join(at, name), FOLDER)
        yield { path, mode, type: 'folder', size: 0 }
        yield* this.#below(inner, path, count, depth + 1)
      } else if (stats.isFile()) {
        await using file = await open(join(at, name), FILE)
        const { size } = await file.stat()
        if ((count.bytes += size) > MOST_BYTES) failed(`${this.#name} has more than 1 GiB: keep large files elsewhere`)
        yield { path, mode, type: 'file', size, content: () => piecesOf(file, size) }
      }
    }
  }

  /** What tells this content from other. */
  async digest(): Promise<string> {
    const whole = createHash('sha256')
    for await (const { path, mode, type, target = '', content } of this.entries()) {
      const own = createHash('sha256')
      if (content) for await (const piece of content()) own.update(piece)
      whole.update(JSON.stringify([path, mode, type, target, own.digest('hex')]))
    }
    return whole.digest('hex')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#root.close()
  }
}

async function* piecesOf(file: FileHandle, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < size;) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(PIECE, size - at)), 0, undefined, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
