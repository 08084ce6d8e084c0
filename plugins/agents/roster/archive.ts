import { Refusal, refuse, type Host } from '../../../sdk/index.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import type { ConversationState } from '../../agent/contract.js'
import type { AgentCard, Failure, Moved, Roster } from '../contract.js'
import type { RosterBook } from './roster.js'
import type { RunNotes } from '../work/run-notes.js'
import { cardsFor, within } from './access-view.js'
import type { BranchStatuses } from '../work/branch-status.js'

/** What putting conversations away needs of the daemon. */
export interface ArchiveDeps {
  readonly host: Pick<Host, 'call' | 'emit' | 'log' | 'signal'>
  readonly roster: RosterBook
  readonly notes: Pick<RunNotes, 'forget' | 'noteCommitted'>
  readonly standings: Pick<BranchStatuses, 'forget'>
  readonly conversations: () => Promise<ConversationState[]>
}

const MOST = 500

/** Whether nothing more is expected of a conversation. */
const isFinished = ({ status, waiting }: AgentCard): boolean =>
  (status === 'landed' || status === 'idle') && waiting === undefined

/** Conversations off the board: put away, brought back, deleted for good. */
export class Archive {
  readonly #deps: ArchiveDeps

  constructor(deps: ArchiveDeps) {
    this.#deps = deps
  }

  /**
   * Those that were put away and that are there for the asker, newest first; with `limit` the newest before a moment.
   */
  async list(seen: AccessView, limit: number | undefined, before = Infinity): Promise<Roster> {
    const { roster } = this.#deps
    const all = (await within(seen, await this.#archived()))
      .filter(({ conversation: { archivedAt = 0 } }) => archivedAt < before)
      .sort((one, other) => (other.conversation.archivedAt ?? 0) - (one.conversation.archivedAt ?? 0))
    const agents = await roster.cards(limit === undefined ? all : all.slice(0, Math.min(limit, MOST)))
    return { agents: await cardsFor(seen, agents), rev: roster.rev, held: [] }
  }

  /** Puts these away, or every finished one the asker may work on; a named one that works refuses all. */
  async put(ids: readonly string[] | undefined, seen: AccessView): Promise<Moved & { failed?: Failure[] }> {
    if (ids === undefined) return this.#put(await this.#finished(seen))
    const states = await this.#named(ids)
    for (const {
      conversation: { id },
      live,
    } of states) {
      if (live) refuse('conflict', `a turn of ${id} is ${live.state}: stop it, then archive (nothing was moved)`)
    }
    return this.#put(states.map(({ conversation }) => conversation.id))
  }

  async takeBack(ids: readonly string[]): Promise<Moved> {
    const { host } = this.#deps
    const states = await this.#named(ids)
    for (const {
      conversation: { id },
    } of states)
      await host.call('agent.unarchive', { id })
    return this.#moved(states.map(({ conversation }) => conversation.id))
  }

  /** Deletes these, or the whole archive, for good; a named one that is not archived refuses all. */
  async purge(ids: readonly string[] | undefined): Promise<{ removed: string[]; failed?: Failure[] }> {
    const { host, notes, standings } = this.#deps
    const states = ids === undefined ? await this.#archived() : await this.#named(ids)
    for (const {
      conversation: { id, archivedAt },
    } of states) {
      if (archivedAt === undefined)
        refuse('conflict', `${id} is not archived: archive it, then purge (nothing was removed)`)
    }
    const { done, failures } = await this.#each(
      states.map(({ conversation }) => conversation.id),
      async id => {
        await host.call('agent.purge', { id })
        standings.forget(id)
        await notes.forget(id)
        host.emit('agent.removed', { agentId: id, how: 'purged' })
      },
    )
    return { removed: done, ...failures }
  }

  /**
   * Puts away the finished conversations without activity since a moment, if they still are so when their turn comes.
   */
  async putOlder(moment: number): Promise<Failure[]> {
    const { conversations, host, roster } = this.#deps
    const isOld = ({ conversation: { archivedAt, updatedAt }, live }: ConversationState) =>
      archivedAt === undefined && !live && updatedAt < moment
    const old = (await conversations()).filter(isOld).map(({ conversation }) => conversation.id)
    const { failures } = await this.#each(old, async id => {
      const state = await host.call('agent.conversation', { id })
      if (isOld(state) && isFinished(await roster.card(state))) await this.#away(id)
    })
    return failures.failed ?? []
  }

  /** The finished conversations on the board that may be worked on. */
  async #finished(seen: AccessView): Promise<string[]> {
    const finished = (await this.#deps.roster.read()).agents.filter(isFinished)
    const access = await Promise.all(finished.map(card => accessToConversation(seen, card)))
    return finished.filter((_, at) => access[at] === 'work').map(({ id }) => id)
  }

  async #archived(): Promise<ConversationState[]> {
    return (await this.#deps.conversations()).filter(({ conversation }) => conversation.archivedAt !== undefined)
  }

  /** The conversations named, each once; one that is unknown refuses all. */
  #named(ids: readonly string[]): Promise<ConversationState[]> {
    return Promise.all([...new Set(ids)].map(id => this.#deps.host.call('agent.conversation', { id })))
  }

  async #put(ids: readonly string[]): Promise<Moved & { failed?: Failure[] }> {
    const { done, failures } = await this.#each(ids, id => this.#away(id))
    return { ...(await this.#moved(done)), ...failures }
  }

  async #away(id: string): Promise<void> {
    const { host, notes } = this.#deps
    await host.call('agent.archive', { id })
    const {
      conversation: { branch, lastRun },
    } = await host.call('agent.conversation', { id })
    if (branch !== undefined && lastRun !== undefined) await notes.noteCommitted(id, lastRun)
    host.emit('agent.archived', { agentId: id })
  }

  async #moved(ids: readonly string[]): Promise<Moved> {
    const { roster } = this.#deps
    const { rev } = await roster.read()
    return { moved: await roster.cards(await this.#named(ids)), rev }
  }

  /** Does something to one after another; those it fails for are named. */
  async #each(
    ids: readonly string[],
    work: (id: string) => Promise<void>,
  ): Promise<{ done: string[]; failures: { failed?: Failure[] } }> {
    const done: string[] = []
    const failed: Failure[] = []
    for (const id of ids) {
      if (this.#deps.host.signal.aborted) break
      try {
        await work(id)
        done.push(id)
      } catch (error) {
        const { message, reason } = Refusal.from(error)
        if (reason === 'failed')
          this.#deps.host.log.error('a conversation could not be moved', { conversation: id, error: String(error) })
        failed.push({ id, message })
      }
    }
    return { done, failures: failed.length > 0 ? { failed } : {} }
  }
}
