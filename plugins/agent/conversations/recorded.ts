import type { Context, Handlers, Host, Input, Reply } from '../../../sdk/index.js'
import { record, type Happened } from '../../../sdk/node/record/record.js'
import type { OpenCards } from '../cards/cards.js'
import { titleOf } from '../cards/kinds.js'
import type { Agent, Started } from '../contract.js'
import type { Card } from '../turn/frames/frames.js'

const SAID = { started: 'turn.started', said: 'message.said', queued: 'message.queued' } as const
const REMEMBERED = 1000
const MOST_ASKED = 500

/** What a card asks about: for a permission its command or path, not the program's own title. */
const askedBy = (card: Card | undefined): string | undefined => {
  const text = card && ((card.kind === 'permission' && card.description) || titleOf(card))
  return text?.slice(0, MOST_ASKED).toWellFormed()
}

/** Wraps the handlers of turns to record successful calls in the activity record. */
export const recorded = (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  cards: Pick<OpenCards, 'open'>,
  handlers: Handlers<Agent>,
): Handlers<Agent> => {
  const known = new Set<string>()

  /** Not awaited: recording must not delay a turn. */
  const recordLate = ({ caller }: Context, entry: Happened): void =>
    void record(host, { audience: 'viewer', outcome: 'ok', actor: caller.actor, ...entry })

  /** A repeated message gets its first answer and is not recorded again. */
  const isNews = ({ messageId }: Started): boolean => {
    if (known.has(messageId)) return false
    if (known.size >= REMEMBERED) known.delete(known.values().next().value!)
    known.add(messageId)
    return true
  }

  /** Wraps a call to record it when it succeeds. */
  const after =
    <C extends 'POST /agent/rewind' | 'POST /agent/steer' | 'POST /agent/stop' | 'POST /agent/switch-account'>(
      call: C,
      entry: (input: Input<Agent, C>) => Happened,
    ) =>
    async (input: Input<Agent, C>, context: Context) => {
      // None of these calls is a socket, so they need no other context.
      const run = handlers[call] as unknown as (input: Input<Agent, C>, context: Context) => Promise<Reply<Agent, C>>
      const done = await run(input, context)
      recordLate(context, entry(input))
      return done
    }

  return {
    ...handlers,
    'POST /agent': async (input, context) => {
      const started = await handlers['POST /agent'](input, context)
      const { delivery, conversationId, run, messageId } = started
      if (isNews(started))
        recordLate(context, { type: SAID[delivery], conversationId, turnId: run, extra: { messageId } })
      return started
    },
    'POST /agent/steer': after('POST /agent/steer', ({ conversationId }) => ({ type: 'message.said', conversationId })),
    'POST /agent/reply': async (input, context) => {
      const { kind, requestId } = input
      // Read before the answer, which closes the card.
      const asked = askedBy(cards.open(requestId))
      const done = await handlers['POST /agent/reply'](input, context)
      recordLate(context, {
        type: 'card.answered',
        turnId: requestId.slice(0, Math.max(0, requestId.lastIndexOf('.'))),
        ...(asked && { content: asked }),
        extra: { kind, requestId },
      })
      return done
    },
    'POST /agent/stop': after('POST /agent/stop', ({ conversationId }) => ({ type: 'turn.stopped', conversationId })),
    'POST /agent/rewind': after('POST /agent/rewind', ({ conversationId, index }) => ({
      type: 'agent.rewound',
      conversationId,
      extra: { index },
    })),
    'POST /agent/switch-account': after('POST /agent/switch-account', ({ conversationId, agent, account, model }) => ({
      type: 'agent.switched',
      conversationId,
      extra: { agent, account, model },
    })),
  }
}
