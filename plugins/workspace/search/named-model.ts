import { Refusal, type Host } from '../../../sdk/index.js'
import type { NamedQuestion } from './index/index-questions.js'
import type { WorkspaceIndex } from './index/workspace-index.js'

/** What a named model says of a question, or why it says nothing. */
export interface NamedAnswer {
  readonly question?: NamedQuestion
  /** Why files are not ranked by it, as a sentence. */
  readonly note?: string
}

/** What was sent on a day in UTC. */
interface SentBytes {
  readonly day: string
  readonly parts: number
  readonly questions: number
}

const BATCH = 64
const BATCH_BYTES = 128 * 1024
const PARTS_MS = 120_000
const QUESTION_MS = 5_000
/** How much leaves on one day, in bytes: of files, and of questions. */
const MOST_PARTS_A_DAY = 64 * 1024 * 1024
const MOST_QUESTIONS_A_DAY = 2 * 1024 * 1024
/** From this share of the parts on files are compared by them. */
const ENOUGH = 0.9
const LEFT_ALONE_MS = 60_000
const LONGEST_ALONE_MS = 3_600_000
const MOST_KEPT = 200
const SENT = 'search/sent'
/** A server may repeat texts of files, or the question of somebody else, in its refusal. */
const HIDDEN = 'it failed, and people who reach all folders are told why'

/** What is sent to a model. */
type SentKind = 'parts' | 'questions'

/** Why a model is left alone for a while. */
interface Failure {
  readonly model: string
  readonly why: string
  readonly until: number
}

type Link = Pick<Host, 'call' | 'serves' | 'store' | 'log' | 'signal'>

/**
 * Ranks by the embedding model that the setting `searchModel` names. Only then anything is sent to it: parts of files,
 * in the background of a search, and questions. Where it fails the search goes on without it.
 */
export class NamedModel {
  readonly #host: Link
  readonly #index: Pick<WorkspaceIndex, 'ask'>
  readonly #questions = new Map<string, readonly number[]>()
  #learning: Promise<void> | undefined
  /** By what was sent: files are compared by the parts that are known, also where no further ones can be learned. */
  readonly #failures = new Map<SentKind, Failure>()
  #sent: SentBytes | undefined

  constructor(host: Link, index: Pick<WorkspaceIndex, 'ask'>) {
    this.#host = host
    this.#index = index
  }

  /** What the model says of a question; undefined: none is named. `all`: the note may tell of all files. */
  async ask(question: string, all: boolean): Promise<NamedAnswer | undefined> {
    const unread = (error: unknown) =>
      void this.#host.log.warn('reading the model of search failed', { error: String(error) })
    const model = await this.#named().catch(unread)
    if (model === undefined) return undefined
    const without = (why: string): NamedAnswer => ({ note: `${model} did not rank the files: ${why}` })
    const failed = (why: string): NamedAnswer => without(all ? why : HIDDEN)
    const refused = this.#failureOf('questions', model)
    if (refused) return failed(refused.why)
    try {
      const { value: progress, freshness } = await this.#index.ask('learned', { model })
      const stuck = this.#failureOf('parts', model)
      if (progress.known < progress.parts && !stuck) this.#learn(model)
      if (freshness.state === 'building' || progress.known < progress.parts * ENOUGH) {
        if (stuck) return failed(stuck.why)
        const share = all ? `${progress.known} of ${progress.parts} parts of files` : 'a part of the files'
        return without(`it has learned ${share} up to now`)
      }
      return { question: { model, vector: await this.#vectorOf(model, question, progress.numbers) } }
    } catch (error) {
      return failed(this.#failed('questions', model, error))
    }
  }

  async #named(): Promise<string | undefined> {
    if (!(await this.#host.serves('settings.get')) || !(await this.#host.serves('agent.embed'))) return undefined
    const { searchModel } = await this.#host.call('settings.get')
    return searchModel === '' ? undefined : searchModel
  }

  /** `numbers`: how many there are for a part; one with others would be compared to nothing. */
  async #vectorOf(model: string, question: string, numbers: number | undefined): Promise<readonly number[]> {
    const key = `${model}\n${question}`
    const kept = this.#questions.get(key)
    if (kept && (numbers === undefined || kept.length === numbers)) return kept
    const text = question.toWellFormed()
    await this.#count('questions', Buffer.byteLength(text), MOST_QUESTIONS_A_DAY)
    const { embeddings } = await this.#host.call('agent.embed', { model, texts: [text], timeoutMs: QUESTION_MS })
    if (this.#questions.size >= MOST_KEPT) this.#questions.clear()
    const [vector = []] = embeddings
    if (numbers !== undefined && vector.length !== numbers) {
      await this.#index.ask('forget', { model })
      this.#learn(model)
      throw otherNumbers(numbers, vector.length)
    }
    this.#questions.set(key, vector)
    return vector
  }

  /** Has the model learn the parts that it does not know, one batch after another, while it stays named. */
  #learn(model: string): void {
    this.#learning ??= this.#learnAll(model)
      .catch(error => void this.#failed('parts', model, error))
      .finally(() => (this.#learning = undefined))
  }

  async #learnAll(model: string): Promise<void> {
    let numbers: number | undefined
    while (!this.#host.signal.aborted && (await this.#named()) === model) {
      const { value: parts } = await this.#index.ask('unplaced', { model, most: BATCH })
      const batch = firstBytes(parts, BATCH_BYTES)
      if (batch.length === 0) return
      const texts = batch.map(({ text }) => text)
      const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0)
      await this.#count('parts', bytes, MOST_PARTS_A_DAY)
      const { embeddings } = await this.#host.call('agent.embed', { model, texts, cut: true, timeoutMs: PARTS_MS })
      const found = embeddings[0]!.length
      // Each change of it has all parts sent again.
      if (numbers !== undefined && found !== numbers) throw otherNumbers(numbers, found)
      numbers = found
      const placed = batch.map(({ key }, at) => ({ key, vector: embeddings[at]! }))
      await this.#index.ask('place', { model, placed })
    }
  }

  /** Counts what is about to be sent, before it is, so that a kill makes no room. */
  async #count(kind: SentKind, bytes: number, most: number): Promise<void> {
    const day = new Date().toISOString().slice(0, 10)
    const stored = this.#sent ?? (await this.#host.store.get<SentBytes>(SENT))
    // Another request may have counted meanwhile.
    this.#sent ??= stored
    const before = this.#sent?.day === day ? this.#sent : { day, parts: 0, questions: 0 }
    if (before[kind] + bytes > most)
      throw new Refusal('too-many', `the limit of ${most / 1024 / 1024} MiB of ${kind} sent on one day is reached`)
    this.#sent = { ...before, [kind]: before[kind] + bytes }
    await this.#host.store.set(SENT, this.#sent)
  }

  #failureOf(kind: SentKind, model: string): Failure | undefined {
    const failure = this.#failures.get(kind)
    return failure?.model === model && failure.until > Date.now() ? failure : undefined
  }

  /** Leaves the model alone for a while; answers why. */
  #failed(kind: SentKind, model: string, error: unknown): string {
    const refusal = error instanceof Refusal ? error : undefined
    const why = refusal?.message ?? 'it could not be asked'
    if (!refusal) this.#host.log.warn('ranking by a named model failed', { error: String(error) })
    const wait = (refusal?.detail.retryAfter ?? 0) * 1000
    const until = Date.now() + Math.min(LONGEST_ALONE_MS, Math.max(LEFT_ALONE_MS, wait))
    this.#failures.set(kind, { model, why, until })
    return why
  }
}

const otherNumbers = (before: number, now: number): Refusal =>
  new Refusal('dependency', `it gave ${before} numbers for a text and gives ${now} now, so it learns the files anew`)

/** As many of the first ones as have so many bytes, at least one. */
const firstBytes = <T extends { readonly text: string }>(parts: readonly T[], most: number): T[] => {
  let bytes = 0
  return parts.filter(({ text }, at) => (bytes += Buffer.byteLength(text)) <= most || at === 0)
}
