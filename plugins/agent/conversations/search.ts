import { setTimeout } from 'node:timers/promises'
import type { Log } from '../../../sdk/index.js'
import type { Match, Matches, Snippet } from '../contract.js'
import type { Conversations, RecordedConversation } from './conversations.js'
import type { Engine } from '../turn/engine.js'
import type { Row } from '../turn/run-record.js'
import type { IndexMark, Said, SearchIndex } from './search-index.js'
import type { SettledLine, Transcripts } from './transcripts.js'

/** The dependencies of the search. */
export interface SearchDeps {
  readonly index: SearchIndex
  readonly conversations: Conversations
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
const SNIPPET = 200
const BEFORE = 60

const saidIn = (rows: readonly Row[]): Said[] =>
  rows.flatMap(({ role, text }): Said[] =>
    role === 'notice' || !text ? [] : [{ speaker: role === 'user' ? 'user' : 'agent', text }],
  )

/** The first matching message of the person, and of the agent. */
type Hits = { [speaker in Said['speaker']]?: string }

/** Searches conversations: records through an index, live turns directly. */
export class Search {
  readonly #deps: SearchDeps
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(deps: SearchDeps) {
    this.#deps = deps
  }

  /** The conversations that contain the words, newest first; default: those on the board. */
  async find(
    query: string,
    caseSensitive: boolean,
    among: readonly Searched[] = this.#deps.conversations.all,
  ): Promise<Matches> {
    const { conversations, engine, signal, patienceMs = PATIENCE_MS } = this.#deps
    const fold = caseSensitive ? (text: string) => text : (text: string) => text.toLowerCase()
    const words = fold(query)
    const holds = (text: string) => fold(text).includes(words)
    // Read before the records, so that a turn that settles meanwhile is not missed.
    const live = conversations.all.map(({ id }) => ({ id, said: saidIn(engine.live(id)?.record.rows ?? []) }))
    const late = new AbortController()
    const indexing = await Promise.race([
      this.#refreshed().then(
        () => false,
        () => true,
      ),
      setTimeout(patienceMs, true, { signal: AbortSignal.any([late.signal, signal]), ref: false }).catch(() => true),
    ])
    late.abort()
    const hits = await this.#hits(query, holds)
    for (const { id, said } of live) for (const each of said) if (holds(each.text)) note(hits, id, each)
    const all = [...among].sort((one, other) => other.updatedAt - one.updatedAt)
    const matches = all.flatMap(({ id, title = '' }): Match[] => {
      if (holds(title)) return [{ id }]
      const { user, agent } = hits.get(id) ?? {}
      const text = user ?? agent
      return text === undefined
        ? []
        : [
            {
              id,
              snippet: {
                text: excerpt(text, words, fold),
                speaker: user === undefined ? 'agent' : 'user',
              } satisfies Snippet,
            },
          ]
    })
    return { matches, scanned: all.length, indexing }
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

  async #hits(query: string, holds: (text: string) => boolean): Promise<Map<string, Hits>> {
    const { index, log } = this.#deps
    const hits = new Map<string, Hits>()
    try {
      for (let page = index.page(query, 0); page.length > 0; page = index.page(query, page.at(-1)!.n)) {
        for (const { id, speaker, text } of page)
          if (!hits.get(id)?.[speaker] && holds(text)) note(hits, id, { speaker, text })
        await breath()
      }
    } catch (error) {
      log.warn('rebuilding the search index, which could not be read', { error: String(error) })
      index.reset()
    }
    return hits
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

const note = (hits: Map<string, Hits>, id: string, { speaker, text }: Said): void => {
  const known = hits.get(id) ?? {}
  known[speaker] ??= text
  hits.set(id, known)
}

/** The line with the words, shortened to the text around them. */
const excerpt = (text: string, words: string, fold: (text: string) => string): string => {
  const line = (text.split('\n').find(each => fold(each).includes(words)) ?? text).trim()
  if (line.length <= SNIPPET) return line
  const from = Math.max(0, Math.min(fold(line).indexOf(words) - BEFORE, line.length - SNIPPET))
  const to = from + SNIPPET
  return `${from > 0 ? '…' : ''}${line.slice(from, to).toWellFormed()}${to < line.length ? '…' : ''}`
}
