import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Refusal, refuse } from '../../sdk/index.js'
import { openExisting, openFile, type PathTree } from '../../sdk/node/files/open-path.js'
import { flushTree } from '../../sdk/node/files/files.js'
import type { StoredApproval, StoredMedia } from './stored-approval.js'

const MOST_BYTES = 100 * 1024 * 1024

/** A file that goes out with a post. */
export interface SentMedia {
  readonly name: string
  readonly bytes: Buffer
}

/** Copies of the files of posts, one folder for each content: what is approved is what is sent. */
export class MediaCopies {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = join(folder, 'media')
  }

  /** Copies files into a new folder; nothing is left of a copy that is refused. */
  async copy(
    paths: readonly string[],
    tree: Omit<PathTree, 'readsGit'>,
  ): Promise<{ folder: string; media: StoredMedia[] }> {
    const folder = randomUUID()
    const target = join(this.#folder, folder)
    await mkdir(target, { recursive: true, mode: 0o700 })
    try {
      const from = { root: await realpath(tree.root), reach: tree.reach, readsGit: false }
      const media: StoredMedia[] = []
      let left = MOST_BYTES
      for (const [at, path] of paths.entries()) {
        const { hash, bytes } = await copied(from, path, join(target, String(at)), left)
        left -= bytes
        media.push({ path, hash })
      }
      await flushTree(target)
      return { folder, media }
    } catch (error) {
      await this.remove(folder)
      throw error
    }
  }

  /** The copied files of an item. */
  async read({ folder = '', media = [] }: Pick<StoredApproval, 'folder' | 'media'>): Promise<SentMedia[]> {
    const read = async ({ path, hash }: StoredMedia, at: number): Promise<SentMedia> => {
      const bytes = await readFile(join(this.#folder, folder, String(at)))
      if (createHash('sha256').update(bytes).digest('hex') !== hash)
        refuse('unprocessable', `the copy of ${basename(path)} is damaged: propose the post again`)
      return { name: basename(path), bytes }
    }
    return Promise.all(media.map(read))
  }

  async remove(folder: string | undefined): Promise<void> {
    if (folder !== undefined) await rm(join(this.#folder, folder), { recursive: true, force: true })
  }

  /** Removes the folders that no item names. */
  async keepOnly(folders: ReadonlySet<string>): Promise<void> {
    const found = await readdir(this.#folder).catch(() => [])
    for (const folder of found) if (!folders.has(folder)) await this.remove(folder)
  }
}

const copied = async (
  tree: PathTree,
  path: string,
  target: string,
  most: number,
): Promise<{ hash: string; bytes: number }> => {
  const hash = createHash('sha256')
  let bytes = 0
  await using found = await openExisting(tree, path).catch((error: unknown) => {
    const { reason, message } = Refusal.from(error)
    return reason === 'not-found' ? refuse('unprocessable', `post.media: ${message}`) : Promise.reject(error)
  })
  await using file = await openFile(found, path)
  const counted = async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > most) refuse('too-large', `post.media: expected at most ${MOST_BYTES} bytes together, found more`)
      hash.update(piece)
      yield piece
    }
  }
  const from = file.createReadStream({ autoClose: false })
  await pipeline(from, counted, createWriteStream(target, { flags: 'wx', mode: 0o600 }))
  return { hash: hash.digest('hex'), bytes }
}
