import { refuse, type Caller, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import { record } from '../../../sdk/node/record/record.js'
import { assertReaches, assertReads, mayReach } from '../conversations/access.js'
import { assertVisibleIn, type ViewOf } from '../conversations/access-view.js'
import type { Conversations } from '../conversations/conversations.js'
import type { BackgroundCommand, BackgroundCalls } from './contract.js'
import { WITH_SANDBOX, type ConversationProcesses, type KnownProcess } from './conversation-processes.js'

/** The dependencies of the calls of commands in the background. */
export interface BackgroundCallsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log'>
  readonly processes: Pick<ConversationProcesses, 'all' | 'conversations'>
  readonly conversations: Pick<Conversations, 'find' | 'get'>
  readonly look: ViewOf
}

const shown = (conversationId: string, { id, command, startedAt, run, process }: KnownProcess): BackgroundCommand => {
  const ended = process ? process.ended : { how: WITH_SANDBOX, exit: undefined }
  return {
    ...{ conversationId, id, command, startedAt, running: ended === undefined },
    ...(run !== undefined && { run }),
    ...(ended && { ended: ended.how }),
    ...(ended?.exit !== undefined && { exitCode: ended.exit }),
  }
}

/** Shows people the commands in the background, and ends them. */
export const backgroundCalls = ({
  host,
  processes,
  conversations,
  look,
}: BackgroundCallsDeps): Handlers<BackgroundCalls> => {
  const see = assertVisibleIn(conversations, look)
  const known = (conversationId: string, id: string): KnownProcess =>
    processes.all(conversationId).find(one => one.id === id)
    ?? refuse('not-found', `${conversationId} has no command ${id} in the background`)
  const visible = async (caller: Caller): Promise<readonly string[]> => {
    const seen = await look(caller)
    const found = await Promise.all(
      processes.conversations.map(async id => {
        const conversation = conversations.find(id)
        if (!conversation || !mayReach(caller, conversation)) return []
        return (await accessToConversation(seen, conversation)) ? [id] : []
      }),
    )
    return found.flat()
  }
  const ended = (conversationId: string, command: string, context: Context) =>
    record(
      host,
      { type: 'command.ended', conversationId, audience: 'viewer', outcome: 'ok', content: command },
      context,
    )
  return {
    'GET /agent/processes': async ({ conversationId }, { caller }) => {
      if (conversationId !== undefined) assertReads(caller, await see(conversationId, caller, false))
      const ids = conversationId === undefined ? await visible(caller) : [conversationId]
      const all = ids.flatMap(id => processes.all(id).map(one => shown(id, one)))
      return { processes: all.sort((one, other) => one.startedAt - other.startedAt) }
    },
    'GET /agent/processes/{conversationId}/{id}': async ({ conversationId, id, since = 0 }, { caller }) => {
      assertReads(caller, await see(conversationId, caller, false))
      const one = known(conversationId, id)
      if (!one.process) return refuse('conflict', `${id} ${WITH_SANDBOX}, and its output is gone`)
      return { ...shown(conversationId, one), ...one.process.part(since) }
    },
    'DELETE /agent/processes/{conversationId}/{id}': async ({ conversationId, id }, context) => {
      assertReaches(context.caller, await see(conversationId, context.caller))
      const { process, command } = known(conversationId, id)
      if (!process || process.ended) return { ok: true }
      await process.end('by a person')
      await ended(conversationId, command.slice(0, 500).toWellFormed(), context)
      return { ok: true }
    },
  }
}
