import type { AttachData, Card, CardReply, RunEnd } from '../../../plugins/agent/contract.js'
import type { Client } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { answerCommand, askPerson, isAnswerable, replyFrom } from './cards.js'
import { createRender } from './render.js'
import { jsonLine, oneLine, plain, stylesOf } from '../terminal/text.js'
import type { Terminal } from '../verb.js'
import { say, write } from '../terminal/write.js'

/** How a run ended, and the run that follows it. */
export interface Followed {
  readonly run?: string
  readonly end?: RunEnd
  readonly next?: string
  /** Whether the turn works in a private copy, as seen in the watched frames. */
  readonly copy?: boolean
  /** Whether it ran a command, as seen in the watched frames. */
  readonly ran?: boolean
}

/** Handles a waiting card: returns its reply, or undefined to leave it unanswered here. */
export type OnCard = (card: Card, signal: AbortSignal) => Promise<CardReply | undefined>

export interface FollowOptions {
  readonly conversationId: string
  readonly run?: string
  readonly after?: number
  readonly json: boolean
  readonly onCard: OnCard
}

/** Shows a run until it ends; passes waiting cards to `onCard`. */
export const followRun = (terminal: Terminal, client: Client, options: FollowOptions): Promise<Followed> => {
  const follow = () => followed(terminal, client, options)
  return terminal.sign ? terminal.sign.during(follow) : follow()
}

const followed = async (
  terminal: Terminal,
  client: Client,
  { json, onCard, ...what }: FollowOptions,
): Promise<Followed> => {
  const render = createRender({
    colour: terminal.colour,
    ...(terminal.columns !== undefined && { columns: terminal.columns }),
  })
  const cards = new OpenCards(terminal, client, onCard)
  let found: Followed = {}
  let known = 0
  try {
    for await (const event of await client.call('POST /agent/attach', what, { signal: terminal.signal })) {
      await write(terminal, json ? jsonLine(event) : render(event))
      if (event.kind === 'attached') {
        found = { run: event.run }
        known = event.seq
      }
      if (event.kind === 'end') found = { ...found, ...(event.next && { next: event.next }) }
      if (event.kind !== 'frame') continue
      found = { ...found, ...cards.see(event) }
      if (event.seq >= known) cards.raise()
    }
  } finally {
    await cards.close()
  }
  return found
}

/** The open cards of a run. Past cards are recognized by their `resolved` frame. */
class OpenCards {
  readonly #terminal: Terminal
  readonly #client: Client
  readonly #onCard: OnCard
  readonly #waiting = new Map<string, Card>()
  readonly #asked = new Map<string, { readonly stop: AbortController; readonly done: Promise<void> }>()

  constructor(terminal: Terminal, client: Client, onCard: OnCard) {
    this.#terminal = terminal
    this.#client = client
    this.#onCard = onCard
  }

  see({ event }: AttachData & { kind: 'frame' }): Pick<Followed, 'end' | 'copy' | 'ran'> {
    if (isAnswerable(event)) this.#waiting.set(event.requestId, event)
    if (event.kind === 'resolved') {
      this.#waiting.delete(event.requestId)
      this.#asked.get(event.requestId)?.stop.abort()
      this.#terminal.sign?.resume()
    }
    if (event.kind === 'tool_call' && event.name === 'Shell') return { ran: true }
    return event.kind === 'done' ? { end: event.reason } : event.kind === 'worktree' ? { copy: true } : {}
  }

  raise(): void {
    for (const card of this.#waiting.values()) {
      const stop = new AbortController()
      this.#asked.set(card.requestId, {
        stop,
        done: this.#ask(card, AbortSignal.any([stop.signal, this.#terminal.signal])),
      })
    }
    this.#waiting.clear()
  }

  async close(): Promise<void> {
    for (const { stop } of this.#asked.values()) stop.abort()
    await Promise.all([...this.#asked.values()].map(({ done }) => done))
  }

  async #ask(card: Card, signal: AbortSignal): Promise<void> {
    try {
      this.#terminal.sign?.pause()
      const reply = await this.#onCard(card, signal)
      if (reply && !signal.aborted)
        await this.#client.call('POST /agent/reply', reply, { signal: this.#terminal.signal })
    } catch (error) {
      if (signal.aborted) return
      const words = error instanceof Refusal ? error.message : String(error)
      say(this.#terminal, `sandbox: the answer was not accepted: ${plain(words)}\n`)
    }
  }
}

/**
 * Answers cards for `run` and `attach`: from the given answers, else by asking the person; otherwise prints the command
 * that answers.
 */
export const answering = (terminal: Terminal, json: boolean, answers: readonly string[]): OnCard => {
  const left = [...answers]
  return async (card, signal) => {
    const count = card.kind === 'question' ? card.questions.length : 1
    const given = left.splice(0, count)
    if (given.length)
      return replyFrom(card, card.kind === 'question' ? given : given[0]!.split(/\s+(.*)/s).filter(Boolean))
    const reply = terminal.interactive && !json ? await askPerson(terminal, card, signal) : undefined
    if (reply || signal.aborted) return reply
    const line = `to answer: ${oneLine(answerCommand(card))}`
    if (json) say(terminal, jsonLine({ message: line, reason: 'card', requestId: card.requestId }))
    else await write(terminal, `${stylesOf(terminal.colour).bold(line)}\n`)
    return undefined
  }
}
