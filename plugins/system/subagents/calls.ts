import { type Context, type Handlers, type Host, refuse } from '../../../sdk/index.js'
import type { SubagentSession } from '../../agent/contract.js'
import type { SubagentSessionCalls } from './contract.js'

type SubagentHost = Pick<Host, 'call' | 'serves'>

const MOST = 200

/** Serves the subagents of conversations, from the group that runs them. */
export const subagentSessionCalls = (host: SubagentHost): Handlers<SubagentSessionCalls> => ({
  'GET /system/subagents': async ({ limit = 100, ...query }, context) => {
    if (!(await host.serves('agent.helpers'))) return { sessions: [] }
    const most = Math.min(limit, MOST)
    const sees = seeing(host, context)
    const sessions: SubagentSession[] = []
    for (let before = query.before; ;) {
      const page = await host.call(
        'agent.helpers',
        { ...query, limit: most, ...(before !== undefined && { before }) },
        { signal: context.signal },
      )
      for (const session of page.sessions) if (await sees(session.conversationId)) sessions.push(session)
      before = page.next
      if (before === undefined) return { sessions }
      if (sessions.length >= most) return { sessions, next: before }
    }
  },
  'GET /system/subagents/{id}/transcript': async ({ id }, context) => {
    if (!(await host.serves('agent.helperTranscript'))) return unknown(id)
    const { conversationId, messages } = await host.call('agent.helperTranscript', { id }, { signal: context.signal })
    return (await seeing(host, context)(conversationId)) ? { messages } : unknown(id)
  },
})

const unknown = (id: string): never =>
  refuse('not-found', `there is no subagent ${JSON.stringify(id.slice(0, 120))}, or it ended more than a week ago`)

/** Whether the caller sees a conversation: an editor token those it opened, a person limited to areas those inside. */
const seeing = (host: SubagentHost, context: Context): ((conversationId: string) => Promise<boolean>) => {
  const { caller, signal } = context
  if (caller.scope !== 'editor' && !caller.areas) return async () => true
  const known = new Map<string, Promise<boolean>>()
  const ask = async (id: string): Promise<boolean> => {
    if (caller.areas) {
      // Called with the caller's identity: a conversation that this group does not show does not exist for them.
      return (
        (await host.serves('GET /agents/{id}'))
        && host.call('GET /agents/{id}', { id }, { as: context, signal }).then(
          () => true,
          () => false,
        )
      )
    }
    const { conversation } = await host.call('agent.conversation', { id })
    return caller.tokenId !== undefined && conversation.openedByToken === caller.tokenId
  }
  return id => {
    const asked = known.get(id) ?? ask(id)
    known.set(id, asked)
    return asked
  }
}
