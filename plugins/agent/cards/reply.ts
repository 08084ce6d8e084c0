import { commonReach, refuse } from '../../../sdk/index.js'
import type { Journals, Reach, ReachFolder } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import { refuseReading, type AccessView } from '../../../sdk/node/access/access-view.js'
import { assertMayDecide, assertReaches, type Sender } from '../conversations/access.js'
import { isOffer } from './kinds.js'
import type { OpenCards } from './cards.js'
import type { CardReply, Conversation } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from '../turn/engine.js'
import { framesOf } from '../turn/frames/frame-log.js'
import type { Frame } from '../turn/frames/frames.js'
import { assertWorksEverywhere, type ViewOf } from '../conversations/access-view.js'

/** The dependencies of answering a card. */
export interface ReplyDeps {
  readonly cards: OpenCards
  readonly conversations: Conversations
  readonly journal: Pick<Journals, 'read'>
  readonly look: ViewOf
  readonly engine: Pick<Engine, 'live'>
  /** The folders that areas reach together. */
  readonly reach: (areas: readonly string[]) => Promise<readonly ReachFolder[]>
}

/** Delivers a person's answer to its card. */
export const reply = async (deps: ReplyDeps, answer: CardReply, { caller, held }: Sender): Promise<void> => {
  const { cards, conversations, journal, look } = deps
  const { requestId } = answer
  const conversationId =
    cards.conversationOf(requestId) ?? (await settledEarlier({ cards, conversations, journal }, answer))
  const conversation = conversationId === undefined ? undefined : conversations.find(conversationId)
  const seen = await look(caller)
  const access = conversation && (await accessToConversation(seen, conversation))
  if (!conversation || !access) return refuse('not-found', `there is no card ${JSON.stringify(requestId.slice(0, 80))}`)
  if (access === 'read') refuseReading(conversation.id)
  assertReaches(caller, conversation)
  await assertWorksWith(deps, conversation, requestId, seen)
  for (const kind of new Set([answer.kind, cards.kindOf(requestId)]))
    if (kind && isOffer({ kind })) assertMayDecide(caller, kind)
  if (cards.conversationOf(requestId) !== undefined) deps.engine.live(conversation.id)?.assertTakes(held === undefined)
  const byToken = caller.kind === 'token' && { byToken: true }
  await cards.reply(answer, { by: caller.actor, lands: held === undefined, ...byToken })
}

/** Refuses an answer to a turn that may write in folders that the sender may only read. */
const assertWorksWith = async (
  { cards, engine, reach }: ReplyDeps,
  { id, folders }: Conversation,
  requestId: string,
  seen: AccessView,
): Promise<void> => {
  const turn = cards.isOpen(requestId) ? engine.live(id) : undefined
  if (!turn || !seen.reach) return
  const { limits } = turn.message
  const reached: Reach = commonReach(limits && (await reach(limits.areas)), folders)
  assertWorksEverywhere(seen, reached, 'the turn that asks may write')
}

/** Looks for an old card in the log of its run, which its id names. */
const settledEarlier = async (
  { cards, conversations, journal }: Pick<ReplyDeps, 'cards' | 'conversations' | 'journal'>,
  { requestId }: CardReply,
): Promise<string | undefined> => {
  const run = requestId.slice(0, Math.max(0, requestId.lastIndexOf('.')))
  const conversation = run ? conversations.all.find(({ lastRun }) => lastRun === run) : undefined
  if (!conversation) return undefined
  const frames = await journal.read<{ event: Frame }>(framesOf(run))
  const resolved = frames
    .map(({ event }) => event)
    .find(event => event.kind === 'resolved' && event.requestId === requestId)
  if (resolved?.kind !== 'resolved') return undefined
  cards.settle(requestId, conversation.id, resolved.reply)
  return conversation.id
}
