import { randomUUID } from 'node:crypto'
import type { Journals } from '../../../sdk/index.js'
import type { TranscriptMessage, TranscriptPage } from '../contract.js'
import type { Row } from '../turn/run-record.js'
import { Attachments } from './attachments.js'

/** One settled run: its rows are written together or not at all. */
export interface Settled {
  readonly run?: string
  /** The id of a line without a run. */
  readonly placed?: string
  /** All its input came from people who may land. */
  readonly lands?: boolean
  readonly rows: readonly Row[]
  /** The line is damaged; it counts as one row, which is never returned. */
  readonly damaged?: true
}

const DAMAGED: Settled = { rows: [], damaged: true }
const rowsIn = ({ rows, damaged }: Settled): number => (damaged ? 1 : rows.length)
const HISTORY_RUNS = 40
const HISTORY_CHARACTERS = 120_000

const transcriptOf = (conversationId: string) => `transcripts/${conversationId}`

interface Count {
  readonly runs: number
  readonly rows: number
  /** The newest run, and its line. */
  readonly last?: string
  readonly lastAt: number
  /** The key of the newest line. */
  readonly tail: string
}

/** The number of lines of a record, and the key of the last one. */
interface RecordEnd {
  readonly lines: number
  readonly tail: string
}

/** One line of a record: its key and its rows. */
export interface SettledLine {
  readonly key: string
  readonly rows: readonly Row[]
}

const keyOf = ({ run, placed }: Settled): string => run ?? placed ?? ''

/** The records of conversations: one append-only journal each, with one line per settled run. */
export class Transcripts {
  readonly attachments: Attachments
  readonly #journals: Pick<Journals, 'append' | 'read' | 'remove' | 'rewrite' | 'stat'>
  readonly #counts = new Map<string, Promise<Count>>()
  readonly #ends = new Map<string, Promise<RecordEnd>>()

  constructor(journals: Pick<Journals, 'append' | 'read' | 'remove' | 'rewrite' | 'stat'>) {
    this.#journals = journals
    this.attachments = new Attachments(journals)
  }

  /** The number of rows of a conversation. */
  async count(conversationId: string): Promise<number> {
    return (await this.#count(conversationId)).rows
  }

  /** The run that was settled last. */
  async last(conversationId: string): Promise<string | undefined> {
    return (await this.#count(conversationId)).last
  }

  /** The row at a position. */
  async row(conversationId: string, index: number): Promise<TranscriptMessage | undefined> {
    return (await this.page(conversationId)).messages.find(row => row.index === index)
  }

  /** Removes the runs that end after a position, atomically; returns the number of removed rows. */
  async cut(conversationId: string, index: number): Promise<number> {
    const settled = await this.#read(conversationId)
    let rows = 0
    const from = settled.findIndex(line => (rows += rowsIn(line)) > index)
    if (from === -1) return 0
    await this.#journals.rewrite(transcriptOf(conversationId), settled.slice(0, from))
    this.#forget(conversationId)
    return settled.slice(from).reduce((sum, line) => sum + rowsIn(line), 0)
  }

  /** Adds a settled run, unless it is already the last one; `lands`: all its input came from people who may land. */
  async add(conversationId: string, run: string, rows: readonly Row[], lands = false): Promise<void> {
    const count = await this.#count(conversationId)
    if (count.last === run) return
    await this.attachments.note(conversationId, rows)
    const settled: Settled = { run, ...(lands && { lands }), rows }
    await this.#journals.append(transcriptOf(conversationId), [settled], { flush: true })
    this.#counts.set(
      conversationId,
      Promise.resolve({
        runs: count.runs + 1,
        rows: count.rows + rows.length,
        last: run,
        lastAt: count.runs,
        tail: run,
      }),
    )
  }

  /** Adds a row without a run. */
  async place(conversationId: string, row: Row): Promise<void> {
    const count = await this.#count(conversationId)
    const placed = `p-${randomUUID()}`
    await this.attachments.note(conversationId, [row])
    await this.#journals.append(transcriptOf(conversationId), [{ placed, rows: [row] } satisfies Settled], {
      flush: true,
    })
    this.#counts.set(
      conversationId,
      Promise.resolve({ ...count, runs: count.runs + 1, rows: count.rows + 1, tail: placed }),
    )
  }

  /** Deletes a record for good. */
  async remove(conversationId: string): Promise<void> {
    await this.#journals.remove(transcriptOf(conversationId))
    this.#forget(conversationId)
    await this.attachments.forget(conversationId)
  }

  /** Whether all input before a position came from people who may land. */
  async lands(conversationId: string, index = Infinity): Promise<boolean> {
    let from = 0
    for (const line of await this.#read(conversationId)) {
      if (from < index && line.lands !== true) return false
      from += rowsIn(line)
    }
    return true
  }

  /** The runs of a record; the beginning of a fork counts as one. */
  async runs(conversationId: string): Promise<string[]> {
    const settled = await this.#read(conversationId)
    return settled.flatMap(({ run }) => (run === undefined ? [] : [run]))
  }

  /** The number of lines of a record and the key of its last one; the record is unchanged while both are. */
  async mark(conversationId: string): Promise<RecordEnd> {
    const counted = this.#counts.get(conversationId)
    if (!counted) return this.#end(conversationId)
    const { runs: lines, tail } = await counted
    return { lines, tail }
  }

  /** The lines of a record after the first `after`. */
  async lines(conversationId: string, after: number): Promise<SettledLine[]> {
    const settled = await this.#read(conversationId, after)
    return settled.map(line => ({ key: keyOf(line), rows: line.rows }))
  }

  /** The rows in order; with `limit` the last ones before index `before`. */
  async page(
    conversationId: string,
    limit?: number,
    before?: number,
  ): Promise<Pick<TranscriptPage, 'messages' | 'total'>> {
    const settled = await this.#read(conversationId)
    const total = settled.reduce((sum, line) => sum + rowsIn(line), 0)
    const end = Math.min(before ?? total, total)
    const from = limit === undefined ? 0 : Math.max(0, end - limit)
    return { messages: this.#numbered(settled, 0).filter(({ index }) => index >= from && index < end), total }
  }

  /** The newest rows, oldest first, within the limit for adapters. */
  async history(conversationId: string): Promise<TranscriptMessage[]> {
    const { runs, rows: total } = await this.#count(conversationId)
    if (!runs) return []
    const newest = await this.#read(conversationId, Math.max(0, runs - HISTORY_RUNS))
    const rows = this.#numbered(newest, total - newest.reduce((sum, settled) => sum + rowsIn(settled), 0))
    let characters = 0
    const from = rows.findLastIndex(({ text }) => (characters += text.length) > HISTORY_CHARACTERS)
    // Only people see who placed a row; the model sees it as its own.
    return rows.slice(from + 1).map(({ placed: _placed, ...row }) => row)
  }

  /** The message of a settled run; searches only from the newest line on. */
  async opening(conversationId: string, run: string): Promise<Row | undefined> {
    const { lastAt } = await this.#count(conversationId)
    const newest = await this.#read(conversationId, lastAt)
    return newest.find(settled => settled.run === run)?.rows[0]
  }

  #numbered(settled: readonly Settled[], from: number): TranscriptMessage[] {
    let index = from
    return settled.flatMap(line => {
      if (line.damaged) index++
      return line.rows.map(row => ({ index: index++, ...row }))
    })
  }

  async #read(conversationId: string, after = 0): Promise<Settled[]> {
    const lines = await this.#journals.read<Settled>(transcriptOf(conversationId), after, { damaged: DAMAGED })
    return lines.map(line => (Array.isArray(line?.rows) ? line : DAMAGED))
  }

  /** The end of a record that was not counted yet; reads only its last line. */
  #end(conversationId: string): Promise<RecordEnd> {
    const known = this.#ends.get(conversationId)
    if (known) return known
    const read = async () => {
      const journal = transcriptOf(conversationId)
      const { entries: lines } = (await this.#journals.stat(journal)) ?? { entries: 0 }
      const [last] = lines > 0 ? await this.#read(conversationId, lines - 1) : []
      return { lines, tail: last ? keyOf(last) : '' }
    }
    const end = read()
    this.#ends.set(conversationId, end)
    end.catch(() => this.#ends.delete(conversationId))
    return end
  }

  /** Drops the cached facts about a record. */
  #forget(conversationId: string): void {
    this.#counts.delete(conversationId)
    this.#ends.delete(conversationId)
  }

  #count(conversationId: string) {
    const known = this.#counts.get(conversationId)
    if (known) return known
    const counted = this.#read(conversationId).then(settled => {
      const lastAt = settled.findLastIndex(({ run }) => run !== undefined)
      const last = settled[lastAt]?.run
      const tail = settled.at(-1)
      return {
        runs: settled.length,
        rows: settled.reduce((sum, line) => sum + rowsIn(line), 0),
        lastAt: Math.max(0, lastAt),
        tail: tail ? keyOf(tail) : '',
        ...(last !== undefined && { last }),
      }
    })
    this.#counts.set(conversationId, counted)
    counted.catch(() => this.#counts.delete(conversationId))
    return counted
  }
}
