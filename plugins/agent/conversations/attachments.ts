import type { Journals } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { Row } from '../turn/run-record.js'

/** Where people upload attachments. */
export const ATTACHMENTS = '.sandbox/records/artifacts/attachments'

const JOURNAL = 'attachments'
const ALL = 'all'

/** Uploaded files that a record refers to; none: the record was deleted. */
interface Reference {
  readonly id: string
  readonly paths: readonly string[]
}
/** The first line: no record refers to a file that is not in the journal. */
interface Complete {
  readonly complete: true
}

const DAMAGED = {}

/** The uploaded attachments in some rows. */
export const uploadsIn = (rows: readonly Pick<Row, 'attachments'>[]): string[] =>
  rows.flatMap(({ attachments = [] }) => attachments.filter(path => path.startsWith(`${ATTACHMENTS}/`)))

/**
 * Which uploaded attachments each record refers to.
 *
 * A reference is stored before its row, so a crash leaves at most one too many, which keeps a file. A record that is
 * cut keeps its references until it is deleted.
 */
export class Attachments {
  readonly #journals: Pick<Journals, 'append' | 'read' | 'rewrite' | 'stat'>
  readonly #locks = new KeyedMutex()
  /** The files of each record, once read. */
  #known: Map<string, Set<string>> | undefined

  constructor(journals: Pick<Journals, 'append' | 'read' | 'rewrite' | 'stat'>) {
    this.#journals = journals
  }

  /** Begins in a sandbox without records, in which none has to be read later. */
  async begin(): Promise<void> {
    if (!(await this.#journals.stat(JOURNAL))) await this.#journals.append(JOURNAL, [{ complete: true }])
  }

  /** Stores what the next rows of a record refer to. */
  async note(id: string, rows: readonly Row[]): Promise<void> {
    const paths = uploadsIn(rows)
    if (paths.length === 0) return
    await this.#locks.with(ALL, async () => {
      const there = this.#known?.get(id)
      const fresh = paths.filter(path => !there?.has(path))
      if (fresh.length === 0) return
      await this.#journals.append(JOURNAL, [{ id, paths: fresh } satisfies Reference], { flush: true })
      if (this.#known) take(this.#known, { id, paths: fresh })
    })
  }

  /**
   * The files that only this record refers to.
   *
   * @param others The ids of the other records; they are read, each with `read`, if the journal is lost or damaged.
   */
  async of(id: string, others: readonly string[], read: (id: string) => Promise<readonly Row[]>): Promise<Set<string>> {
    const known = await this.#locks.with(ALL, () => this.#read([id, ...others], read))
    const own = new Set(known.get(id))
    for (const [other, paths] of known) if (other !== id) for (const path of own) if (paths.has(path)) own.delete(path)
    return own
  }

  /** The files that any record refers to; the records are read as for `of`. */
  async all(records: readonly string[], read: (id: string) => Promise<readonly Row[]>): Promise<Set<string>> {
    const known = await this.#locks.with(ALL, () => this.#read(records, read))
    return new Set([...known.values()].flatMap(paths => [...paths]))
  }

  /** Removes the references of a deleted record. */
  async forget(id: string): Promise<void> {
    await this.#locks.with(ALL, async () => {
      if (!this.#known?.has(id)) return
      await this.#journals.append(JOURNAL, [{ id, paths: [] } satisfies Reference])
      this.#known.delete(id)
    })
  }

  async #read(records: readonly string[], read: (id: string) => Promise<readonly Row[]>) {
    if (this.#known) return this.#known
    const lines = await this.#journals.read<Partial<Reference & Complete>>(JOURNAL, 0, { damaged: DAMAGED })
    const known = new Map<string, Set<string>>()
    for (const { id, paths } of lines) if (id !== undefined && paths) take(known, { id, paths })
    const complete = lines[0]?.complete === true && !lines.includes(DAMAGED)
    if (!complete) for (const id of records) take(known, { id, paths: uploadsIn(await read(id)) })
    // Up to half of a journal may be outdated.
    if (!complete || lines.length > 100 + 2 * known.size) {
      const references = [...known].map(([id, paths]): Reference => ({ id, paths: [...paths] }))
      await this.#journals.rewrite(JOURNAL, [{ complete: true } satisfies Complete, ...references])
    }
    return (this.#known = known)
  }
}

const take = (known: Map<string, Set<string>>, { id, paths }: Reference): void => {
  if (paths.length === 0) known.delete(id)
  else known.set(id, new Set([...(known.get(id) ?? []), ...paths]))
}
