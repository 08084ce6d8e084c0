import type { Context, Handlers, Host } from '../../sdk/index.js'
import type { ActivityInput } from '../activity/contract.js'
import type { Agent, Started } from './contract.js'

const SAID = { started: 'turn.started', said: 'message.said', queued: 'message.queued' } as const
const REMEMBERED = 1000

type Told = Pick<ActivityInput, 'type' | 'conversationId' | 'turnId' | 'extra'>

/** The handlers of what people and programs do with turns, which also write down that it was done. */
export const recorded = (host: Pick<Host, 'call' | 'serves' | 'log'>, handlers: Handlers<Agent>): Handlers<Agent> => {
  const known = new Set<string>()

  /** Nobody waits for it: a turn is not to begin later for being written down. */
  const tell = ({ caller }: Context, told: Told): void => {
    const write = async () => {
      if (await host.serves('activity.record')) await host.call('activity.record', { direction: 'system', outcome: 'ok', actor: caller.actor, ...told })
    }
    write().catch(error => host.log.error('what was done could not be written down', { type: told.type, error: String(error) }))
  }

  /** The same message sent again has its first answer, and is no news. */
  const isNews = ({ messageId }: Started): boolean => {
    if (known.has(messageId)) return false
    if (known.size >= REMEMBERED) known.delete(known.values().next().value!)
    known.add(messageId)
    return true
  }

  return {
    ...handlers,
    'POST /agent': async (input, context) => {
      const started = await handlers['POST /agent'](input, context)
      const { delivery, conversationId, run, messageId } = started
      if (isNews(started)) tell(context, { type: SAID[delivery], conversationId, turnId: run, extra: { messageId } })
      return started
    },
    'POST /agent/steer': async (input, context) => {
      const done = await handlers['POST /agent/steer'](input, context)
      tell(context, { type: 'message.said', conversationId: input.conversationId })
      return done
    },
    'POST /agent/reply': async (input, context) => {
      const done = await handlers['POST /agent/reply'](input, context)
      const { kind, requestId } = input
      tell(context, { type: 'card.answered', turnId: requestId.slice(0, Math.max(0, requestId.lastIndexOf('.'))), extra: { kind, requestId } })
      return done
    },
    'POST /agent/stop': async (input, context) => {
      const done = await handlers['POST /agent/stop'](input, context)
      tell(context, { type: 'turn.stopped', conversationId: input.conversationId })
      return done
    },
    'POST /agent/rewind': async (input, context) => {
      const done = await handlers['POST /agent/rewind'](input, context)
      tell(context, { type: 'agent.rewound', conversationId: input.conversationId, extra: { index: input.index } })
      return done
    },
    'POST /agent/switch-account': async (input, context) => {
      const done = await handlers['POST /agent/switch-account'](input, context)
      const { conversationId, agent, account, model } = input
      tell(context, { type: 'agent.switched', conversationId, extra: { agent, account, model } })
      return done
    },
  }
}
