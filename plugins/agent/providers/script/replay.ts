import { isCard } from '../../cards/kinds.js'
import type { Card, CardReply, Frame, ToolContent } from '../../turn/frames/frames.js'

/** What the log says of a tool call of the command that was in hand when the daemon died. */
export interface PastCall {
  /** `held`: its permission card was never answered; `open`: it may have had its effect. */
  readonly state: 'held' | 'open' | 'finished'
  readonly ok: boolean
  readonly text: string
}

/** What became of a card before the daemon died; no reply: nobody answered. */
export interface PastCard {
  readonly requestId: string
  readonly reply?: CardReply
}

/** The sentence that closes a call whose effect must not be repeated. */
export const INTERRUPTED = 'interrupted by a restart'

interface CallRecord {
  status: string
  content: ToolContent[]
  held: boolean
}

/** The frames written after the last saved state, handed out in the order in which the commands wrote them. */
export class Replay {
  readonly #prose: string[] = []
  readonly #thoughts: string[] = []
  readonly #calls = new Map<string, CallRecord>()
  readonly #cards: { kind: Card['kind']; requestId: string; past?: PastCard }[] = []
  readonly #kinds = new Map<string, number>()
  /** Words said into the turn, oldest first. */
  readonly heard: { messageId?: string; text: string }[] = []
  #half: string[] = []

  constructor(since: readonly Frame[]) {
    for (const frame of since) this.#read(frame)
  }

  #read(frame: Frame): void {
    if ('parentToolUseId' in frame && frame.parentToolUseId !== undefined) return
    this.#kinds.set(frame.kind, this.count(frame.kind) + 1)
    switch (frame.kind) {
      case 'delta':
        return void this.#half.push(frame.text)
      case 'text_end':
        this.#prose.push(this.#half.join(''))
        return void (this.#half = [])
      case 'thinking':
        return void this.#thoughts.push(frame.text)
      case 'steer':
        return void this.heard.push(frame)
      case 'tool_call':
        return void this.#calls.set(frame.id, { status: frame.status, content: frame.content ?? [], held: false })
      case 'tool_call_update': {
        const call = this.#calls.get(frame.id)
        if (call && frame.status) call.status = frame.status
        if (call && frame.content) call.content = frame.content
        return
      }
      case 'resolved': {
        const card = this.#cards.find(({ requestId }) => requestId === frame.requestId)
        if (card) card.past = { requestId: frame.requestId, ...(frame.reply && { reply: frame.reply }) }
        return this.#hold(false)
      }
    }
    if (!isCard(frame)) return
    this.#hold(frame.kind === 'permission')
    this.#cards.push({ kind: frame.kind, requestId: frame.requestId })
  }

  #hold(held: boolean): void {
    for (const call of this.#calls.values()) if (!over(call.status)) call.held = held
  }

  /** Whether a frame of this kind was written. */
  has(kind: Frame['kind']): boolean {
    return this.count(kind) > 0
  }

  /** How many frames of this kind were written. */
  count(kind: Frame['kind']): number {
    return this.#kinds.get(kind) ?? 0
  }

  /** The next block of prose: what of it was written, and whether it was ended. */
  prose(): { text: string; ended: boolean } {
    const ended = this.#prose.shift()
    if (ended !== undefined) return { text: ended, ended: true }
    const text = this.#half.join('')
    this.#half = []
    return { text, ended: false }
  }

  /** Whether the next thought was written. */
  thought(): boolean {
    return this.#thoughts.shift() !== undefined
  }

  /** What the log says of a call, when it knows it. */
  call(id: string): PastCall | undefined {
    const call = this.#calls.get(id)
    if (!call) return undefined
    const text = call.content.map(textOf).join('\n')
    // The engine closes what it finds open after a crash; whether the effect happened is as unknown as before.
    const lost = call.status === 'failed' && text.includes(INTERRUPTED)
    const state = over(call.status) && !lost ? 'finished' : call.held ? 'held' : 'open'
    return { state, ok: call.status === 'completed', text }
  }

  /** The newest card of a kind that was resolved. */
  card(kind: Card['kind']): PastCard | undefined {
    return this.#cards.findLast(card => card.kind === kind)?.past
  }
}

const textOf = (part: ToolContent): string =>
  part.type === 'text' ? part.text : part.type === 'diff' ? part.newText : part.path

const over = (status: string): boolean => status === 'completed' || status === 'failed'

/** What of a text is still to be said when `said` of it was; counts words where secrets were masked in the log. */
export const unsaid = (text: string, said: string): string => {
  if (text.startsWith(said)) return text.slice(said.length)
  let words = said.match(/\S+/g)?.length ?? 0
  for (const { index } of text.matchAll(/\S+/g)) if (words-- === 0) return text.slice(index)
  return ''
}
