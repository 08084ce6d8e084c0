import t from 'tap'
import {
  compacted,
  measured,
  tokensOf,
  type Compacted,
  type Summarized,
} from '../../../../plugins/agent/providers/native/compaction.js'
import { promptOf } from '../../../../plugins/agent/providers/native/prompt.js'
import { NO_TOKENS, type NewEntry, type SessionEntry } from '../../../../plugins/agent/providers/native/session.js'
import { EVERY_CASE } from '../../../support/lists.js'
import type { Frame } from '../../../../plugins/agent/turn/frames/frames.js'

/** Numbers that are the same in each run. */
const numbers = (seed: number) => {
  let state = seed * 2_654_435_761 + 1
  return (most: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) >>> 0
    return state % most
  }
}

const SYLLABLES = ['src/', 'error: ', '7391 ', 'the line\n', '{"a":1}', 'äöü ', '漢字', '\n', 'x'.repeat(60)]

/** A conversation that grows at random, and what of it may never be lost. */
class GrowingSession {
  readonly #random: (most: number) => number
  readonly #room: number
  entries: SessionEntry[] = []
  run = 0
  #calls = 0
  request = ''
  decision: string | undefined
  plan: string | undefined
  todo: string | undefined
  file: string | undefined

  constructor(random: (most: number) => number, room: number) {
    this.#random = random
    this.#room = room
    this.ask()
  }

  text(most: number): string {
    const length = this.#random(most) + 1
    let text = ''
    while (text.length < length) text += SYLLABLES[this.#random(SYLLABLES.length)]
    return text.slice(0, length).toWellFormed()
  }

  #add(...entries: NewEntry[]): void {
    for (const entry of entries) this.entries.push({ ...entry, n: (this.entries.at(-1)?.n ?? 0) + 1 } as SessionEntry)
  }

  /** A new request of a person, with notes before it. */
  ask(): void {
    const said = `request ${++this.run}: ${this.text(this.#random(3) === 0 ? this.#room * 0.8 : 200)}`
    this.request = said
    this.#add({ kind: 'words', run: `r${this.run}`, text: `[Map]\na/ b/\n\n${said}`, said })
  }

  /** A round of the model: what it calls, and the results. */
  round(): void {
    const calls = Array.from({ length: 1 + this.#random(6) }, () => this.#call())
    this.#add({
      kind: 'answer',
      run: `r${this.run}`,
      by: 'm',
      usage: NO_TOKENS,
      parts: [{ kind: 'text', text: this.text(300) }, ...calls.map(({ call }) => call)],
    })
    this.#add(...calls.map(({ result }) => result))
    if (this.#random(8) === 0) this.answer()
  }

  answer(): void {
    const text = this.text(900)
    this.#add({ kind: 'answer', run: `r${this.run}`, by: 'm', usage: NO_TOKENS, parts: [{ kind: 'text', text }] })
    this.ask()
  }

  #call() {
    const frame = `n${++this.#calls}`
    const made = (name: string, input: { [field: string]: unknown }, text: string) => ({
      call: { kind: 'call' as const, id: frame, frame, name, input },
      result: { kind: 'result' as const, frame, ok: true, text },
    })
    switch (this.#random(12)) {
      case 0:
        this.decision = `Which one? ${this.#calls}: the ${this.text(20)}`
        return made('Ask', { questions: [] }, this.decision)
      case 1:
        this.plan = `plan ${this.#calls}: ${this.text(200)}`
        return made('Plan', { text: this.plan }, 'the plan was approved')
      case 2:
        this.todo = `item ${this.#calls}`
        return made('Todo', { items: [{ content: this.todo, status: 'pending' }] }, `[ ] ${this.todo}`)
      case 3:
        this.file = `src/file-${this.#calls}.ts`
        return made('Write', { path: this.file, content: this.text(this.#room) }, 'made')
      case 4:
        return made('Shell', { command: 'seq 1 60000' }, this.text(this.#room * 8))
      default:
        return made(
          'Read',
          { path: `src/read-${this.#calls % 7}.ts` },
          this.text(this.#random(4) ? 600 : this.#room * 2),
        )
    }
  }
}

/** A model that summarizes at random: well, at length, not at all, or only what is short. */
const summarizing = (random: (most: number) => number, room: number) => {
  const takes = random(3) === 0 ? room * 0.4 : room
  const asked: number[] = []
  return {
    asked,
    async *summarize(piece: readonly SessionEntry[]): AsyncGenerator<Frame, Summarized> {
      const tokens = tokensOf(piece)
      asked.push(tokens)
      if (tokens > takes) return { failed: 'it is too long', long: true }
      if (random(6) === 0) return { failed: 'it is away', long: false }
      return { text: random(5) === 0 ? 'much '.repeat(room) : `summary of ${piece.length}` }
    },
  }
}

const shortened = async (work: AsyncGenerator<Frame, Compacted | undefined>): Promise<Compacted | undefined> => {
  for (;;) {
    const { value, done } = await work.next()
    if (done) return value
  }
}

/** Lets a conversation grow and shrink; returns how often it was made shorter. */
const livesThrough = async (seed: number): Promise<number> => {
  const random = numbers(seed)
  const room = 1_500 + random(20) ** 2 * 200
  const session = new GrowingSession(random, room)
  let times = 0
  for (let round = 0; round < 40; round++) {
    session.round()
    const asked = random(25) === 0
    if (!asked && measured(session.entries, 0).tokens < room) continue
    const { summarize, asked: pieces } = summarizing(random, room)
    const shorter = await shortened(compacted(session.entries, { room, asked, summarize }))
    if (!shorter) continue
    times++
    session.entries = [...shorter.entries]
    const about = `seed ${seed}, room ${room}, round ${round}: ${shorter.detail}`
    if (pieces.some(tokens => tokens > room)) t.fail(`a piece does not fit; ${about}`)
    if (!asked && tokensOf(session.entries) > room) t.fail(`${tokensOf(session.entries)} tokens; ${about}`)
    const prompt = await promptOf(session.entries, {
      ...{ instructions: '', by: 'm', pictures: false, marksCache: false, album: new Map() },
    })
    // What it holds as the model reads it.
    const text = prompt.flatMap(({ content }) => (typeof content === 'string' ? [] : content.map(textsOf))).join('\n')
    for (const held of [session.request, session.decision, session.plan, session.todo, session.file])
      if (held !== undefined && !text.includes(held)) t.fail(`${held.slice(0, 80)} is lost; ${about}`)
    if (shorter.detail === '') t.fail(`nothing says what was lost; ${about}`)
  }
  return times
}

const textsOf = (part: object): string => {
  const { text, input, output } = part as { text?: string; input?: object; output?: { value?: unknown } }
  return (
    text
    ?? [
      ...Object.values(input ?? {}).map(value => (typeof value === 'string' ? value : JSON.stringify(value))),
      output?.value ?? '',
    ].join('\n')
  )
}

t.test('whatever the window, the results and the history: a shorter conversation holds the task', async t => {
  let times = 0
  const seeds = EVERY_CASE ? 100 : 40
  for (let seed = 1; seed <= seeds; seed++) times += await livesThrough(seed)
  t.ok(times > seeds * 5, `${times} times`)
})
