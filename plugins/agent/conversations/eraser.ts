import type { Journals, Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Conversation } from '../contract.js'
import type { Conversations, Leaving } from './conversations.js'
import { framesOf } from '../turn/frame-log.js'
import type { Queue } from '../queue/queue.js'
import type { Transcripts } from './transcripts.js'

/** What taking a conversation away needs. */
export interface EraserDeps {
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly journal: Pick<Journals, 'remove'>
  readonly log: Log
  /**
   * Takes away what a conversation keeps beside its record, frames and queue: its copy, branch and the like, of a
   * purged one its logs too.
   */
  readonly clear: (conversation: Conversation, purged: boolean) => Promise<void>
  /** Called with each run that waited and never starts. */
  readonly withdrawn: (run: string) => void
  /** Called with each conversation that is gone, also when a restart completed it. */
  readonly gone: (leaving: Leaving) => void
}

/**
 * Takes conversations away whole: what is meant is durable before anything goes, and the next start completes it.
 *
 * Where something cannot be taken away the conversation stays, and can be taken away again.
 */
export class Eraser {
  readonly #deps: EraserDeps

  constructor(deps: EraserDeps) {
    this.#deps = deps
  }

  /**
   * Takes a conversation off the board, and with `purged` its record too; the caller holds its lane and no turn of it
   * lives.
   */
  async erase(id: string, purged: boolean): Promise<void> {
    const { conversations, gone, log } = this.#deps
    const leaving: Leaving = { conversation: conversations.get(id), purged }
    await conversations.leave(leaving)
    failpoint('agent.erase.meant')
    try {
      await this.#complete(leaving)
    } catch (error) {
      await conversations
        .stay(leaving)
        .catch(lost => log.error('a conversation could not be kept', { conversation: id, error: String(lost) }))
      throw error
    }
    gone(leaving)
  }

  /** Completes what the last daemon had begun; what cannot be is tried again by the next start. */
  async recover(): Promise<void> {
    const { conversations, gone, log } = this.#deps
    for (const leaving of conversations.leaving) {
      await this.#complete(leaving)
        .then(() => gone(leaving))
        .catch(error =>
          log.error('a conversation could not be taken away whole', {
            conversation: leaving.conversation.id,
            error: String(error),
          }),
        )
    }
  }

  /** Each step can be taken again; the record is the last that tells which frames there are. */
  async #complete({ conversation, purged }: Leaving): Promise<void> {
    const { clear, conversations, journal, queue, transcripts, withdrawn } = this.#deps
    const { id, lastRun } = conversation
    await clear(conversation, purged)
    failpoint('agent.erase.cleared')
    const runs = new Set([...(await transcripts.runs(id)), ...(lastRun ? [lastRun] : [])])
    for (const run of runs) await journal.remove(framesOf(run))
    if (purged) await transcripts.remove(id)
    failpoint('agent.erase.removed')
    const waiting = queue.waiting(id).map(({ run }) => run)
    await queue.drop(id)
    waiting.forEach(withdrawn)
    await conversations.remove({ conversation, purged })
    failpoint('agent.erase.over')
  }
}
