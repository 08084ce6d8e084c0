import type { Journals, Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import type { Conversation } from '../contract.js'
import type { Conversations, Leaving } from './conversations.js'
import { framesOf } from '../turn/frames/frame-log.js'
import type { Queue } from '../queue/queue.js'
import type { RecordFiles } from './record-files.js'
import type { Transcripts } from './transcripts.js'

/** The dependencies of the eraser. */
export interface EraserDeps {
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Pick<Transcripts, 'runs'>
  readonly files: Pick<RecordFiles, 'remove'>
  readonly journal: Pick<Journals, 'remove'>
  readonly log: Log
  /**
   * Deletes what a conversation has besides its record, frames and queue: its copy, its branch and so on; with `purged`
   * also its logs.
   */
  readonly clear: (conversation: Conversation, purged: boolean) => Promise<void>
  /** Called with each waiting run, which never starts. */
  readonly withdrawn: (run: string) => void
  /** Called for each removed conversation, also if a restart completed the removal. */
  readonly gone: (leaving: Leaving) => void
}

/**
 * Removes conversations completely: stores the intent before deleting anything, so that the next start can complete it.
 *
 * If something cannot be deleted, the conversation stays, and the removal can be retried.
 */
export class Eraser {
  readonly #deps: EraserDeps

  constructor(deps: EraserDeps) {
    this.#deps = deps
  }

  /**
   * Removes a conversation from the board, with `purged` also its record; the caller holds its lock, and it has no live
   * turn.
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
        .catch(lost =>
          log.error('restoring a conversation to the board failed', { conversation: id, error: String(lost) }),
        )
      throw error
    }
    gone(leaving)
  }

  /** Completes removals that the last daemon had begun; the next start retries failures. */
  async recover(): Promise<void> {
    const { conversations, gone, log } = this.#deps
    for (const leaving of conversations.leaving) {
      await this.#complete(leaving)
        .then(() => gone(leaving))
        .catch(error =>
          log.error('removing a conversation failed', {
            conversation: leaving.conversation.id,
            error: String(error),
          }),
        )
    }
  }

  /** Each step can be repeated; the record is deleted last, since it lists the frames. */
  async #complete({ conversation, purged }: Leaving): Promise<void> {
    const { clear, conversations, files, journal, queue, transcripts, withdrawn } = this.#deps
    const { id, lastRun } = conversation
    await clear(conversation, purged)
    failpoint('agent.erase.cleared')
    const runs = new Set([...(await transcripts.runs(id)), ...(lastRun ? [lastRun] : [])])
    for (const run of runs) await journal.remove(framesOf(run))
    if (purged) await files.remove(id)
    failpoint('agent.erase.removed')
    const waiting = queue.waiting(id).map(({ run }) => run)
    await queue.drop(id)
    waiting.forEach(withdrawn)
    await conversations.remove({ conversation, purged })
    failpoint('agent.erase.over')
  }
}
