import type { Log, ReachFolder, Store } from '../../../sdk/index.js'
import { refuseUnknown } from '../../../sdk/node/access/conversation-reach.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { LazyDocuments } from '../../../sdk/node/files/lazy-documents.js'
import type { Conversation } from '../contract.js'
import { ignored, warned } from '../../../sdk/index.js'

/** The remaining record of a conversation removed from the board: who may restore it. */
interface Gone {
  readonly openedByToken?: string
  /** Its messages stay visible to callers who reach all of these; absent: the whole workspace. */
  readonly folders?: readonly ReachFolder[]
  readonly at: number
  /** Set if its record stays. */
  readonly record?: RecordTraits
  /** Its record is being deleted; the next start completes that. */
  readonly forgetting?: true
}

/** The fields of a conversation that stay with its record. */
export interface RecordTraits extends Pick<
  Conversation,
  'title' | 'provider' | 'harness' | 'model' | 'startIn' | 'openedBy' | 'createdAt' | 'updatedAt'
> {}

/** A conversation that has a record, on the board or not. */
export interface RecordedConversation extends RecordTraits, Pick<Conversation, 'id' | 'openedByToken'> {
  readonly folders?: readonly ReachFolder[]
  readonly state: 'live' | 'archived' | 'discarded'
}

/** A conversation being removed from the board, with `purged` including its record. */
export interface Leaving {
  readonly conversation: Conversation
  readonly purged: boolean
}

const traitsOf = (conversation: Conversation): RecordTraits => {
  const { title, provider, harness, model, startIn, openedBy, createdAt, updatedAt } = conversation
  return {
    ...(title !== undefined && { title }),
    ...(model !== undefined && { model }),
    ...(startIn !== undefined && { startIn }),
    ...{ provider, harness, openedBy, createdAt, updatedAt },
  }
}

const onBoard = (conversation: Conversation): RecordedConversation => {
  const { id, openedByToken, folders, archivedAt } = conversation
  return {
    id,
    ...traitsOf(conversation),
    ...(openedByToken && { openedByToken }),
    ...(folders && { folders }),
    state: archivedAt === undefined ? 'live' : 'archived',
  }
}

const discardedOf = (id: string, { record, openedByToken, folders }: Gone): RecordedConversation | undefined =>
  record && {
    id,
    ...record,
    ...(openedByToken && { openedByToken }),
    ...(folders && { folders }),
    state: 'discarded',
  }

const LIVE = 'c/'
const GONE = 'gone/'
const LEAVING = 'leaving/'

/** Every conversation on the board: kept in memory and written to the store. */
export class Conversations {
  readonly #store: Store
  readonly #log: Log
  readonly #changed: (id: string) => void
  readonly #live = new LazyDocuments<Conversation>()
  readonly #gone = new LazyDocuments<Gone>()
  readonly #leaving = new Map<string, Leaving>()
  /** The last write of each conversation, and the writes that have not started. */
  readonly #writing = new Map<string, Promise<void>>()
  readonly #queued = new Map<string, Promise<void>>()
  readonly #unsaved = new Set<string>()

  /** @param changed Called with the id of each changed conversation. */
  constructor(store: Store, log: Log, changed: (id: string) => void = () => {}) {
    this.#store = store
    this.#log = log
    this.#changed = changed
  }

  async load(): Promise<void> {
    const [live, gone, leaving] = await Promise.all([
      this.#store.texts(LIVE),
      this.#store.texts(GONE),
      this.#store.all<Leaving>(LEAVING),
    ])
    this.#live.load(live, LIVE)
    this.#gone.load(gone, GONE)
    for (const [key, value] of leaving) this.#leaving.set(key.slice(LEAVING.length), value)
    for (const id of this.#leaving.keys()) this.#live.delete(id)
  }

  find(id: string): Conversation | undefined {
    return this.#live.get(id)
  }

  /** A conversation by id; refuses one that is not on the board. */
  get(id: string): Conversation {
    return this.#live.get(id) ?? refuseUnknown(id)
  }

  /** The remaining record of a conversation removed from the board. */
  gone(id: string): Gone | undefined {
    return this.#gone.get(id)
  }

  get all(): readonly Conversation[] {
    return [...this.#live.values()]
  }

  /** Whether any conversation has a record. */
  get hasRecords(): boolean {
    return this.#live.size > 0 || [...this.#gone.withField('record')].some(([, { record }]) => record)
  }

  /** All conversations with a record: those on the board, and discarded ones. */
  get recorded(): readonly RecordedConversation[] {
    const discarded = [...this.#gone].flatMap(([id, gone]) => discardedOf(id, gone) ?? [])
    return [...this.all.map(onBoard), ...discarded]
  }

  /** A conversation that has a record. */
  findRecorded(id: string): RecordedConversation | undefined {
    const [live, gone] = [this.#live.get(id), this.#gone.get(id)]
    return live ? onBoard(live) : gone && discardedOf(id, gone)
  }

  /** The conversations whose record is being deleted. */
  get forgetting(): readonly string[] {
    return [...this.#gone.withField('forgetting')].flatMap(([id, { forgetting }]) => (forgetting ? [id] : []))
  }

  /** Deletes the record of a discarded conversation, and runs `work` to delete its files. */
  async forgetRecord(id: string, work: () => Promise<void>): Promise<void> {
    const { record: _record, ...gone } = this.#gone.get(id) ?? refuseUnknown(id)
    const forgetting: Gone = { ...gone, forgetting: true }
    await this.#store.set(GONE + id, forgetting)
    this.#gone.set(id, forgetting)
    failpoint('agent.forget.meant')
    await work()
    failpoint('agent.forget.removed')
    const { forgetting: _forgetting, ...left } = forgetting
    await this.#store.set(GONE + id, left)
    this.#gone.set(id, left)
  }

  /** Puts a conversation on the board; the caller has already stored it. */
  open(conversation: Conversation): void {
    this.#live.set(conversation.id, conversation)
    this.#changed(conversation.id)
    if (this.#gone.delete(conversation.id))
      void this.#store.delete(GONE + conversation.id).catch(warned({ log: this.#log }, 'storing a conversation'))
    void this.#save(conversation.id).catch(warned({ log: this.#log }, 'storing a conversation'))
  }

  /** Changes a conversation; readers see the change at once, and it is stored when this resolves. */
  update(id: string, patch: Partial<Conversation>): Promise<void> {
    const before = this.#live.get(id)
    if (!before) return Promise.resolve()
    const after = { ...before, ...patch }
    for (const [key, value] of Object.entries(patch)) if (value === undefined) delete after[key as keyof Conversation]
    this.#live.set(id, after)
    this.#changed(id)
    return this.#save(id)
  }

  /** Changes a conversation; undoes the change if it cannot be stored. */
  async change(id: string, patch: Partial<Conversation>): Promise<void> {
    const before = this.#live.get(id)
    try {
      await this.update(id, patch)
    } catch (error) {
      const undone = Object.fromEntries(Object.keys(patch).map(key => [key, before?.[key as keyof Conversation]]))
      void this.update(id, undone).catch(ignored('the caller gets the first failure'))
      throw error
    }
  }

  /** The conversations being removed from the board. */
  get leaving(): readonly Leaving[] {
    return [...this.#leaving.values()]
  }

  /** Whether a conversation is on the board or being removed. */
  known(id: string): boolean {
    return this.#live.has(id) || this.#leaving.has(id)
  }

  /** Removes a conversation from the board; its files are deleted after that. */
  async leave(leaving: Leaving): Promise<void> {
    const { id } = leaving.conversation
    await this.#store.set(LEAVING + id, leaving)
    this.#leaving.set(id, leaving)
    this.#live.delete(id)
    this.#changed(id)
  }

  /** Restores a conversation that could not be removed. */
  async stay({ conversation }: Leaving): Promise<void> {
    const { id } = conversation
    this.#leaving.delete(id)
    this.#live.set(id, conversation)
    this.#changed(id)
    await this.#store.delete(LEAVING + id)
  }

  /** Completes the removal of a conversation, or only of its record. */
  async remove({ conversation, purged }: Leaving): Promise<void> {
    const { id, openedByToken, folders } = conversation
    const gone: Gone = {
      at: Date.now(),
      ...(openedByToken && { openedByToken }),
      ...(folders && { folders }),
      ...(!purged && { record: traitsOf(conversation) }),
    }
    this.#live.delete(id)
    this.#gone.set(id, gone)
    await this.#writing.get(id)?.catch(ignored('the step before told its own caller'))
    await this.#store.set(GONE + id, gone)
    failpoint('agent.erase.noted')
    await this.#store.delete(LIVE + id)
    // Deleted last: while it exists, the next start repeats the removal.
    await this.#store.delete(LEAVING + id)
    this.#leaving.delete(id)
  }

  /** Resolves when all changes so far are stored; throws if one could not be written. */
  async stored(): Promise<void> {
    await Promise.allSettled(this.#writing.values())
    await Promise.all([...this.#unsaved].map(id => this.#save(id)))
  }

  /** One write at a time per conversation; later changes are combined in the next write. */
  #save(id: string): Promise<void> {
    const queued = this.#queued.get(id)
    if (queued) return queued
    const write = async () => {
      this.#queued.delete(id)
      const conversation = this.#live.get(id)
      if (!conversation) return
      this.#unsaved.add(id)
      await this.#store.set(LIVE + id, conversation)
      this.#unsaved.delete(id)
    }
    const mine = (this.#writing.get(id) ?? Promise.resolve()).then(write, write)
    this.#queued.set(id, mine)
    this.#writing.set(id, mine)
    mine
      .catch(error => this.#log.error('storing a conversation failed', { conversation: id, error: String(error) }))
      .finally(() => {
        if (this.#writing.get(id) === mine) this.#writing.delete(id)
      })
    return mine
  }
}
