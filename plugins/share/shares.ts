import { createHash } from 'node:crypto'
import { mkdir, open, readdir, rm, writeFile, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Host } from '../../sdk/index.js'
import { randomBase32 } from '../../sdk/node/access/random-name.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { writeFailure } from '../../sdk/node/files/disk.js'
import { flushTree } from '../../sdk/node/files/files.js'
import { codeOf } from '../../sdk/node/files/paths.js'
import type { SharedConversation, SharePageBytes } from './contract.js'
import type { PageSnapshot } from './page/snapshot.js'

const PAGE = 'index.html'
const OPENED = 'opened'
const RANDOM = 26
const LONGEST_STEM = 60

/** A file of a share. */
export interface ShareFile {
  readonly name: string
  readonly type: SharePageBytes['content-type']
  readonly size: number
  readonly tag: string
}

/** A share as it is stored. */
export interface StoredShare extends Omit<SharedConversation, 'opened' | 'stale' | 'url'> {
  /** The folder of this snapshot. */
  readonly version: string
  /** Rows of the record when it was taken. */
  readonly rows: number
  /** The page is the first one. */
  readonly files: readonly ShareFile[]
  /** The record says that its time is over. */
  readonly expired?: true
}

const documentOf = (id: string): string => `shares/${id}`

/** A new id: what people can read of the title, and 130 random bits. */
export const newShareId = (title: string): string => {
  const stem = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+/, '')
    .slice(0, LONGEST_STEM)
    .replace(/-+$/, '')
  return `${stem === '' ? '' : `${stem}-`}${randomBase32(RANDOM)}`
}

/** The shares: a document each, which names the folder of its snapshot. */
export class Shares {
  readonly #host: Pick<Host, 'files' | 'store' | 'place'>
  readonly #folder: string
  readonly #shares = new Map<string, StoredShare>()
  readonly #mutex = new KeyedMutex()
  #opened = new Map<string, number>()
  #openedChanged = false

  constructor(host: Pick<Host, 'files' | 'store' | 'place'>) {
    this.#host = host
    this.#folder = join(host.place.folder, 'pages')
  }

  /** Reads all; folders that no share names go. */
  async load(): Promise<void> {
    this.#opened = new Map(await this.#host.store.get<[string, number][]>(OPENED))
    for (const document of await this.#host.files.list('shares/')) {
      const share = await this.#host.files.read<StoredShare>(document)
      if (share) this.#shares.set(share.id, share)
    }
    for (const id of await readdir(this.#folder).catch(() => []))
      for (const version of await readdir(join(this.#folder, id)))
        if (this.#shares.get(id)?.version !== version) await this.#drop(id, version)
    await this.keepOpened()
  }

  get all(): readonly StoredShare[] {
    return [...this.#shares.values()].sort((one, other) => other.sharedAt - one.sharedAt)
  }

  find(id: string): StoredShare | undefined {
    return this.#shares.get(id)
  }

  get(id: string): StoredShare {
    return this.#shares.get(id) ?? refuse('not-found', `there is no share ${JSON.stringify(id.slice(0, 96))}`)
  }

  /** Stores a snapshot under a new id, or in place of that of a share, whole before its address answers. */
  async keep(
    about: Omit<StoredShare, 'version' | 'files' | 'rows' | 'messages' | 'pictures' | 'sizeBytes' | 'redactions'>,
    snapshot: PageSnapshot,
    isNew: boolean,
  ): Promise<StoredShare> {
    const { id } = about
    return this.#mutex.with(id, async () => {
      if (!isNew) this.get(id)
      const version = randomBase32(16)
      const files = await this.#write(join(this.#folder, id, version), snapshot)
      failpoint('share.written')
      const before = this.#shares.get(id)
      const { messages, rows, sizeBytes, redactions, pictures } = snapshot
      const share = {
        ...about,
        ...{ version, files, messages, rows, sizeBytes, redactions },
        pictures: pictures.length,
      }
      try {
        await this.#host.files.write(documentOf(id), share)
      } catch (error) {
        await this.#drop(id, version)
        throw error
      }
      this.#shares.set(id, share)
      failpoint('share.kept')
      if (before) await this.#drop(id, before.version)
      return share
    })
  }

  /** Takes a share down; false: there is none. */
  async remove(id: string): Promise<boolean> {
    return this.#mutex.with(id, async () => {
      const share = this.#shares.get(id)
      if (!share) return false
      await this.#host.files.remove(documentOf(id))
      this.#shares.delete(id)
      this.#openedChanged = this.#opened.delete(id) || this.#openedChanged
      failpoint('share.removed')
      await rm(join(this.#folder, id), { recursive: true, force: true })
      return true
    })
  }

  /** Marks shares whose time is over; returns those that were not marked. */
  async expire(now: number): Promise<StoredShare[]> {
    const over = this.all.filter(({ expiresAt = Infinity, expired }) => !expired && expiresAt <= now)
    const marked: StoredShare[] = []
    for (const { id } of over)
      await this.#mutex.with(id, async () => {
        const share = this.#shares.get(id)
        if (!share || share.expired || (share.expiresAt ?? Infinity) > now) return
        const expired = { ...share, expired: true as const }
        await this.#host.files.write(documentOf(id), expired)
        this.#shares.set(id, expired)
        marked.push(expired)
      })
    return marked
  }

  /** Opens a file of a share; undefined: it is not served. */
  async open(id: string, path: string): Promise<{ readonly file: ShareFile; readonly handle: FileHandle } | undefined> {
    for (let attempt = 0; attempt < 3; attempt++) {
      const share = this.#shares.get(id)
      if (!share || (share.expiresAt ?? Infinity) <= Date.now()) return undefined
      const name = path === '' ? PAGE : path
      const file = share.files.find(each => each.name === name && (path !== '' || each === share.files[0]))
      if (!file || path === PAGE) return undefined
      try {
        return { file, handle: await open(join(this.#folder, id, share.version, name), 'r') }
      } catch (error) {
        // Another snapshot took its place.
        if (codeOf(error) !== 'ENOENT') throw error
      }
    }
    return undefined
  }

  opened(id: string): number {
    return this.#opened.get(id) ?? 0
  }

  countOpened(id: string): void {
    this.#opened.set(id, this.opened(id) + 1)
    this.#openedChanged = true
  }

  /** Stores how often pages were opened since the last time. */
  async keepOpened(): Promise<void> {
    if (!this.#openedChanged) return
    this.#openedChanged = false
    await this.#host.store.set(OPENED, [...this.#opened])
  }

  async #write(folder: string, { html, pictures }: PageSnapshot): Promise<ShareFile[]> {
    const fileOf = (name: string, type: ShareFile['type'], bytes: Buffer): ShareFile => ({
      ...{ name, type, size: bytes.length },
      tag: createHash('sha256').update(bytes).digest('base64url').slice(0, 22),
    })
    try {
      await mkdir(join(folder, 'files'), { recursive: true, mode: 0o700 })
      await writeFile(join(folder, PAGE), html, { mode: 0o600 })
      for (const { name, bytes } of pictures) await writeFile(join(folder, 'files', name), bytes, { mode: 0o600 })
      await flushTree(folder)
    } catch (error) {
      await rm(folder, { recursive: true, force: true })
      throw writeFailure(error)
    }
    return [
      fileOf(PAGE, 'text/html; charset=utf-8', html),
      ...pictures.map(({ name, type, bytes }) => fileOf(`files/${name}`, type, bytes)),
    ]
  }

  async #drop(id: string, version: string): Promise<void> {
    await rm(join(this.#folder, id, version), { recursive: true, force: true })
    if (!this.#shares.has(id)) await rm(join(this.#folder, id), { recursive: true, force: true })
  }
}
