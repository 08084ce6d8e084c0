import { refuse } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { isFull } from '../../../sdk/node/files/disk.js'
import type { Conversation, LandRequest, WaitingMessages } from '../contract.js'
import type { Conversations } from '../conversations/conversations.js'
import type { Copies } from '../copies/copies.js'
import type { Engine } from '../turn/engine.js'
import type { Eraser } from '../conversations/eraser.js'
import type { RunMessage } from '../turn/run-entry.js'
import type { QueuedMessage } from '../turn/frames/frames.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { shownMessages, type Queue } from '../queue/queue.js'
import type { Search } from '../conversations/search.js'
import type { Transcripts } from '../conversations/transcripts.js'

/** The dependencies of the board. */
export interface BoardDeps {
  readonly engine: Engine
  readonly conversations: Conversations
  readonly queue: Queue
  readonly transcripts: Transcripts
  readonly copies: Pick<Copies, 'retire'>
  /** Ends the commands that run in the background of a conversation. */
  readonly endPrograms: (conversationId: string) => Promise<void>
  readonly search: Pick<Search, 'forget'>
  readonly decisions: KeyedMutex
  readonly locks: KeyedMutex
  readonly changed: (id: string) => void
  readonly eraser: Pick<Eraser, 'erase'>
  /** Called with each archived conversation, as it was before. */
  readonly archived: (conversation: Conversation) => void
  /** Refuses to start a waiting message that exceeds a budget. */
  readonly affordable: (message: RunMessage) => Promise<void>
}

/** Changes conversations without running turns: marks, the queue, the archive. */
export class Board {
  readonly #deps: BoardDeps

  constructor(deps: BoardDeps) {
    this.#deps = deps
  }

  async rename(id: string, title: string): Promise<void> {
    const { conversations } = this.#deps
    const words = title.trim()
    if (words === '')
      refuse('invalid', 'title: expected words, found blanks only', { errors: [{ path: 'title', expected: 'words' }] })
    await conversations.change(conversations.get(id).id, { title: words, titleBy: 'person' })
  }

  async seen(ids: readonly string[]): Promise<void> {
    const { conversations } = this.#deps
    for (const id of ids) conversations.get(id)
    const seenAt = Date.now()
    await Promise.all(ids.map(id => conversations.change(id, { seenAt })))
  }

  /** Records a request for a landing; an earlier one stays. */
  async requestLand(id: string, landRequested: LandRequest): Promise<void> {
    const { conversations } = this.#deps
    if (!conversations.get(id).landRequested) await conversations.change(id, { landRequested })
  }

  async autoLand(id: string, autoLand: boolean | undefined): Promise<void> {
    const { conversations } = this.#deps
    await conversations.change(conversations.get(id).id, { autoLand })
  }

  /** The messages that wait, and the live run. */
  waiting(id: string): WaitingMessages & { running?: string } {
    const { engine, conversations } = this.#deps
    const { live } = engine.state(conversations.get(id))
    return { ...this.#line(id), ...(live && { running: live.run }) }
  }

  /** Removes a waiting message. */
  unqueue(id: string, messageId: string): Promise<{ removed: QueuedMessage; messages: QueuedMessage[] }> {
    const { conversations, engine, decisions, queue } = this.#deps
    return decisions.with(conversations.get(id).id, async () => {
      conversations.get(id)
      const removed =
        this.#line(id).messages.find(message => message.messageId === messageId) ?? this.#notWaiting(id, messageId)
      await durable(queue.withdraw(id, messageId))
      engine.arrivals.settle(removed.run)
      return { removed, messages: this.#publishQueue(id).messages }
    })
  }

  /** Reorders the queue; with `start` starts the first message if the conversation is free. */
  order(id: string, messageIds: readonly string[], start: boolean): Promise<WaitingMessages & { run?: string }> {
    const { conversations, engine, decisions, queue } = this.#deps
    return decisions.with(conversations.get(id).id, async () => {
      conversations.get(id)
      const waiting = new Set(queue.waiting(id).map(message => message.messageId))
      const same =
        messageIds.length === waiting.size
        && new Set(messageIds).size === waiting.size
        && messageIds.every(each => waiting.has(each))
      if (!same) {
        refuse(
          'conflict',
          `messageIds: expected each of the ${waiting.size} messages that wait once, found ${messageIds.length}, `
            + 'not exactly these: read the queue again',
        )
      }
      if (start && waiting.size === 0)
        refuse('unprocessable', 'start: expected a waiting message, found an empty queue')
      if (engine.closing) refuse('unavailable', 'the sandbox is shutting down; order the queue again when it is back')
      const first = queue.waiting(id).find(({ messageId }) => messageId === messageIds[0])
      if (start && first && !engine.live(id)) await this.#deps.affordable(first)
      await durable(queue.order(id, messageIds, !start && queue.paused(id)))
      const next = start && !engine.live(id) ? queue.take(id) : undefined
      if (next) engine.start(next)
      return { ...this.#publishQueue(id), ...(next && { run: next.run }) }
    })
  }

  /** Archives a conversation, unless it is archived already. */
  async archive(id: string): Promise<void> {
    const { archived, conversations, copies, queue } = this.#deps
    await this.#quiet(id, 'archive it', async () => {
      const conversation = conversations.get(id)
      const { archivedAt, branch, repos } = conversation
      if (archivedAt !== undefined) return
      await this.#deps.endPrograms(id)
      if (branch) await copies.retire(id, repos)
      failpoint('agent.archive.retired')
      await queue.resume(id)
      await conversations.change(id, { archivedAt: this.#moment() })
      archived(conversation)
    })
  }

  /** Restores a conversation to the board as the newest activity; its next turn rebuilds the copy. */
  async unarchive(id: string): Promise<void> {
    const { conversations } = this.#deps
    if (conversations.get(id).archivedAt !== undefined) {
      // With its old date it would soon be archived again.
      await conversations.change(id, { archivedAt: undefined, updatedAt: Date.now() })
    }
  }

  /** Deletes an archived conversation for good. */
  async purge(id: string): Promise<void> {
    const { conversations, eraser, search } = this.#deps
    await this.#quiet(id, 'archive it', async () => {
      const { archivedAt } = conversations.get(id)
      if (archivedAt === undefined) refuse('conflict', `${id} is not archived: archive it, then purge`)
      await eraser.erase(id, true)
      // Last, because the index ignores deleted conversations.
      search.forget(id)
    })
  }

  /** Adds a line in the agent's voice; the next turn reads it as its own words, from the record. */
  async place(id: string, text: string, by: string): Promise<void> {
    const { conversations, transcripts } = this.#deps
    await this.#quiet(id, 'place the line', async () => {
      // First, so that the provider's session never lacks the line.
      await conversations.update(id, { session: undefined })
      await durable(transcripts.place(id, { role: 'assistant', text, placed: true }))
      await conversations.update(id, { lastBy: by, updatedAt: Date.now() })
    })
  }

  /** Runs work while no turn runs or can start and nothing else changes the private copy. */
  async #quiet(id: string, then: string, work: () => Promise<void>): Promise<void> {
    const { conversations, engine, decisions, locks } = this.#deps
    const { live } = engine.state(conversations.get(id))
    if (live) refuse('conflict', `a turn of ${id} is ${live.state}: stop it, then ${then}`)
    await decisions.with(id, async () => {
      conversations.get(id)
      const turn = engine.live(id)
      if (turn) refuse('conflict', `a turn of ${id} is ${turn.state}: stop it, then ${then}`)
      await locks.with(id, work)
    })
  }

  /** A unique time of archiving, because lists are paged by it. */
  #moment(): number {
    const taken = new Set(this.#deps.conversations.all.map(({ archivedAt }) => archivedAt))
    let at = Date.now()
    while (taken.has(at)) at++
    return at
  }

  #line(id: string): WaitingMessages {
    const { queue } = this.#deps
    return { messages: shownMessages(queue.waiting(id)), paused: queue.paused(id) }
  }

  /** Sends the current queue to watchers. */
  #publishQueue(id: string): WaitingMessages {
    const { changed, engine } = this.#deps
    const line = this.#line(id)
    const turn = engine.live(id)
    if (turn && !turn.leaving) turn.log.push({ kind: 'queue', ...line })
    changed(id)
    return line
  }

  #notWaiting(id: string, messageId: string): never {
    const row = this.#deps.queue.known(messageId)
    if (row?.conversationId === id && !row.withdrawn)
      refuse('conflict', 'this message was delivered meanwhile and cannot be removed: stop its turn instead')
    return refuse('not-found', `no message ${JSON.stringify(messageId.slice(0, 128))} waits in ${id}`)
  }
}

/** Runs a durable step; reports a full disk to the caller. */
const durable = async (step: Promise<void>): Promise<void> => {
  try {
    await step
  } catch (error) {
    if (!isFull(error)) throw error
    refuse('too-large', 'the disk of the sandbox is full: nothing was changed; free some space and try again', {
      cause: error,
    })
  }
}
