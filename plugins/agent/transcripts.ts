import type { Journals } from '../../sdk/index.js'
import type { TranscriptMessage, TranscriptPage } from './contract.js'
import type { Row } from './run-record.js'

/** One settled run: its rows are written together or not at all. */
interface Settled {
  readonly run: string
  readonly rows: readonly Row[]
}

const HISTORY_RUNS = 40
const HISTORY_CHARACTERS = 120_000

const transcriptOf = (conversationId: string) => `transcripts/${conversationId}`

/** What was said and done, conversation by conversation: one append-only record each, one line per settled run. */
export class Transcripts {
  readonly #journals: Pick<Journals, 'append' | 'read' | 'rewrite'>
  readonly #counts = new Map<string, Promise<{ runs: number; rows: number; last?: string }>>()

  constructor(journals: Pick<Journals, 'append' | 'read' | 'rewrite'>) {
    this.#journals = journals
  }

  /** How many rows a conversation has. */
  async count(conversationId: string): Promise<number> {
    return (await this.#count(conversationId)).rows
  }

  /** The run that was settled last. */
  async last(conversationId: string): Promise<string | undefined> {
    return (await this.#count(conversationId)).last
  }

  /** The row at a place. */
  async row(conversationId: string, index: number): Promise<TranscriptMessage | undefined> {
    return (await this.page(conversationId)).messages[index]
  }

  /** Keeps the runs that end at or before a place, in one step, and answers how many rows went. */
  async cut(conversationId: string, index: number): Promise<number> {
    const settled = await this.#journals.read<Settled>(transcriptOf(conversationId))
    let rows = 0
    const from = settled.findIndex(line => (rows += line.rows.length) > index)
    if (from === -1) return 0
    await this.#journals.rewrite(transcriptOf(conversationId), settled.slice(0, from))
    this.#counts.delete(conversationId)
    return settled.slice(from).reduce((sum, line) => sum + line.rows.length, 0)
  }

  /** Adds a settled run; a run that is the last one already is not added twice. */
  async add(conversationId: string, run: string, rows: readonly Row[]): Promise<void> {
    const count = await this.#count(conversationId)
    if (count.last === run) return
    await this.#journals.append(transcriptOf(conversationId), [{ run, rows } satisfies Settled], { flush: true })
    this.#counts.set(conversationId, Promise.resolve({ runs: count.runs + 1, rows: count.rows + rows.length, last: run }))
  }

  /** The rows in order; with `limit` the last ones before index `before`. */
  async page(conversationId: string, limit?: number, before?: number): Promise<Pick<TranscriptPage, 'messages' | 'total'>> {
    const rows = this.#numbered(await this.#journals.read<Settled>(transcriptOf(conversationId)), 0)
    const end = Math.min(before ?? rows.length, rows.length)
    return { messages: rows.slice(limit === undefined ? 0 : Math.max(0, end - limit), end), total: rows.length }
  }

  /** The newest rows, oldest of them first, as far as an adapter is given them. */
  async history(conversationId: string): Promise<TranscriptMessage[]> {
    const { runs, rows: total } = await this.#count(conversationId)
    if (!runs) return []
    const newest = await this.#journals.read<Settled>(transcriptOf(conversationId), Math.max(0, runs - HISTORY_RUNS))
    const rows = this.#numbered(newest, total - newest.reduce((sum, settled) => sum + settled.rows.length, 0))
    let characters = 0
    const from = rows.findLastIndex(({ text }) => (characters += text.length) > HISTORY_CHARACTERS)
    return rows.slice(from + 1)
  }

  /** The words a settled run stands on; only its conversation's newest run is looked for. */
  async opening(conversationId: string, run: string): Promise<Row | undefined> {
    const { runs } = await this.#count(conversationId)
    const newest = await this.#journals.read<Settled>(transcriptOf(conversationId), Math.max(0, runs - 1))
    return newest.find(settled => settled.run === run)?.rows[0]
  }

  #numbered(settled: readonly Settled[], from: number): TranscriptMessage[] {
    let index = from
    return settled.flatMap(({ rows }) => rows.map(row => ({ index: index++, ...row })))
  }

  #count(conversationId: string) {
    const known = this.#counts.get(conversationId)
    if (known) return known
    const counted = this.#journals.read<Settled>(transcriptOf(conversationId)).then(settled => {
      const last = settled.at(-1)?.run
      return {
        runs: settled.length,
        rows: settled.reduce((sum, { rows }) => sum + rows.length, 0),
        ...(last !== undefined && { last }),
      }
    })
    this.#counts.set(conversationId, counted)
    counted.catch(() => this.#counts.delete(conversationId))
    return counted
  }
}
