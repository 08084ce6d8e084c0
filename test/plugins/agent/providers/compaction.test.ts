import t from 'tap'
import {
  compacted,
  measured,
  tokensOf,
  type Compacted,
  type Summarized,
} from '../../../../plugins/agent/providers/native/compaction.js'
import { fitted, keptIn, keptText } from '../../../../plugins/agent/providers/native/kept.js'
import { openingWords } from '../../../../plugins/agent/providers/native/opening.js'
import { promptOf } from '../../../../plugins/agent/providers/native/prompt.js'
import { NO_TOKENS, type NewEntry, type SessionEntry } from '../../../../plugins/agent/providers/native/session.js'
import { EVERY_CASE } from '../../../support/lists.js'
import type { TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
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
      ...{ instructions: '', by: 'm', pictures: false, picturesInResults: false, marksCache: false, album: new Map() },
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

const words = (n: number, text: string): SessionEntry => ({ kind: 'words', n, run: 'r', text })
const called = (n: number, name: string, input: { [field: string]: unknown }, text: string, ok = true) => {
  const frame = `n${n}`
  const answer: SessionEntry = {
    ...{ kind: 'answer', n, run: 'r', by: 'm', usage: NO_TOKENS },
    parts: [
      { kind: 'thought', text: 'thinking '.repeat(2_000), meta: { anthropic: { signature: 's' } } },
      { kind: 'call', id: frame, frame, name, input },
    ],
  }
  return [answer, { kind: 'result', n: n + 1, frame, ok, text } satisfies SessionEntry] as const
}

t.test('a thought that a server signed stays as it is where its answer is shortened', async t => {
  const entries = [words(1, 'Do it.'), ...called(2, 'Write', { path: 'a', content: 'x\n'.repeat(9_000) }, 'made')]
  const shorter = await shortened(compacted(entries, { room: 8_000, summarize: summarizing(() => 1, 8_000).summarize }))
  const answer = shorter?.entries.find(entry => entry.kind === 'answer')
  t.ok(JSON.stringify(answer).length < JSON.stringify(entries[1]).length, 'the call is shorter')
  t.strictSame(answer?.kind === 'answer' && answer.parts[0], entries[1]?.kind === 'answer' && entries[1].parts[0])
})

t.test('no summary is paid for where nearly everything stays word for word', async t => {
  const read = called(2, 'Read', { path: 'a' }, 'it reads')
  const entries = [words(1, 'Do it. '.repeat(5_000)), read[1], words(4, 'Go on.')]
  const { asked, summarize } = summarizing(() => 1, 10_000)
  t.equal(await shortened(compacted(entries, { room: 10_000, summarize })), undefined)
  t.strictSame(asked, [])
})

t.test('where the model writes no summary, an earlier one stays with all of its parts', async t => {
  const kept = keptIn([words(1, 'Do it.')])
  const text = keptText(kept, 'It was read.\n\n## Values\nthe port is 7391', 'r')
  const before: SessionEntry = { kind: 'summary', n: 1, text, kept }
  const said: SessionEntry = {
    ...{ kind: 'answer', n: 4, run: 'r', by: 'm', usage: NO_TOKENS },
    parts: [{ kind: 'text', text: 'Listed.' }],
  }
  const listed = called(2, 'Shell', { command: 'ls' }, 'a line\n'.repeat(9_000))
  const entries = [before, ...listed, said, words(5, 'Go on.')]
  const shorter = await shortened(
    compacted(entries, {
      room: 8_000,
      summarize: async function* (): AsyncGenerator<Frame, Summarized> {
        yield* []
        return { failed: 'it is away', long: false }
      },
    }),
  )
  t.match(shorter?.detail, /stands in for a summary, because it is away/)
  for (const part of ['It was read.', 'the port is 7391', '- Shell']) t.match(shorter?.entries[0], { text: part })
})

t.test('a long decision is shortened, which is counted; a call without a plan replaces none', async t => {
  const kept = keptIn([
    ...called(1, 'Ask', {}, 'Which? The first one.'),
    ...called(3, 'Plan', { text: `Plan: ${'step\n'.repeat(900)}end` }, 'the plan was approved'),
    ...called(5, 'Plan', { steps: [] }, 'Plan takes text: expected a text, found nothing', false),
    ...called(7, 'Ask', {}, `Which? ${'because '.repeat(300)}the second.`),
  ])
  t.match(kept.plan, { text: /^Plan: step/, said: 'the plan was approved' })
  const once = fitted(kept, 4_000, 'r')
  t.match(once, { undecided: 1, planCut: true })
  t.match(once.kept.decisions.at(-1), /^Which\? because[\s\S]*left out[\s\S]*the second\.$/)
  t.strictSame(fitted(once.kept, 4_000, 'r'), { ...once, undecided: 0, planCut: false }, 'it is not shortened again')
})

t.test('what a person selected is kept with the request; that plan mode was on is not', async t => {
  const selection = 'const wrong = 1'
  const request: Pick<
    TurnRequest,
    'run' | 'prompt' | 'words' | 'attachments' | 'mentions' | 'permissionMode' | 'editorContext'
  > = {
    ...{ run: 'r', prompt: '[Map]\na/\n\nFix this.', words: 'Fix this.', attachments: [], mentions: ['docs/b.md'] },
    ...{ permissionMode: 'plan', editorContext: { file: 'src/a.ts', selection } },
  }
  const opening = { ...openingWords(request as TurnRequest), n: 1 } as SessionEntry
  t.match(opening, { text: /Plan mode is on/ })
  const { text } = keptIn([opening]).words[0]!
  for (const part of [selection, 'src/a.ts', 'docs/b.md', 'Fix this.']) t.match(text, part)
  t.notMatch(text, /Plan mode|\[Map\]/)
})
