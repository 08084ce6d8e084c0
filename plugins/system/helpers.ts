import { type Caller, type Handlers, type Host, refuse } from '../../sdk/index.js'
import type { HelperCalls } from './helpers-contract.js'

const MOST = 200

/** Answers which helpers conversations have, from the group that runs them. */
export const helperCalls = (host: Pick<Host, 'call' | 'serves'>): Handlers<HelperCalls> => ({
  'GET /system/subagents': async ({ limit = 100, ...query }, { signal }) =>
    (await host.serves('agent.helpers')) ? host.call('agent.helpers', { ...query, limit: Math.min(limit, MOST) }, { signal }) : { sessions: [] },
  'GET /system/subagents/{id}/transcript': async ({ id }, { caller, signal }) => {
    if (!(await host.serves('agent.helperTranscript'))) return unknown(id)
    const { conversationId, messages } = await host.call('agent.helperTranscript', { id }, { signal })
    if (!(await reads(host, caller, conversationId))) unknown(id)
    return { messages }
  },
})

const unknown = (id: string): never =>
  refuse('not-found', `there is no helper ${JSON.stringify(id.slice(0, 120))}, or it ended more than a week ago`)

/** An editor token reads of the conversations it opened; whose one is goes by token id. */
const reads = async (host: Pick<Host, 'call'>, { scope, tokenId }: Caller, id: string): Promise<boolean> => {
  if (scope !== 'editor') return true
  const { conversation } = await host.call('agent.conversation', { id })
  return tokenId !== undefined && conversation.openedByToken === tokenId
}
