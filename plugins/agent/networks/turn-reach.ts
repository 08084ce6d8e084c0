import { refuse, type Host, type TurnReach } from '../../../sdk/index.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { Conversation } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Engine } from '../turn/engine.js'
import { trustOf } from '../turn/environment/trust.js'
import type { Turn } from '../turn/turn.js'
import type { NetworkAction } from './contract.js'

const MOST_TEXT = 2000

/**
 * What a turn reaches with its own credential.
 *
 * The people who speak in a turn may read the sandbox, so the turn may too. It may not if one of them is a stranger, is
 * limited to folders, or has a credential that does not read, such as that of an extension. A persona that is limited
 * to folders or repositories sees no others this way.
 */
export const reachOfTurn = (
  { message, entry }: Pick<Turn, 'message' | 'entry'>,
  { openedByToken }: Pick<Conversation, 'openedByToken'>,
  { persona, folders }: { readonly persona?: TurnPersona | undefined; readonly folders?: unknown },
): TurnReach => {
  const byStrangers = message.input.outsideWake !== undefined || entry.fields.outsiders === true
  const isReader = message.from !== undefined && message.from !== 'extension'
  const isLimited = folders !== undefined || persona?.repos !== undefined
  return {
    sandbox: !byStrangers && isReader && !isLimited && openedByToken === undefined && (persona?.powers.sandbox ?? true),
    accounts: persona !== undefined || message.attended,
    ...(persona
      ? { capabilities: persona.capabilities }
      : (message.lands !== true || byStrangers) && { capabilities: [] }),
  }
}

/** What admitting the action of a turn stands on. */
export interface TurnAdmissionDeps {
  readonly host: Pick<Host, 'call' | 'serves'>
  readonly engine: Pick<Engine, 'live'>
  readonly conversations: Pick<Conversations, 'find'>
}

/** Refuses what a turn asks of the machine's network, unless all who spoke may ask for it and the policy allows it. */
export const admitTurn = async (
  { host, engine, conversations }: TurnAdmissionDeps,
  { conversationId, type, text }: NetworkAction,
): Promise<void> => {
  const turn = engine.live(conversationId) ?? refuse('not-found', `no turn is running in ${conversationId}`)
  const { run, message, outside } = turn
  const conversation = conversations.find(conversationId)
  const refused = (why: string) =>
    refuse('forbidden', `${why}; propose it at POST /approvals, so that a person decides`)
  const byTokens = turn.byTokens || conversation?.heardTokens || conversation?.openedByToken !== undefined
  if (message.from !== 'session' || byTokens || trustOf(turn, conversation) !== 'lands')
    return refused('a turn changes the network only where signed-in maintainers alone spoke in its conversation')
  if (!(await host.serves('safety.decide'))) return
  const {
    verdict,
    reason,
    message: told = reason,
  } = await host.call('safety.decide', {
    subject: { kind: 'action', provider: 'sandbox', type, text: text.slice(0, MOST_TEXT).toWellFormed() },
    context: {
      conversationId,
      run,
      unattended: !message.attended,
      ...(conversation?.actsAs !== undefined && { persona: conversation.actsAs }),
      ...(outside !== undefined && { outside }),
    },
  })
  if (verdict !== 'allow') refused(`the safety policy ${verdict === 'deny' ? 'refuses' : 'holds'} this: ${told}`)
}
