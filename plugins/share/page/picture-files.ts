import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import { Refusal } from '../../../sdk/index.js'
import { openExisting, openFile } from '../../../sdk/node/files/open-path.js'
import type { DroppedFile } from '../contract.js'
import { BrokenPicture } from '../pictures/parts.js'
import { withoutMetadata, type BarePicture } from '../pictures/strip.js'

const MOST_BYTES = 25 * 1024 * 1024
const PICTURES = new Set(['.png', '.jpg', '.jpeg', '.gif', '.webp', '.avif'])

/** A picture beside the page. */
export interface PagePicture {
  readonly path: string
  readonly name: string
  readonly type: BarePicture['type']
  readonly bytes: Buffer
}

/** The pictures of one page: copies without metadata, each once. */
export class PictureFiles {
  readonly #workspace: string
  readonly #known = new Map<string, Promise<PagePicture | undefined>>()
  readonly dropped: DroppedFile[] = []
  readonly pictures: PagePicture[] = []
  #bytes = 0

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  get sizeBytes(): number {
    return this.#bytes
  }

  /** The copy of a picture; undefined: the file is only named. */
  of(path: string): Promise<PagePicture | undefined> {
    const known = this.#known.get(path) ?? this.#copied(path)
    this.#known.set(path, known)
    return known
  }

  async #copied(path: string): Promise<PagePicture | undefined> {
    const found = await this.#read(path)
    if ('reason' in found) {
      this.dropped.push({ path, reason: found.reason })
      return undefined
    }
    const { type, extension, bytes } = found
    const name = `${createHash('sha256').update(bytes).digest('hex').slice(0, 24)}.${extension}`
    const same = this.pictures.find(picture => picture.name === name)
    if (same) return same
    const picture = { path, name, type, bytes }
    this.pictures.push(picture)
    this.#bytes += bytes.length
    return picture
  }

  async #read(path: string): Promise<BarePicture | { readonly reason: string }> {
    if (!PICTURES.has(extname(path).toLowerCase())) return { reason: 'it is no picture of a type that is shared' }
    try {
      const tree = { root: this.#workspace, reach: undefined, readsGit: false }
      await using found = await openExisting(tree, path)
      if (found.stats.size > MOST_BYTES) return { reason: 'it is larger than 25 MiB' }
      await using file = await openFile(found, path)
      return withoutMetadata(await file.readFile()) ?? { reason: 'it is no picture, whatever its name says' }
    } catch (error) {
      if (error instanceof BrokenPicture) return { reason: error.message }
      if (Refusal.from(error).reason !== 'failed') return { reason: 'it is not there any more' }
      throw error
    }
  }
}
