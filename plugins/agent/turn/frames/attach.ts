import { refuse } from '../../../../sdk/index.js'
import type { Caller, Journals, Position } from '../../../../sdk/index.js'
import { assertReaches } from '../../conversations/access.js'
import type { AttachData } from '../../contract.js'
import type { AttachedEvent } from '../contract.js'
import type { Conversations } from '../../conversations/conversations.js'
import type { Engine } from '../engine.js'
import { framesOf } from './frame-log.js'
import type { Queue } from '../../queue/queue.js'
import { assertVisible } from '../../../../sdk/node/access/conversation-reach.js'
import type { ViewOf } from '../../conversations/access-view.js'
import type { Transcripts } from '../../conversations/transcripts.js'

/** The dependencies of attaching to a run. */
export interface AttachDeps {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly journal: Pick<Journals, 'stat' | 'follow'>
  readonly look: ViewOf
}

export interface AttachInput {
  readonly conversationId: string
  readonly run?: string
  readonly after?: number
}

/** Streams a conversation's newest run: its head, then its journal. */
export async function* attach(
  deps: AttachDeps,
  input: AttachInput,
  caller: Caller,
  signal: AbortSignal,
): AsyncGenerator<AttachData, Position | void> {
  const { engine, conversations, queue, journal } = deps
  const { conversationId, run: asked, after = 0 } = input
  assertReaches(caller, conversations.get(conversationId))
  await assertVisible(await deps.look(caller), conversations.get(conversationId), false)
  const isWaiting = asked !== undefined && queue.waiting(conversationId).some(({ run }) => run === asked)
  if (isWaiting && !(await engine.arrivals.wait(asked, signal))) return
  const conversation = conversations.get(conversationId)
  const turn = engine.live(conversationId)
  const run = turn?.run ?? conversation.lastRun
  if (turn) await Promise.race([turn.log.opened, turn.ended])
  const stat = run === undefined ? undefined : await journal.stat(framesOf(run))
  if (run === undefined || !stat)
    return refuse('not-found', 'the frames of this conversation are no longer kept; read its transcript')
  if (!turn && !stat.closed) await engine.endStream(conversation, run)
  const head = turn
    ? { ...wordsOf(turn.message.input.prompt, turn.message.input.attachments), startedAt: turn.entry.fields.startedAt }
    : await settledHead(deps, conversationId, run, conversation.updatedAt)
  yield { kind: 'attached', run, ...head, seq: stat.entries }
  if (asked !== undefined && asked !== run) return journal.follow(framesOf(run), 0)
  // After a restart a watcher can be ahead of the log: continues after the last frame it has seen.
  if (turn && after > stat.entries) await Promise.race([turn.log.reached(after, signal), turn.ended])
  return journal.follow(framesOf(run), after)
}

const wordsOf = (
  prompt: string,
  attachments: readonly string[] = [],
): Pick<AttachedEvent, 'prompt' | 'attachments'> => ({
  prompt,
  ...(attachments.length > 0 && { attachments: [...attachments] }),
})

const settledHead = async ({ transcripts }: AttachDeps, conversationId: string, run: string, otherwise: number) => {
  const first = await transcripts.opening(conversationId, run)
  return { ...wordsOf(first?.text ?? '', first?.attachments), startedAt: first?.sentAt ?? otherwise }
}
