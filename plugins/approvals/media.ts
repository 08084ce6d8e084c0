import { createHash, randomUUID } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { mkdir, readdir, readFile, realpath, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { Refusal, refuse } from '../../sdk/index.js'
import { openExisting, openFile, type OpenedPath, type PathTree } from '../../sdk/node/files/open-path.js'
import { flushTree } from '../../sdk/node/files/files.js'
import { openReal } from '../../sdk/node/files/real-path.js'
import type { StoredApproval, StoredMedia } from './stored-approval.js'

const MOST_BYTES = 100 * 1024 * 1024
const MOST_FILES = 2_000
const PUBLISHED = 'published'
const FIELD = 'action.args.path'

/** The tree that files are copied from. */
type CopiedTree = Omit<PathTree, 'readsGit'>

interface CopiedMedia {
  readonly folder: string
  readonly media: StoredMedia[]
}

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

  /** Copies files into a new folder. */
  copy(paths: readonly string[], tree: CopiedTree): Promise<CopiedMedia> {
    return this.#made(tree, async (target, from) => {
      const media: StoredMedia[] = []
      let left = MOST_BYTES
      for (const [at, path] of paths.entries()) {
        const { hash, bytes } = await copied(from, path, join(target, String(at)), left, 'post.media')
        left -= bytes
        media.push({ path, hash })
      }
      return media
    })
  }

  /** Copies a file or folder that is to be published, without links and hidden files, into a new folder. */
  copyTree(path: string, tree: CopiedTree): Promise<CopiedMedia> {
    return this.#made(tree, async (target, from) => {
      await mkdir(join(target, PUBLISHED))
      return [{ path, hash: await copiedTree(from, path, join(target, PUBLISHED, basename(path))) }]
    })
  }

  /** Where the copied file or folder of an item is, under its own name, by which it may be refused. */
  treeOf({ folder = '', media: [tree] = [] }: Pick<StoredApproval, 'folder' | 'media'>): string {
    return join(this.#folder, folder, PUBLISHED, basename(tree?.path ?? ''))
  }

  /** Makes a folder of copies; nothing is left of one that is refused. */
  async #made(
    { root, reach }: CopiedTree,
    work: (target: string, from: PathTree) => Promise<StoredMedia[]>,
  ): Promise<CopiedMedia> {
    const folder = randomUUID()
    const target = join(this.#folder, folder)
    await mkdir(target, { recursive: true, mode: 0o700 })
    try {
      const media = await work(target, { root: await realpath(root), reach, readsGit: false })
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
  field: string,
): Promise<{ hash: string; bytes: number }> => {
  const hash = createHash('sha256')
  let bytes = 0
  await using found = await openExisting(tree, path).catch((error: unknown) => {
    const { reason, message } = Refusal.from(error)
    return reason === 'not-found' ? refuse('unprocessable', `${field}: ${message}`) : Promise.reject(error)
  })
  await using file = await openFile(found, path)
  const counted = async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
    for await (const piece of pieces) {
      bytes += piece.length
      if (bytes > most) refuse('too-large', `${field}: expected at most ${MOST_BYTES} bytes together, found more`)
      hash.update(piece)
      yield piece
    }
  }
  const from = file.createReadStream({ autoClose: false })
  await pipeline(from, counted, createWriteStream(target, { flags: 'wx', mode: 0o600 }))
  return { hash: hash.digest('hex'), bytes }
}

/** Copies a file or folder; returns a hash of all names and bytes. */
const copiedTree = async (tree: PathTree, path: string, target: string): Promise<string> => {
  const whole = createHash('sha256')
  let [left, files] = [MOST_BYTES, 0]
  const copyFile = async (from: string, within: string): Promise<void> => {
    files += 1
    if (files > MOST_FILES) refuse('too-large', `${FIELD}: expected at most ${MOST_FILES} files, found more`)
    const { hash, bytes } = await copied(tree, from, join(target, within), left, FIELD)
    left -= bytes
    whole.update(`${within}\0${hash}\0`)
  }
  const copyFolder = async (folder: OpenedPath, within: string): Promise<void> => {
    await mkdir(join(target, within))
    for (const name of (await readdir(folder.at)).sort()) {
      if (name.startsWith('.')) continue
      const [from, to] = [`${folder.path}/${name}`, within === '' ? name : `${within}/${name}`]
      const found = await openReal(tree, from)
      if (typeof found === 'string') continue
      try {
        if (found.stats.isDirectory()) await copyFolder(found, to)
        else if (found.stats.isFile()) await copyFile(from, to)
      } finally {
        await found.close()
      }
    }
  }
  await using found = await openExisting(tree, path).catch((error: unknown) => {
    const { reason, message } = Refusal.from(error)
    return reason === 'not-found' ? refuse('unprocessable', `${FIELD}: ${message}`) : Promise.reject(error)
  })
  if (found.stats.isDirectory()) await copyFolder(found, '')
  else await copyFile(found.path, '')
  return whole.digest('hex')
}
