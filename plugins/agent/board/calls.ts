import { refuse, type Context, type Handlers, type Host } from '../../../sdk/index.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { cardFor, cardsFor } from '../../../sdk/node/access/card-view.js'
import { requireBranch } from '../../../sdk/node/access/conversation-branch.js'
import { accessToConversation, assertVisible } from '../../../sdk/node/access/conversation-reach.js'
import { sendPush } from '../../../sdk/node/push/send-push.js'
import { promptWords } from '../../../sdk/node/push/words.js'
import { record, type Happened } from '../../../sdk/node/record/record.js'
import type { AgentCard, Conversation, Moved } from '../contract.js'
import { assertReads } from '../conversations/access.js'
import type { ViewOf } from '../conversations/access-view.js'
import { withCheckpoints, type Anchors } from '../conversations/anchors.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Search } from '../conversations/search.js'
import type { Transcripts } from '../conversations/transcripts.js'
import { ok } from '../ok.js'
import type { Engine } from '../turn/engine.js'
import type { PlannedResumes } from '../turn/recovery/planned-resumes.js'
import type { ConversationArchive } from './archive.js'
import type { Board } from './board.js'
import type { BoardCalls } from './contract.js'

/** The dependencies of the calls of the board. */
export interface BoardCallsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'place' | 'signal'>
  readonly board: Board
  readonly archive: ConversationArchive
  readonly conversations: Conversations
  readonly engine: Engine
  readonly transcripts: Transcripts
  readonly anchors: Anchors
  readonly search: Search
  readonly resumes: PlannedResumes
  readonly look: ViewOf
}

/** Serves the changes of conversations without turns; group agents makes the cards of the answers. */
export const boardCalls = (deps: BoardCallsDeps): Handlers<BoardCalls> => {
  const { host, board, archive, conversations, engine, transcripts, anchors, search, resumes, look } = deps
  /** The conversation and the access view of the caller; refuses an invisible one. Called once for a call. */
  const open = async (id: string, { caller }: Context, works = true) => {
    const conversation = conversations.get(id)
    const seen = await look(caller)
    await assertVisible(seen, conversation, works)
    return { conversation, seen }
  }

  /** The access view of the caller; refuses unless the caller may work on all of these. */
  const openAll = async (ids: readonly string[], { caller }: Context): Promise<AccessView> => {
    const seen = await look(caller)
    for (const id of ids) await assertVisible(seen, conversations.get(id), true)
    return seen
  }

  const workable = async (seen: AccessView, all: readonly Conversation[]): Promise<string[]> => {
    const access = await Promise.all(all.map(conversation => accessToConversation(seen, conversation)))
    return all.filter((_, at) => access[at] === 'work').map(({ id }) => id)
  }

  const stateOf = (id: string) => engine.state(conversations.get(id))

  /** Refuses before anything is changed, if no cards could be returned. */
  const assertCards = async (): Promise<void> => {
    if (!(await host.serves('agents.card')))
      refuse('unavailable', 'this sandbox runs without group agents, which makes the cards of the answer')
  }

  const marked = async (
    id: string,
    context: Context,
    mark: (conversation: Conversation) => Promise<void>,
  ): Promise<AgentCard> => {
    const { conversation, seen } = await open(id, context)
    await assertCards()
    await mark(conversation)
    return cardFor(seen, await host.call('agents.card', { state: stateOf(id) }))
  }

  const movedFor = async (seen: AccessView, ids: readonly string[]): Promise<Moved> => {
    const { moved, rev } = await host.call('agents.moved', { states: ids.map(stateOf) })
    return { moved: await cardsFor(seen, moved), rev }
  }

  const finished = async (seen: AccessView): Promise<string[]> => {
    const { ids } = await host.call('agents.finished')
    return workable(
      seen,
      ids.flatMap(id => conversations.find(id) ?? []),
    )
  }

  const did = (type: string, context: Context, facts: Partial<Happened>): Promise<void> =>
    record(host, { type, audience: 'viewer', outcome: 'ok', ...facts }, context)

  const named = (id: string): Partial<Happened> => {
    const title = conversations.find(id)?.title
    return { conversationId: id, ...(title !== undefined && { title }) }
  }

  /** Records an action under the title the conversation had before it. */
  const recording = async <T>(
    type: string,
    id: string,
    context: Context,
    action: () => Promise<T>,
    facts: Partial<Happened> = {},
  ): Promise<T> => {
    const before = named(id)
    const result = await action()
    await did(type, context, { ...before, ...facts })
    return result
  }

  return {
    'GET /agents/search': async ({ query, caseSensitive = false }, { caller }) => {
      const seen = await look(caller)
      const found = await search.find(query, caseSensitive)
      if (!seen.reach) return found
      const { all } = conversations
      const access = await Promise.all(all.map(conversation => accessToConversation(seen, conversation)))
      const ids = new Set(all.filter((_, at) => access[at] !== undefined).map(({ id }) => id))
      return { ...found, matches: found.matches.filter(({ id }) => ids.has(id)), scanned: ids.size }
    },
    'GET /agents/{id}/transcript': async ({ id, limit, before }, context) => {
      const { conversation } = await open(id, context, false)
      assertReads(context.caller, conversation)
      const { session } = conversation
      const { messages, total } = await transcripts.page(id, limit, before)
      return {
        messages: withCheckpoints(messages, await anchors.byRun(id)),
        total,
        ...(session && { sessionId: session.id }),
      }
    },
    'POST /agents/{id}/place': async ({ id, text }, context) => {
      await open(id, context)
      return recording('agent.placed', id, context, () => ok(board.place(id, text, context.caller.actor)))
    },
    'POST /agents/{id}/rename': ({ id, title }, context) => marked(id, context, () => board.rename(id, title)),
    'POST /agents/{id}/seen': ({ id }, context) => marked(id, context, () => board.seen([id])),
    'POST /agents/seen': async ({ ids }, context) => {
      const seen = await openAll(ids ?? [], context)
      await assertCards()
      const onBoard = conversations.all.filter(({ archivedAt }) => archivedAt === undefined)
      await board.seen([...new Set(ids ?? (await workable(seen, onBoard)))])
      const { agents, ...roster } = await host.call('GET /agents')
      return { ...roster, agents: await cardsFor(seen, agents) }
    },
    'POST /agents/{id}/auto-land': ({ id, autoLand }, context) =>
      recording(
        'agent.autoland',
        id,
        context,
        () =>
          marked(id, context, conversation => {
            requireBranch(conversation, 'there is nothing to land')
            return board.autoLand(id, autoLand ?? undefined)
          }),
        { extra: { autoLand } },
      ),
    'POST /agents/{id}/resume-after-outage': ({ id, resumeAfterOutage }, context) =>
      marked(id, context, () => resumes.choose(id, resumeAfterOutage ?? undefined)),
    'POST /agents/{id}/request-land': ({ id }, context) =>
      recording('agent.land_requested', id, context, () =>
        marked(id, context, async conversation => {
          requireBranch(conversation, 'its work is in the shared tree already')
          await host.call('agents.assertOutstanding', { state: stateOf(id) }, { signal: context.signal })
          const { actor, email = actor, name } = context.caller
          await board.requestLand(id, { email, ...(name !== undefined && { name }), at: Date.now() })
          const text = `Land: ${promptWords(conversation.title ?? id)}`
          void sendPush(host, { moment: 'approval', conversationId: id, text })
        }),
      ),
    'POST /agents/archive': async ({ ids }, context) => {
      const seen = await openAll(ids ?? [], context)
      await assertCards()
      if (ids) archive.assertIdle(ids)
      const { done, failed } = await archive.put(ids ?? (await finished(seen)))
      const cards = await movedFor(seen, done)
      for (const id of done) await did('agent.archived', context, named(id))
      return { ...cards, ...(failed && { failed }) }
    },
    'POST /agents/unarchive': async ({ ids }, context) => {
      const seen = await openAll(ids, context)
      await assertCards()
      return movedFor(seen, await archive.takeBack(ids))
    },
    'POST /agents/purge': async ({ ids }, context) => {
      await openAll(ids ?? [], context)
      const { done: removed, failed } = await archive.purge(ids)
      if (removed.length > 0) await did('agent.purged', context, { extra: { count: removed.length, ids: removed } })
      return { removed, ...(failed && { failed }) }
    },
    'agent.archive': ({ id }) => ok(board.archive(id)),
  }
}
