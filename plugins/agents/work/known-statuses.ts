import { createHash } from 'node:crypto'
import type { Files } from '../../../sdk/index.js'
import type { DiffTotals, LandedPresence } from '../contract.js'

/** The cached status of one repository of a conversation. */
export interface KnownStatus {
  readonly repo: string
  /** The commit of main's HEAD; empty before the first one. */
  readonly head: string
  /** The tip and recorded commits that the answer depends on. */
  readonly work: string
  /** The commits whose histories were compared with main. */
  readonly commits: readonly string[]
  readonly outstanding: boolean
  readonly totals: DiffTotals
  readonly presence: LandedPresence
  /** The paths of the working tree that the answer depends on, and the stamp that changes with any of them. */
  readonly paths: string
  readonly stamp: string
}

const FILE = 'standings'
/** Increment when the computation changes, to invalidate stored answers. */
const VERSION = 1
const MOST_BYTES = 16 * 1024 * 1024
/** Estimated bytes of an answer besides its paths. */
const SMALL = 600
const SAVE_MS = 10_000

interface Saved {
  readonly version: number
  readonly workspace: string
  readonly known: readonly (readonly [name: string, known: KnownStatus])[]
}

/** The paths of an answer. */
export const pathsOf = (paths: string): string[] => (paths === '' ? [] : paths.split('\0'))

/** Combines many stamps into one. */
export const hashing = (): { add: (stamp: string) => void; end: () => string } => {
  const all = createHash('sha256')
  return { add: stamp => void all.update(`${stamp}\0`), end: () => all.digest('base64') }
}

/** The stamp of an answer that depends on no path. */
export const NOWHERE = hashing().end()

const sizeOf = ({ paths, work }: KnownStatus): number => SMALL + 2 * (paths.length + work.length)

/** The dependencies of the cache. */
export interface KnownStatusDeps {
  readonly workspace: string
  readonly files?: Pick<Files, 'read' | 'write'>
  readonly failed: (message: string, fields: object) => void
}

/**
 * A cache of answers with a limit in bytes, stored in a file that may be lost at any time.
 *
 * Does not evict for new answers: the roster requests all answers in the same order, so an evicted one would be needed
 * next.
 */
export class KnownStatuses {
  readonly #deps: KnownStatusDeps
  readonly #known = new Map<string, KnownStatus>()
  #bytes = 0
  #saver: NodeJS.Timeout | undefined
  #saving: Promise<void> = Promise.resolve()

  constructor(deps: KnownStatusDeps) {
    this.#deps = deps
  }

  async open(): Promise<void> {
    const { failed, files, workspace } = this.#deps
    const saved = await files?.read<Saved>(FILE).catch(error => {
      failed('reading stored branch statuses failed; computing them again', { error: String(error) })
      return undefined
    })
    if (saved?.version !== VERSION || saved.workspace !== workspace) return
    for (const [name, known] of saved.known) this.#put(name, known)
  }

  get(name: string): KnownStatus | undefined {
    return this.#known.get(name)
  }

  /** The answers of a repository for one HEAD of main. */
  under(repo: string, head: string): (readonly [name: string, known: KnownStatus])[] {
    return [...this.#known].filter(([, known]) => known.repo === repo && known.head === head)
  }

  keep(name: string, known: KnownStatus): KnownStatus {
    this.#put(name, known)
    this.#changed()
    return known
  }

  drop(name: string): void {
    const known = this.#known.get(name)
    if (!known) return
    this.#known.delete(name)
    this.#bytes -= sizeOf(known)
    this.#changed()
  }

  /** Drops all answers of a conversation. */
  forget(id: string): void {
    for (const name of this.#known.keys()) if (name.startsWith(`${id} `)) this.drop(name)
  }

  /** Stores new answers. */
  async close(): Promise<void> {
    if (this.#saver) this.#save()
    await this.#saving
  }

  #put(name: string, known: KnownStatus): void {
    const before = this.#known.get(name)
    const bytes = this.#bytes - (before ? sizeOf(before) : 0) + sizeOf(known)
    if (bytes > MOST_BYTES) return this.drop(name)
    this.#known.set(name, known)
    this.#bytes = bytes
  }

  #changed(): void {
    if (this.#deps.files) this.#saver ??= setTimeout(() => this.#save(), SAVE_MS).unref()
  }

  #save(): void {
    clearTimeout(this.#saver)
    this.#saver = undefined
    const { failed, files, workspace } = this.#deps
    const saved: Saved = { version: VERSION, workspace, known: [...this.#known] }
    this.#saving = this.#saving
      .then(() => files?.write(FILE, saved))
      .catch(error => {
        failed('storing branch statuses failed; the next start computes them again', { error: String(error) })
      })
  }
}
