import { createHash } from 'node:crypto'
import { refuse, Refusal, type Context, type Host } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { record } from '../../sdk/node/record/record.js'
import type { ApprovalStatus } from './contract.js'
import { UnknownOutcome, type CarriedOut, type Executor, type FindExecutor } from './executors/executor.js'
import type { MediaCopies } from './media.js'
import { denialOf } from './second-decision.js'
import { subjectOfItem, itemTitle, type OutcomeMessage, type StoredApproval } from './stored-approval.js'

const KEPT_MS = 90 * 24 * 3_600_000
const POST_WAIT_MS = 60_000
const MOST_AHEAD_MS = 366 * 24 * 3_600_000
const LONGEST_TIMER = 2 ** 31 - 1
const AGAIN_MS = 30_000
const MOST_ATTEMPTS = 20
const UNKNOWN = 'it may have gone out: look before you try again'

type QueueHost = Pick<Host, 'store' | 'log' | 'emit' | 'call' | 'serves' | 'signal'>

/** What the queue stands on. */
export interface QueueDeps {
  readonly host: QueueHost
  readonly find: FindExecutor
  readonly copies: MediaCopies
  /** Starts a turn that tells an agent the outcome; a repeated message starts none. */
  readonly say: (message: OutcomeMessage & { readonly conversationId: string }) => Promise<unknown>
  /** Ends the turn that carried something out when the last daemon ended. */
  readonly halt: (conversationId: string) => Promise<void>
  readonly published: (item: StoredApproval) => void
  /** Called when an item was filed for the first time. */
  readonly filed: (item: StoredApproval) => void
}

/** The posts and actions of the last 90 days: each is a document, and in memory. */
export class ApprovalQueue {
  readonly #deps: QueueDeps
  readonly #all = new Map<string, StoredApproval>()
  readonly #items = new KeyedMutex()
  readonly #lanes = new KeyedMutex()
  /** The items that are due and wait in their lane, or are carried out. */
  readonly #begun = new Set<string>()
  /** What was being sent when the last daemon ended. */
  readonly #interrupted = new Set<string>()
  #timer: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined
  #last = 0

  constructor(deps: QueueDeps) {
    this.#deps = deps
  }

  /** Reads the queue. */
  async load(): Promise<void> {
    for (const [id, item] of await this.#deps.host.store.all<StoredApproval>()) {
      this.#all.set(id, item)
      if (item.status === 'sending') this.#interrupted.add(id)
    }
    this.#last = Math.max(0, ...[...this.#all.values()].map(({ createdAt }) => createdAt))
    await this.sweep()
    await this.#deps.copies.keepOnly(new Set(this.all.flatMap(({ folder }) => folder ?? [])))
  }

  /** Removes items that were settled 90 days ago. */
  async sweep(now = Date.now()): Promise<void> {
    for (const { id, status, updatedAt } of this.all)
      if (['done', 'declined', 'failed'].includes(status) && updatedAt < now - KEPT_MS) await this.#drop(id)
  }

  /** Newest first. */
  get all(): StoredApproval[] {
    return [...this.#all.values()].sort((one, other) => other.createdAt - one.createdAt)
  }

  find(id: string): StoredApproval | undefined {
    return this.#all.get(id)
  }

  get(id: string): StoredApproval {
    return this.#all.get(id) ?? refuse('not-found', `there is no approval ${JSON.stringify(id.slice(0, 64))}`)
  }

  /** How many are proposed, by conversation; those of none are under an empty id. */
  get counts(): { [conversationId: string]: number } {
    const proposed: { [conversationId: string]: number } = {}
    for (const { status, conversationId = '' } of this.#all.values())
      if (status === 'proposed') proposed[conversationId] = (proposed[conversationId] ?? 0) + 1
    return proposed
  }

  /** Files an item, or puts its new content in place of the old one. */
  async propose(
    content: Omit<StoredApproval, 'status' | 'createdAt' | 'updatedAt' | 'attempts' | 'tries'>,
    assertOwn: (before: StoredApproval) => void,
    context?: Context,
  ): Promise<StoredApproval> {
    return this.#items.with(content.id, async () => {
      const before = this.#all.get(content.id)
      if (before) {
        assertOwn(before)
        this.#assertRests(before, 'it cannot be changed')
      }
      // Two items never have the same time, which pages of the list end with.
      this.#last = Math.max(Date.now(), this.#last + 1)
      const { createdAt = this.#last, attempts = [], tries = 0 } = before ?? {}
      const item: StoredApproval = {
        ...content,
        ...{ status: 'proposed', createdAt, updatedAt: Date.now(), attempts, tries },
      }
      await this.#put(item)
      if (before?.folder !== item.folder) await this.#deps.copies.remove(before?.folder)
      await this.#note('proposed', item, context)
      if (!before) this.#deps.filed(item)
      return item
    })
  }

  /** Says yes to the content with a digest. */
  async approve(
    id: string,
    { digest, scheduledAt, now = false }: { digest: string; scheduledAt?: number; now?: boolean },
    context: Context,
  ): Promise<StoredApproval> {
    return this.#items.with(id, async () => {
      const item = this.get(id)
      this.#assertRests(item, 'there is nothing left to approve')
      if (item.status === 'declined') refuse('conflict', `${id} is declined: propose it again`)
      if (digest !== item.digest) refuse('conflict', 'the content has changed since: read it again')
      const at = Date.now()
      if (item.status === 'approved') {
        if (!now || item.sendAt! <= at) return item
        const hastened = await this.#set(item, { sendAt: at })
        this.#awaitDue()
        return hastened
      }
      const planned = scheduledAt ?? item.scheduledAt
      if (planned !== undefined && planned > at + MOST_AHEAD_MS)
        refuse('unprocessable', 'scheduledAt: expected a time within a year, found a later one')
      const found = await this.#deps.find(item)
      if ('problem' in found) refuse('dependency', found.problem)
      const earliest = item.kind === 'post' && planned === undefined ? at + POST_WAIT_MS : Math.max(at, planned ?? at)
      const approved = await this.#set(item, {
        ...{ status: 'approved', approvedBy: context.caller.actor, approvedAt: at, sendAt: now ? at : earliest },
        ...(scheduledAt !== undefined && { scheduledAt }),
      })
      await this.#note('approved', approved, context)
      failpoint('approvals.approved')
      this.#awaitDue()
      return approved
    })
  }

  /** Takes a yes back. */
  async recall(id: string, context: Context): Promise<StoredApproval> {
    return this.#items.with(id, async () => {
      const item = this.get(id)
      if (item.status !== 'approved') refuse('conflict', `${id} is not approved, it is ${item.status}`)
      const { approvedBy: _by, approvedAt: _at, sendAt: _when, ...rest } = item
      const recalled = await this.#set(rest, { status: 'proposed' })
      await this.#note('recalled', recalled, context)
      return recalled
    })
  }

  /** Says no. */
  async decline(id: string, reason: string | undefined, context: Context): Promise<StoredApproval> {
    return this.#items.with(id, async () => {
      const item = this.get(id)
      if (item.status !== 'proposed' && item.status !== 'failed')
        refuse('conflict', `${id} is ${item.status}${item.status === 'approved' ? ': recall it first' : ''}`)
      const declined = await this.#set(item, {
        ...{ status: 'declined', declinedBy: context.caller.actor, ...(reason && { reason }) },
        ...toldAs(item, 'declined', `was declined${reason ? `: ${reason}` : ' without a reason'}`),
      })
      await this.#note('declined', declined, context)
      void this.#tell(id)
      return declined
    })
  }

  async remove(id: string, context: Context): Promise<void> {
    await this.#items.with(id, async () => {
      const item = this.get(id)
      if (item.status === 'sending') refuse('conflict', `${id} is being sent`)
      await this.#drop(id)
      await this.#note('removed', item, context)
    })
  }

  /**
   * Goes on after a start: carries out what is due, and tells what was not told. What was being sent when the daemon
   * ended is never sent again by itself.
   */
  async resume(): Promise<void> {
    for (const id of this.#interrupted) {
      const { conversationId } = this.get(id).attempts.at(-1) ?? {}
      // Its outcome is unknown either way, and other items wait.
      if (conversationId !== undefined)
        await this.#deps.halt(conversationId).catch((error: unknown) => {
          this.#deps.host.log.warn('stopping a conversation that posts failed', { id, error: String(error) })
        })
      await this.#ended(this.get(id), { outcome: 'unknown', error: UNKNOWN })
    }
    this.#interrupted.clear()
    this.#awaitDue()
    for (const { id, telling } of this.all) if (telling) await this.#tell(id)
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#again)
  }

  #assertRests({ id, status }: StoredApproval, so: string): void {
    if (status === 'sending') refuse('conflict', `${id} is being sent: ${so}`)
    if (status === 'done') refuse('conflict', `${id} is done: ${so}`)
  }

  /** Begins everything that is due, and waits for the next. */
  #awaitDue(): void {
    clearTimeout(this.#timer)
    if (this.#deps.host.signal.aborted) return
    let next = Infinity
    for (const { id, status, sendAt = Infinity } of this.all.toReversed()) {
      if (status !== 'approved' || this.#begun.has(id)) continue
      if (sendAt <= Date.now()) this.#begin(id)
      else next = Math.min(next, sendAt)
    }
    if (next === Infinity) return
    const wait = Math.min(Math.max(0, next - Date.now()), LONGEST_TIMER)
    this.#timer = setTimeout(() => this.#awaitDue(), wait).unref()
  }

  #begin(id: string): void {
    const { host } = this.#deps
    this.#begun.add(id)
    const work = async () => {
      const found = await this.#deps.find(this.get(id))
      await this.#lanes.with('problem' in found ? id : found.lane, () => this.#carryOut(id), host.signal)
    }
    const rests = () => {
      this.#begun.delete(id)
      this.#awaitDue()
    }
    void work().then(rests, error => {
      if (host.signal.aborted) return
      host.log.error('carrying out an approval failed', { id, error: String(error) })
      // A full disk is full at once again.
      setTimeout(rests, AGAIN_MS).unref()
    })
  }

  async #carryOut(id: string): Promise<void> {
    const { host } = this.#deps
    const started = await this.#items.with(id, async () => {
      const item = this.#all.get(id)
      if (item?.status !== 'approved' || item.sendAt! > Date.now()) return undefined
      return this.#started(item)
    })
    if (!started) return
    const { item, executor } = started
    const end = await executor.carryOut(keyOf(item), host.signal).then(
      answer => ({ outcome: 'done' as const, ...answer }),
      (error: unknown) =>
        error instanceof Refusal
          ? { outcome: 'failed' as const, error: error.message.slice(0, 1_000) }
          : { outcome: 'unknown' as const, error: `${unknownWords(error)}${UNKNOWN}` },
    )
    // It stays as being sent: after the next start its outcome is unknown.
    if (host.signal.aborted && end.outcome !== 'done') return
    failpoint('approvals.answered')
    await this.#ended(item, end)
  }

  /** Stores that an item is being sent, before anything is sent; undefined: it has failed already. */
  async #started(item: StoredApproval): Promise<{ item: StoredApproval; executor: Executor } | undefined> {
    const executor = await this.#deps.find(item)
    const tries = item.tries + 1
    const turn = 'problem' in executor ? undefined : executor.turn?.(keyOf({ ...item, tries }))
    const attempt = { at: Date.now(), via: turn ? ('turn' as const) : ('executor' as const), ...turn }
    const tried: StoredApproval = {
      ...item,
      ...{ status: 'sending', tries, attempts: [...item.attempts, attempt].slice(-MOST_ATTEMPTS) },
    }
    const problem = 'problem' in executor ? executor.problem : await denialOf(this.#deps.host, item, executor.subjects)
    if ('problem' in executor || problem !== undefined) {
      await this.#ended(tried, { outcome: 'failed', ...(problem !== undefined && { error: problem }) })
      return undefined
    }
    const stored = await this.#set(tried, {})
    failpoint('approvals.sending')
    return { item: stored, executor }
  }

  /** Stores how an attempt ended, and tells the agent. */
  async #ended(
    item: StoredApproval,
    { outcome, error, url, result }: CarriedOut & { outcome: 'done' | 'failed' | 'unknown'; error?: string },
  ): Promise<void> {
    const attempt = {
      ...item.attempts.at(-1)!,
      ...{ endedAt: Date.now(), outcome, ...(error !== undefined && { error }), ...(url !== undefined && { url }) },
    }
    const status = outcome === 'done' ? 'done' : 'failed'
    const words = outcome === 'done' ? `was carried out${result ? `: ${result}` : ''}` : `failed: ${error}`
    const ended = await this.#set(item, {
      ...{ status, attempts: [...item.attempts.slice(0, -1), attempt] },
      ...(outcome === 'done' && { ...(url !== undefined && { url }), ...(result !== undefined && { result }) }),
      ...toldAs(item, `${item.tries}-${status}`, words),
    })
    failpoint('approvals.ended')
    await this.#note(status, ended)
    void this.#tell(item.id)
  }

  /** Says an outcome in the conversation of an item. */
  async #tell(id: string): Promise<void> {
    const { telling, conversationId } = this.#all.get(id) ?? {}
    if (!telling || conversationId === undefined) return
    const { host, say } = this.#deps
    try {
      await say({ ...telling, conversationId })
    } catch (error) {
      if (host.signal.aborted) return
      if (Refusal.from(error).reason !== 'not-found') {
        host.log.warn('an agent does not know an outcome yet', { id, error: String(error) })
        this.#again ??= setTimeout(() => {
          this.#again = undefined
          void this.resume()
        }, AGAIN_MS).unref()
        return
      }
    }
    await this.#items.with(id, async () => {
      const item = this.#all.get(id)
      if (item?.telling?.messageId !== telling.messageId) return
      const { telling: _told, ...rest } = item
      await this.#store(rest)
    })
  }

  async #set(item: StoredApproval, change: Partial<StoredApproval>): Promise<StoredApproval> {
    const changed = { ...item, ...change, updatedAt: Date.now() }
    await this.#put(changed)
    return changed
  }

  async #put(item: StoredApproval): Promise<void> {
    await this.#store(item)
    this.#changed(item)
  }

  async #store(item: StoredApproval): Promise<void> {
    await this.#deps.host.store.set(item.id, item)
    this.#all.set(item.id, item)
  }

  async #drop(id: string): Promise<void> {
    const item = this.get(id)
    await this.#deps.host.store.delete(id)
    this.#all.delete(id)
    await this.#deps.copies.remove(item.folder)
    this.#changed(item)
  }

  #changed(item: StoredApproval): void {
    const { id, conversationId = '', status } = item
    const proposed = this.counts[conversationId] ?? 0
    this.#deps.host.emit('approval.changed', { id, conversationId, title: itemTitle(item), status, proposed })
    this.#deps.published(item)
  }

  /** Records a change, and what really left. */
  async #note(what: ApprovalStatus | 'recalled' | 'removed', item: StoredApproval, context?: Context): Promise<void> {
    const { host } = this.#deps
    const { id, kind, digest, conversationId, url, approvedBy, proposedBy } = item
    const actor = what === 'proposed' ? proposedBy : approvedBy
    const about = {
      audience: 'viewer',
      ...(conversationId !== undefined && { conversationId }),
      ...(!context && actor !== undefined && { actor }),
      extra: { id, kind, subject: subjectOfItem(item), digest, ...(url !== undefined && { url }) },
    } as const
    await record(host, { ...about, type: `approval.${what}` }, context)
    if (what === 'done') await record(host, { ...about, type: subjectOfItem(item), direction: 'out' })
  }
}

/** The idempotency key of a try. */
const keyOf = ({ id, tries }: Pick<StoredApproval, 'id' | 'tries'>): string => `${id}-${tries}`

/** What is known of an attempt that may have gone out; the message of a bug is not for people. */
const unknownWords = (error: unknown): string =>
  error instanceof UnknownOutcome ? `${error.message.slice(0, 900)}; ` : ''

/** The message of an outcome, where the agent is told. */
const toldAs = (item: StoredApproval, outcome: string, words: string): Partial<StoredApproval> => {
  const { id, conversationId, kind, tellAgent = kind === 'action' } = item
  if (!tellAgent || conversationId === undefined) return {}
  const messageId = `approval-${id}-${outcome}`
  const run = `r-${createHash('sha256').update(messageId).digest('hex').slice(0, 20)}`
  return { telling: { messageId, run, prompt: `What you proposed (${id}, ${itemTitle(item)}) ${words}` } }
}
