import { refuse } from '../../../sdk/index.js'
import type { Caller, Journals, Log } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import type { AccessView } from '../../../sdk/node/access/access-view.js'
import { mayReach } from './access.js'
import type { Anchors } from './anchors.js'
import type { CopyStart, ForkSource, TranscriptMessage } from '../contract.js'
import type { Conversations } from './conversations.js'
import type { Copies } from '../copies/copies.js'
import { commitIn } from './pins.js'
import type { Transcripts } from './transcripts.js'

/** The dependencies of forks. */
export interface ForkDeps {
  readonly conversations: Conversations
  readonly transcripts: Transcripts
  readonly anchors: Anchors
  readonly copies: Pick<Copies, 'repositories' | 'resolve'>
  readonly journal: Pick<Journals, 'read' | 'rewrite' | 'remove' | 'list'>
  readonly log: Log
  /** Called before the fork's first turn, so that it knows the tokens of what it begins with. */
  readonly copied: (from: string, fork: string) => Promise<void>
}

/**
 * The beginning of a conversation: the starting commits of its copy, and whether all its input came from people who may
 * land.
 */
export interface Beginning {
  readonly starts: CopyStart[]
  readonly lands: boolean
  /** The other conversation had heard others, or is gone. */
  readonly heardOthers?: boolean
}

const forkOf = (conversationId: string) => `forks/${conversationId}`

/** Starts conversations from the messages of another one. */
export class Forks {
  readonly #deps: ForkDeps

  constructor(deps: ForkDeps) {
    this.#deps = deps
  }

  /** Refuses a source that the caller may not see; returns the fork's beginning. */
  async check(
    { conversationId, keep, files }: ForkSource,
    fork: string,
    caller: Caller,
    seen: AccessView,
  ): Promise<Beginning> {
    const { conversations, transcripts, anchors, copies } = this.#deps
    const live = conversations.find(conversationId)
    const source = live ?? conversations.gone(conversationId)
    if (!source || !mayReach(caller, source) || (seen.reach && !(live && (await accessToConversation(seen, live)))))
      return refuse('not-found', `forkOf: there is no conversation ${JSON.stringify(conversationId)} to fork`)
    if (await transcripts.count(fork))
      refuse('conflict', 'forkOf: this conversation has messages already; expected a new conversationId')
    const total = await transcripts.count(conversationId)
    if (keep > total)
      refuse('not-found', `forkOf: expected to keep at most the ${total} rows of the record, found ${keep}`)
    const lands = await transcripts.lands(conversationId, keep)
    const heardOthers = live?.heardOthers ?? !live
    if (files === 'now') {
      if (!live?.branch) return { starts: [], lands, heardOthers }
      // Its last turn committed all of its work.
      const now = await copies.resolve(live.id, live.repos)
      return { starts: now.flatMap(({ repo, tip, base }) => (tip ? [{ repo, tip, base }] : [])), lands, heardOthers }
    }
    const row = await transcripts.row(conversationId, keep)
    const found = await anchors.before(conversationId, keep, row)
    const anchor =
      (found?.shared ? undefined : found)
      ?? refuse(
        'conflict',
        `forkOf: files "then" exist only for user messages of a private copy, found none at ${keep}: `
          + 'name the index of another message, or files "now"',
      )
    const repositories = new Map((await copies.repositories()).map(({ repo, dir }) => [repo, dir]))
    for (const { repo, tip } of anchor.repos) {
      const dir = repositories.get(repo)
      if (!dir || (await commitIn(dir, tip)) === undefined)
        refuse('conflict', `forkOf: the files "then" are gone: commit ${tip.slice(0, 12)} of ${repo} does not exist`)
    }
    return { starts: anchor.repos.map(({ repo, tip, base }) => ({ repo, tip, base })), lands, heardOthers }
  }

  /** Stores the rows that the fork begins with; they have no effect until its message is accepted. */
  async prepare({ conversationId, keep }: ForkSource, fork: string): Promise<void> {
    const { transcripts, journal } = this.#deps
    const { messages } = await transcripts.page(conversationId, keep, keep)
    await journal.rewrite(forkOf(fork), messages)
    failpoint('agent.fork.prepared')
  }

  /** Writes the rows as the beginning of the fork's record; on failure the fork continues without them. */
  async begin(fork: string): Promise<void> {
    try {
      await this.#begin(fork)
    } catch (error) {
      this.#deps.log.error('writing the beginning of a fork failed', { conversation: fork, error: String(error) })
    }
  }

  async #begin(fork: string): Promise<void> {
    const { conversations, transcripts, journal } = this.#deps
    const rows = await journal.read<TranscriptMessage>(forkOf(fork))
    if (rows.length && !(await transcripts.count(fork))) {
      const kept = rows.map(({ index: _place, checkpointId: _state, ...row }) => row)
      await transcripts.add(fork, forkOf(fork), kept, conversations.find(fork)?.landsAlone)
    }
    const source = conversations.find(fork)?.forkedFrom?.conversationId
    if (source !== undefined) await this.#deps.copied(source, fork)
    failpoint('agent.fork.begun')
    await journal.remove(forkOf(fork))
  }

  /** Recovers forks after a crash: begins accepted ones and deletes the others. */
  async recover(): Promise<void> {
    const { conversations, journal } = this.#deps
    for (const name of await journal.list(forkOf(''))) {
      const fork = name.slice(forkOf('').length)
      if (conversations.find(fork)?.forkedFrom) await this.begin(fork)
      else await journal.remove(name)
    }
  }
}
