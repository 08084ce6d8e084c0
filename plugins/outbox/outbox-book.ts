import { createHash } from 'node:crypto'
import { refuse, type Host } from '../../sdk/index.js'
import { randomBase32 } from '../../sdk/node/access/random-name.js'
import { MOST } from './guards.js'
import type { Quota } from './staging.js'
import { entryBytes, type StoredEntry, type StoredFile, type StoredName } from './stored-entry.js'

const SLOT = 'slot'
const OPENED = 'opened'
/** 130 random bits. */
const SLOT_LENGTH = 26

const documentOf = (name: string): string => `entries/${createHash('sha256').update(name).digest('hex').slice(0, 32)}`

/** What is published, out of the reach of turns: entries by name, the slot, and how often files were opened. */
export class OutboxBook {
  readonly #host: Pick<Host, 'files' | 'store'>
  readonly #entries = new Map<string, StoredEntry>()
  #opened = new Map<string, number>()
  #openedChanged = false
  #slot = ''

  constructor(host: Pick<Host, 'files' | 'store'>) {
    this.#host = host
  }

  /** Reads everything; returns the changes that an earlier daemon began. */
  async load(): Promise<{ readonly name: string; readonly stored: StoredName }[]> {
    this.#slot = (await this.#host.store.get<string>(SLOT)) ?? ''
    if (this.#slot === '') await this.rotate()
    this.#opened = new Map(await this.#host.store.get<[string, number][]>(OPENED))
    const begun: { name: string; stored: StoredName }[] = []
    for (const document of await this.#host.files.list('entries/')) {
      const stored = await this.#host.files.read<StoredName>(document)
      const name = stored?.next?.entry.name ?? stored?.current?.name ?? stored?.removing?.[0]?.split('/')[0]
      if (!stored || name === undefined) continue
      if (stored.current) this.#entries.set(name, stored.current)
      if (stored.next || stored.removing !== undefined) begun.push({ name, stored })
    }
    return begun
  }

  get slot(): string {
    return this.#slot
  }

  /** A new slot; addresses with the old one end. */
  async rotate(): Promise<void> {
    const slot = randomBase32(SLOT_LENGTH)
    await this.#host.store.set(SLOT, slot)
    this.#slot = slot
  }

  get all(): readonly StoredEntry[] {
    return [...this.#entries.values()]
  }

  entry(name: string): StoredEntry | undefined {
    return this.#entries.get(name)
  }

  /** Stores what is known of a name; without an entry and a change it is forgotten. */
  async save(name: string, stored: StoredName): Promise<void> {
    const isEmpty = !stored.current && !stored.next && stored.removing === undefined
    if (isEmpty) await this.#host.files.remove(documentOf(name))
    else await this.#host.files.write(documentOf(name), stored)
    if (stored.current) this.#entries.set(name, stored.current)
    else this.#entries.delete(name)
  }

  /** What may still be published in place of a name. */
  quota(name: string): Quota {
    const others = this.all.filter(each => each.name !== name)
    const quota = {
      bytes: MOST.bytes - others.reduce((sum, entry) => sum + entryBytes(entry), 0),
      files: MOST.files - others.reduce((sum, { files }) => sum + files.length, 0),
    }
    if (quota.files < 1) refuse('too-large', `expected at most ${MOST.files} files in the outbox, found more`)
    return quota
  }

  opened({ path }: Pick<StoredFile, 'path'>): number {
    return this.#opened.get(path) ?? 0
  }

  countOpened({ path }: Pick<StoredFile, 'path'>): void {
    this.#opened.set(path, (this.#opened.get(path) ?? 0) + 1)
    this.#openedChanged = true
  }

  /** Forgets how often the files of a name were opened. */
  forgetOpened(name: string): void {
    for (const path of this.#opened.keys())
      if (path === name || path.startsWith(`${name}/`)) this.#openedChanged = this.#opened.delete(path)
  }

  /** Stores how often files were opened since the last time. */
  async keepOpened(): Promise<void> {
    if (!this.#openedChanged) return
    this.#openedChanged = false
    await this.#host.store.set(OPENED, [...this.#opened])
  }
}
