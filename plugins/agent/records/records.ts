import { basename } from 'node:path'
import { refuse, type Caller, type Input, type Log } from '../../../sdk/index.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { accessToConversation } from '../../../sdk/node/access/conversation-reach.js'
import type { TranscriptMessage } from '../contract.js'
import { assertReads, mayReach } from '../conversations/access.js'
import type { ViewOf } from '../conversations/access-view.js'
import { firstLineOf } from '../first-line.js'
import { withCheckpoints, type Anchors } from '../conversations/anchors.js'
import type { Conversations, RecordedConversation } from '../conversations/conversations.js'
import type { RecordFiles } from '../conversations/record-files.js'
import type { Search } from '../conversations/search.js'
import type { Transcripts } from '../conversations/transcripts.js'
import { nativeSessionOf, type NativeSessions } from '../providers/native/session.js'
import type { SessionRecordCalls, RecordPage, RecordPlace, PastSession, SentTexts, SessionRow } from './contract.js'
import { sentInRecord, sentInSession } from './sent-texts.js'

/** The dependencies of records. */
export interface RecordsDeps {
  readonly conversations: Conversations
  readonly transcripts: Transcripts
  readonly files: Pick<RecordFiles, 'remove'>
  readonly anchors: Pick<Anchors, 'byRun'>
  readonly search: Pick<Search, 'find' | 'forget'>
  readonly decisions: KeyedMutex
  readonly look: ViewOf
  readonly log: Pick<Log, 'error'>
  readonly sessions: Pick<NativeSessions, 'read'>
  /** Whether this machine runs the models of a provider. */
  readonly local: (provider: string) => Promise<boolean>
  /** Deletes what a discarded conversation has besides its record. */
  readonly clear: (id: string) => Promise<void>
}

const UNTITLED = 'New chat'
const TITLE = 80

/** Everything that was ever recorded, on the board or off it. */
export class Records {
  readonly #deps: RecordsDeps

  constructor(deps: RecordsDeps) {
    this.#deps = deps
  }

  /** A page of what the caller may read. */
  async page(asked: Input<SessionRecordCalls, 'agent.records'>, caller: Caller): Promise<RecordPage> {
    const { query, caseSensitive = false, state, limit, before } = asked
    const readable = await this.#readable(caller)
    const listed = readable
      .filter(each => state === undefined || each.state === state)
      .sort(newestFirst)
      .filter(each => before === undefined || newestFirst(before, each) < 0)
    const found =
      query === undefined ? undefined : await this.#deps.search.find(query, caseSensitive, listed, limit + 1)
    const snippets = new Map(found?.matches.map(({ id, snippet }) => [id, snippet]))
    const rest = found ? listed.filter(({ id }) => snippets.has(id)) : listed
    const shown = rest.slice(0, limit)
    const last = shown.at(-1)
    const sessions = await Promise.all(
      shown.map(async each => {
        const snippet = snippets.get(each.id)
        return { ...(await this.#row(each)), ...(snippet && { snippet }) }
      }),
    )
    return {
      sessions,
      ...(last && rest.length > shown.length && { next: { updatedAt: last.updatedAt, id: last.id } }),
      indexing: found?.indexing ?? false,
    }
  }

  /** One record in full, or a part of it. */
  async get(id: string, caller: Caller, limit?: number, before?: number): Promise<PastSession> {
    const { anchors, transcripts } = this.#deps
    const recorded = await this.#visible(id, caller)
    assertReads(caller, recorded)
    const { messages, total } = await transcripts.page(id, limit, before)
    return {
      ...(await this.#row(recorded)),
      total,
      messages: withCheckpoints(messages, await anchors.byRun(id)),
    }
  }

  /** What a conversation sent to its model. */
  async sent(id: string, caller: Caller): Promise<SentTexts> {
    const { conversations, local, sessions, transcripts } = this.#deps
    const recorded = await this.#visible(id, caller)
    assertReads(caller, recorded)
    const { provider } = recorded
    const account = conversations.find(id)?.account
    const entries = await sessions.read(nativeSessionOf(id))
    return {
      provider,
      ...(account?.provider === provider && { account: account.id }),
      local: await local(provider),
      ...(entries ? sentInSession(entries) : sentInRecord((await transcripts.page(id)).messages)),
    }
  }

  /** Deletes the record of a discarded conversation, and returns its title. */
  async forget(id: string, caller: Caller): Promise<string> {
    const { conversations, decisions } = this.#deps
    await this.#visible(id, caller)
    return decisions.with(id, async () => {
      const recorded = await this.#visible(id, caller)
      if (recorded.state === 'live') refuse('conflict', `${id} is on the board: discard it, or archive and purge it`)
      if (recorded.state === 'archived')
        refuse('conflict', `${id} is archived: purge it with POST /agents/purge, or unarchive and discard it`)
      const { title } = await this.#row(recorded)
      await conversations.forgetRecord(id, () => this.#remove(id))
      return title
    })
  }

  /** Completes what the last daemon had begun. */
  async recover(): Promise<void> {
    const { conversations, log } = this.#deps
    for (const id of conversations.forgetting)
      await conversations
        .forgetRecord(id, () => this.#remove(id))
        .catch(error => log.error('deleting a record failed', { conversation: id, error: String(error) }))
  }

  async #remove(id: string): Promise<void> {
    const { clear, files, search } = this.#deps
    await files.remove(id)
    await clear(id)
    search.forget(id)
  }

  async #readable(caller: Caller): Promise<RecordedConversation[]> {
    const seen = await this.#deps.look(caller)
    const own = this.#deps.conversations.recorded.filter(each => mayReach(caller, each))
    if (!seen.reach) return own
    const access = await Promise.all(own.map(each => accessToConversation(seen, each)))
    return own.filter((_, at) => access[at] !== undefined)
  }

  async #visible(id: string, caller: Caller): Promise<RecordedConversation> {
    const recorded = this.#deps.conversations.findRecorded(id)
    const visible = recorded && (await accessToConversation(await this.#deps.look(caller), recorded)) !== undefined
    return visible ? recorded : refuse('not-found', `there is no record ${JSON.stringify(id.slice(0, 64))}`)
  }

  async #row(recorded: RecordedConversation): Promise<SessionRow> {
    const { id, updatedAt, createdAt: startedAt, state, provider, harness, model, openedBy } = recorded
    const { transcripts } = this.#deps
    const title = recorded.title || titleOf((await transcripts.page(id, 1, 1)).messages[0])
    return {
      ...{ id, title, updatedAt, startedAt, state, provider, harness },
      ...(model !== undefined && { model }),
      total: await transcripts.count(id),
      openedBy,
    }
  }
}

/** The title of an untitled conversation, from its first row. */
const titleOf = (first: TranscriptMessage | undefined): string =>
  firstLineOf(first?.text ?? '', TITLE) || first?.attachments?.map(path => basename(path)).join(', ') || UNTITLED

const newestFirst = (one: RecordPlace, other: RecordPlace): number =>
  other.updatedAt - one.updatedAt || (one.id < other.id ? -1 : one.id > other.id ? 1 : 0)
