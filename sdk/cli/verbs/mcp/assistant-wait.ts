import {
  inputRequired,
  inputResponse,
  type InputRequiredResult,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { Card, CardReply, Frame, RunEnd } from '../../../../plugins/agent/contract.js'
import type { Client } from '../../../client.js'
import { ignored } from '../../../ignored.js'
import { isAnswerable, replyFrom } from '../../follow/cards.js'
import { cardForm, cardText, replyOfForm } from '../acp/ask-editor.js'

/** How a conversation stands after some waiting. */
export interface WaitedState {
  readonly state: 'ended' | 'running' | 'waits'
  readonly run: string
  readonly end?: RunEnd
  readonly failure?: string
  /** What the agent said, at most its last 8,000 characters. */
  readonly said: string
  readonly cards: readonly ShownCard[]
}

/** A card as an assistant reads it. */
export interface ShownCard {
  readonly card: string
  readonly kind: Card['kind']
  readonly asks: string
}

const MOST_SAID = 8000

/** A card as an assistant reads it. */
export const shownCard = (card: Card): ShownCard => ({
  card: card.requestId,
  kind: card.kind,
  asks: cardText(card),
})

/** Tells the client of the assistant, where it asked for it, what a turn does. */
const progressOf = ({ mcpReq: { _meta, notify } }: ServerContext): ((message: string) => void) => {
  const progressToken = _meta?.progressToken
  if (progressToken === undefined) return () => {}
  let progress = 0
  return message =>
    void notify({ method: 'notifications/progress', params: { progressToken, progress: ++progress, message } }).catch(
      ignored('the client has gone'),
    )
}

/** Sends what the person of the assistant answered to the cards that it was asked. */
const answerCards = async (client: Client, cards: readonly Card[], context: ServerContext): Promise<void> => {
  for (const card of cards) {
    const given = inputResponse(context.mcpReq.inputResponses, card.requestId)
    if (given.kind !== 'elicit' || given.action === 'cancel') continue
    const reply: CardReply | undefined =
      given.action === 'accept'
        ? replyOfForm(card, given.content ?? {})
        : card.kind === 'question'
          ? { kind: 'question', requestId: card.requestId }
          : replyFrom(card, ['no'])
    if (reply) await client.call('POST /agent/reply', reply)
  }
}

/** Waits until the turn of a conversation ends or asks something, or the time is over. */
export const waitFor = async (
  client: Client,
  conversationId: string,
  ms: number,
  context: ServerContext,
  forms: boolean,
): Promise<WaitedState | InputRequiredResult> => {
  const responses = context.mcpReq.inputResponses
  const asked = new Set(Object.keys(responses ?? {}))
  const progress = progressOf(context)
  const enough = new AbortController()
  const timer = setTimeout(() => enough.abort(), ms)
  const signal = AbortSignal.any([enough.signal, context.mcpReq.signal])
  const open = new Map<string, Card>()
  let [run, said, known] = ['', '', 0]
  let end: RunEnd | undefined
  let failure: string | undefined
  const state = (): WaitedState => ({
    state: end ? 'ended' : open.size > 0 ? 'waits' : 'running',
    run,
    ...(end && { end }),
    ...(failure !== undefined && { failure }),
    said: said.slice(-MOST_SAID),
    cards: [...open.values()].map(shownCard),
  })
  const take = (frame: Frame) => {
    if (frame.kind === 'delta' && frame.parentToolUseId === undefined) said += frame.text
    if (frame.kind === 'text_end' && frame.parentToolUseId === undefined) said += '\n'
    if (frame.kind === 'error') failure = frame.message
    if (frame.kind === 'done') end = frame.reason
    if (frame.kind === 'resolved') open.delete(frame.requestId)
    if (isAnswerable(frame)) open.set(frame.requestId, frame)
    if (frame.kind === 'tool_call') progress([frame.name, frame.target].filter(Boolean).join(' '))
  }
  /** Watches a run, the newest one if none is named, and those of messages that waited for it. */
  const watch = async (waited?: string): Promise<WaitedState | InputRequiredResult> => {
    const watched = { conversationId, ...(waited !== undefined && { run: waited }) }
    let next: string | undefined
    for await (const event of await client.call('POST /agent/attach', watched, { signal })) {
      if (event.kind === 'attached') [run, known] = [event.run, event.seq]
      if (event.kind === 'end') next = event.next
      if (event.kind !== 'frame') continue
      take(event.event)
      if (event.seq < known || open.size === 0) continue
      const fresh = [...open.values()].filter(({ requestId }) => !asked.has(requestId))
      if (fresh.length < open.size) {
        const known = [...open.values()].filter(({ requestId }) => asked.has(requestId))
        for (const { requestId } of known) asked.delete(requestId)
        const left = known.filter(({ requestId }) => {
          const given = inputResponse(responses, requestId)
          return given.kind !== 'elicit' || given.action === 'cancel'
        })
        await answerCards(client, known, context)
        if (left.length > 0) return state()
        continue
      }
      if (!forms) return state()
      return inputRequired({
        inputRequests: Object.fromEntries(fresh.map(card => [card.requestId, inputRequired.elicit(cardForm(card))])),
      })
    }
    if (next === undefined) return state()
    ;[end, failure] = [undefined, undefined]
    return watch(next)
  }
  try {
    return await watch()
  } catch (error) {
    if (enough.signal.aborted) return state()
    throw error
  } finally {
    clearTimeout(timer)
    enough.abort()
  }
}
