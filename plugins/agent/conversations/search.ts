import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../sdk/index.js'
import type { Match, Matches } from '../contract.js'
import type { Conversations, RecordedConversation } from './conversations.js'
import type { Engine } from '../turn/engine.js'
import type { Row } from '../turn/run-record.js'
import type { FoundPlace, IndexMark, Said, SearchIndex } from './search-index.js'
import type { SettledLine, Transcripts } from './transcripts.js'

/** The dependencies of the search. */
export interface SearchDeps {
  readonly index: SearchIndex
  readonly conversations: Pick<Conversations, 'all' | 'recorded' | 'findRecorded'>
  readonly transcripts: Pick<Transcripts, 'mark' | 'lines'>
  readonly engine: Pick<Engine, 'live'>
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
  /** How long a search waits for the index, in ms. */
  readonly patienceMs?: number
}

/** The searched fields of a conversation besides its messages. */
type Searched = Pick<RecordedConversation, 'id' | 'title' | 'updatedAt'>

const PATIENCE_MS = 1_000
const AT_ONCE = 50
/** Records are read one by one, newest first, for words in more texts than this. */
const MOST_PLACES = 3_000
const BREATH_MS = 10
const SNIPPET = 200
const BEFORE = 60

const saidIn = (rows: readonly Row[]): Said[] =>
  rows.flatMap(({ role, text }): Said[] =>
    role === 'notice' || !text ? [] : [{ speaker: role === 'user' ? 'user' : 'agent', text }],
  )

/** Searches conversations: records through an index, live turns directly. */
export class Search {
  readonly #deps: SearchDeps
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(deps: SearchDeps) {
    this.#deps = deps
  }

  /**
   * The conversations that contain the words, in the order of `among`; default: those on the board, newest first.
   *
   * @param most Ends the search when this many are found.
   */
  async find(
    query: string,
    caseSensitive: boolean,
    among: readonly Searched[] = this.#deps.conversations.all.toSorted((one, other) => other.updatedAt - one.updatedAt),
    most = Infinity,
  ): Promise<Matches> {
    const { conversations, engine } = this.#deps
    const fold = caseSensitive ? (text: string) => text : (text: string) => text.toLowerCase()
    const words = fold(query)
    const holds = (text: string) => fold(text).includes(words)
    // Read before the records, so that a turn that settles meanwhile is not missed.
    const live = new Map(conversations.all.map(({ id }) => [id, saidIn(engine.live(id)?.record.rows ?? [])]))
    const indexing = await this.#indexing()
    const recorded = this.#recorded(query)
    const matches: Match[] = []
    let pausedAt = performance.now()
    for (const { id, title = '' } of among) {
      if (matches.length >= most) break
      const shown = holds(title)
      const said = shown ? undefined : firstOf(recorded(id), live.get(id) ?? [], holds)
      const snippet = said && { text: excerpt(said.text, words, fold), speaker: said.speaker }
      if (shown || snippet) matches.push({ id, ...(snippet && { snippet }) })
      if (performance.now() - pausedAt < BREATH_MS) continue
      await breath()
      pausedAt = performance.now()
    }
    return { matches, scanned: among.length, indexing }
  }

  /** Updates the index; whether that takes longer than a search waits. */
  async #indexing(): Promise<boolean> {
    const { signal, patienceMs = PATIENCE_MS } = this.#deps
    const late = new AbortController()
    const indexing = await Promise.race([
      this.#refreshed().then(
        () => false,
        () => true,
      ),
      setTimeout(patienceMs, true, { signal: AbortSignal.any([late.signal, signal]), ref: false }).catch(() => true),
    ])
    late.abort()
    return indexing
  }

  /** Removes a conversation's words from the index; rebuilds an index that cannot be read. */
  forget(id: string): void {
    const { index } = this.#deps
    try {
      index.forget(id)
    } catch {
      index.reset()
    }
  }

  /** Returns the indexed texts of a record that may contain the words; starts over with an index that fails. */
  #recorded(query: string): (id: string) => Iterable<Said> {
    const { index, log } = this.#deps
    let broken = false
    const fail = (error: unknown): void => {
      broken = true
      log.warn('rebuilding the search index, which could not be read', { error: String(error) })
      index.reset()
    }
    const guarded = function* (texts: () => Iterable<Said>): Generator<Said> {
      try {
        if (!broken) yield* texts()
      } catch (error) {
        fail(error)
      }
    }
    let places: Map<string, FoundPlace[]> | undefined
    try {
      const found = index.places(query, MOST_PLACES)
      places = found && Map.groupBy(found, ({ id }) => id)
    } catch (error) {
      fail(error)
    }
    return id => guarded(() => (places ? index.at((places.get(id) ?? []).map(({ n }) => n)) : index.of(id)))
  }

  /** Updates the index. Callers during an update share the next one. */
  #refreshed(): Promise<void> {
    if (!this.#running) return this.#start()
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    )
    return this.#next
  }

  #start(): Promise<void> {
    this.#next = undefined
    const pass = this.#refresh().finally(() => {
      if (this.#running === pass) this.#running = undefined
    })
    this.#running = pass
    return pass
  }

  async #refresh(): Promise<void> {
    const { index, log, signal } = this.#deps
    try {
      await this.#pass()
    } catch (error) {
      if (signal.aborted) throw error
      log.warn('rebuilding the search index', { error: String(error) })
      index.reset()
      await this.#pass()
    }
  }

  async #pass(): Promise<void> {
    const { conversations, index, signal, transcripts } = this.#deps
    const marks = index.marks
    for (const id of marks.keys()) if (!conversations.findRecorded(id)) index.forget(id)
    for (const { id } of conversations.recorded) {
      signal.throwIfAborted()
      const now = await transcripts.mark(id)
      const known = marks.get(id)
      if (now.lines === (known?.lines ?? 0) && now.tail === (known?.tail ?? '')) continue
      await this.#take(id, known)
    }
  }

  /** Indexes the new lines of a record; re-indexes it from the start if its indexed end changed. */
  async #take(id: string, known: IndexMark | undefined): Promise<void> {
    const { conversations, index, transcripts } = this.#deps
    let [at, lines]: [number, SettledLine[]] = [0, []]
    if (known && known.lines > 0) {
      const [last, ...more] = await transcripts.lines(id, known.lines - 1)
      if (last?.key === known.tail) [at, lines] = [known.lines, more]
    }
    if (at === 0) {
      lines = await transcripts.lines(id, 0)
      index.forget(id)
    }
    for (; lines.length > 0; await breath()) {
      // A conversation deleted meanwhile must not be indexed again.
      if (!conversations.findRecorded(id)) return
      const some = lines.splice(0, AT_ONCE)
      at += some.length
      index.add(id, saidIn(some.flatMap(({ rows }) => rows)), { lines: at, tail: some.at(-1)!.key })
    }
  }
}

const breath = (): Promise<void> => new Promise(resolve => setImmediate(resolve))

/** The person's first text that holds the words, else the agent's. */
const firstOf = (
  recorded: Iterable<Said>,
  live: readonly Said[],
  holds: (text: string) => boolean,
): Said | undefined => {
  let ofAgent: Said | undefined
  for (const texts of [recorded, live])
    for (const said of texts) {
      if ((ofAgent && said.speaker === 'agent') || !holds(said.text)) continue
      if (said.speaker === 'user') return said
      ofAgent = said
    }
  return ofAgent
}

/** The line with the words, shortened to the text around them. */
const excerpt = (text: string, words: string, fold: (text: string) => string): string => {
  const line = (text.split('\n').find(each => fold(each).includes(words)) ?? text).trim()
  if (line.length <= SNIPPET) return line
  const from = Math.max(0, Math.min(fold(line).indexOf(words) - BEFORE, line.length - SNIPPET))
  const to = from + SNIPPET
  return `${from > 0 ? '…' : ''}${line.slice(from, to).toWellFormed()}${to < line.length ? '…' : ''}`
}
