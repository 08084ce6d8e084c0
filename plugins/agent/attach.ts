import { refuse } from '../../sdk/index.js'
import type { Caller, Journals, Position } from '../../sdk/index.js'
import { reach } from './access.js'
import type { AttachData } from './contract.js'
import type { Conversations } from './conversations.js'
import type { Engine } from './engine.js'
import { framesOf } from './frame-log.js'
import type { Queue } from './queue.js'
import { see, type Look } from './sight.js'
import type { Transcripts } from './transcripts.js'

/** What showing a run needs. */
export interface AttachParts {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly journal: Pick<Journals, 'stat' | 'follow'>
  readonly look: Look
}

export interface AttachInput {
  readonly conversationId: string
  readonly run?: string
  readonly after?: number
}

/** Shows a conversation's newest run: its head, and then its journal, which goes on by itself. */
export async function* attach(parts: AttachParts, input: AttachInput, caller: Caller, signal: AbortSignal): AsyncGenerator<AttachData, Position | void> {
  const { engine, conversations, queue, journal } = parts
  const { conversationId, run: asked, after = 0 } = input
  reach(caller, conversations.get(conversationId))
  await see(await parts.look(caller), conversations.get(conversationId), false)
  const isWaiting = asked !== undefined && queue.waiting(conversationId).some(({ run }) => run === asked)
  if (isWaiting && !(await engine.arrival(asked, signal))) return
  const conversation = conversations.get(conversationId)
  const turn = engine.live(conversationId)
  const run = turn?.run ?? conversation.lastRun
  if (turn) await Promise.race([turn.log.opened, turn.ended])
  const stat = run === undefined ? undefined : await journal.stat(framesOf(run))
  if (run === undefined || !stat) return refuse('not-found', 'no log of a run of this conversation is kept any more; its record is in the transcript')
  const head = turn
    ? { prompt: turn.message.input.prompt, startedAt: turn.entry.fields.startedAt }
    : await settledHead(parts, conversationId, run, conversation.updatedAt)
  yield { kind: 'attached', run, ...head, seq: stat.entries }
  if (asked !== undefined && asked !== run) return journal.follow(framesOf(run), 0)
  // Who has seen frames that are still to come is shown those that follow them.
  if (turn && after > stat.entries) await Promise.race([turn.log.reached(after, signal), turn.ended])
  return journal.follow(framesOf(run), after)
}

const settledHead = async ({ transcripts }: AttachParts, conversationId: string, run: string, otherwise: number) => {
  const first = await transcripts.opening(conversationId, run)
  return { prompt: first?.text ?? '', startedAt: first?.sentAt ?? otherwise }
}
