import { refuse, Refusal, type Context, type Host, warned } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { record } from '../../sdk/node/record/record.js'
import type { NeedInput, NeedStatus } from './contract.js'
import { askedFields, isOpen, isTold, secretKeysOf, type StoredNeed } from './stored-need.js'
import { messageIdOf, messageOf, outcomeOf, runOf } from './telling.js'

const MOST_OPEN = 20
const KEPT_MS = 90 * 24 * 3_600_000
const LONGEST_TIMER = 2 ** 31 - 1
const AGAIN_MS = 30_000

/** How a need is settled. */
export interface Settling extends Pick<StoredNeed, 'answers' | 'note' | 'marks' | 'byOthers'> {
  readonly status: Exclude<NeedStatus, 'open'>
  readonly by: string
  /** The agent is told in its next turn only. */
  readonly quiet?: boolean
}

/** Tells group agent of settled needs, by a message of this id in a run of this id. */
export type Say = (
  message: {
    readonly conversationId: string
    readonly messageId: string
    readonly run: string
    readonly prompt: string
    /** Somebody who may not land has a say in the prompt. */
    readonly byOthers: boolean
  },
  context?: Context,
) => Promise<{ run: string }>

type NeedsHost = Pick<Host, 'store' | 'log' | 'emit' | 'call' | 'serves' | 'signal'>

/** The needs of the last 90 days: each is a document, and in memory. */
export class Needs {
  readonly #host: NeedsHost
  readonly #say: Say
  readonly #published: (need: StoredNeed) => void
  readonly #all = new Map<string, StoredNeed>()
  readonly #turns = new KeyedMutex()
  #timer: NodeJS.Timeout | undefined
  #again: NodeJS.Timeout | undefined

  constructor(host: NeedsHost, say: Say, published: (need: StoredNeed) => void) {
    this.#host = host
    this.#say = say
    this.#published = published
  }

  /** Reads the needs; those settled 90 days ago are removed. */
  async load(): Promise<void> {
    for (const [id, need] of await this.#host.store.all<StoredNeed>()) this.#all.set(id, need)
    await this.sweep()
  }

  /** Removes needs that were settled 90 days ago. */
  async sweep(now = Date.now()): Promise<void> {
    for (const { id, settledAt } of this.#all.values()) {
      if (settledAt === undefined || settledAt > now - KEPT_MS) continue
      await this.#host.store.delete(id)
      this.#all.delete(id)
    }
  }

  /** Newest first. */
  get all(): StoredNeed[] {
    return [...this.#all.values()].sort((one, other) => other.raisedAt - one.raisedAt)
  }

  /** Those of a conversation, oldest first. */
  #of(conversationId: string): StoredNeed[] {
    const own = [...this.#all.values()].filter(need => need.conversationId === conversationId)
    return own.sort((one, other) => one.raisedAt - other.raisedAt)
  }

  get(id: string): StoredNeed {
    return this.#all.get(id) ?? refuse('not-found', `there is no need ${JSON.stringify(id.slice(0, 64))}`)
  }

  /** The open ones that a conversation waits for, oldest first. */
  blocking(conversationId: string): string[] {
    return this.#of(conversationId).flatMap(need => (isOpen(need) && need.blocking ? [need.id] : []))
  }

  /** How many are open, by conversation. */
  get counts(): { [conversationId: string]: number } {
    const open: { [conversationId: string]: number } = {}
    for (const need of this.#all.values())
      if (isOpen(need)) open[need.conversationId] = (open[need.conversationId] ?? 0) + 1
    return open
  }

  /** Raises a need, or returns the open one with the same `dedupe`. */
  async raise(
    input: NeedInput,
    more: Pick<StoredNeed, 'id' | 'raisedBy'> & Partial<Pick<StoredNeed, 'run' | 'conversationTitle' | 'byOthers'>>,
    context?: Context,
  ): Promise<StoredNeed> {
    const { conversationId, dedupe } = input
    return this.#turns.with(conversationId, async () => {
      const open = this.#of(conversationId).filter(isOpen)
      const same = dedupe !== undefined && open.find(need => need.dedupe === dedupe)
      if (same) return same
      if (open.length >= MOST_OPEN)
        refuse('too-many', `${MOST_OPEN} needs are open in this conversation: wait until some are settled`)
      const raised = { status: 'open' as const, raisedAt: this.#later(open) }
      const need = { ...input, ...more, ...raised, fields: askedFields(input), blocking: input.blocking ?? true }
      await this.#put(need)
      const { id, kind } = need
      this.#changed(need)
      const told = { type: 'need.raised', audience: 'viewer', conversationId, extra: { id, kind } } as const
      await record(this.#host, { ...told, ...(!context && { actor: need.raisedBy }) }, context)
      this.#awaitExpiry()
      return need
    })
  }

  /** Two needs of a conversation never have the same time, which pages of the list end with. */
  #later(open: readonly StoredNeed[]): number {
    return Math.max(Date.now(), ...open.map(({ raisedAt }) => raisedAt + 1))
  }

  /** Does something with a need while no other change of its conversation's needs runs. */
  async with<T>(
    id: string,
    work: (need: StoredNeed, settle: (how: Settling, context?: Context) => Promise<StoredNeed>) => Promise<T>,
  ): Promise<T> {
    return this.#turns.with(this.get(id).conversationId, () =>
      work(this.get(id), (how, context) => this.#settle(id, how, context)),
    )
  }

  /** Settles a need if it is still open; its conversation goes on if nothing else holds it. */
  async settle(id: string, how: Settling): Promise<void> {
    await this.with(id, async (need, settle) => void (isOpen(need) && (await settle(how))))
  }

  async #inLoop(conversationId: string): Promise<boolean> {
    if (!(await this.#host.serves('loops.drives'))) return false
    return (await this.#host.call('loops.drives', { conversationId })).drives
  }

  async #settle(
    id: string,
    { status, by, answers, note, marks, quiet, byOthers }: Settling,
    context?: Context,
  ): Promise<StoredNeed> {
    // The next round of a loop begins by itself, and gets the answer with its notes.
    const waits = quiet || (await this.#inLoop(this.get(id).conversationId))
    const settled: StoredNeed = {
      ...this.get(id),
      ...{ status, settledBy: by, settledAt: Date.now() },
      ...(answers && { answers }),
      ...(note && { note }),
      ...(marks && { marks }),
      ...(byOthers && { byOthers }),
      ...(waits && { quiet: true as const }),
    }
    await this.#put(settled)
    failpoint('needs.settled')
    this.#changed(settled)
    const { conversationId } = settled
    this.#host.emit('need.settled', { id, conversationId, status })
    const extra = { id, ...(answers && { keys: Object.keys(answers) }) }
    const told = { type: `need.${status}`, audience: 'viewer', conversationId, extra } as const
    await record(this.#host, { ...told, ...(!context && { actor: by }) }, context)
    await this.#goOn(conversationId, context)
    return this.get(id)
  }

  /** Tells a conversation of what was settled, once nothing that it waits for is open. */
  async #goOn(conversationId: string, context?: Context): Promise<void> {
    const own = this.#of(conversationId).filter(({ blocking }) => blocking)
    if (own.some(isOpen)) return
    const due = own.filter(need => !need.quiet && !isTold(need) && need.message === undefined)
    if (due.length === 0) return
    // Stored first: after a crash the same message is sent again, and accepted once.
    const message = messageIdOf(due.at(-1)!)
    for (const need of due) await this.#put({ ...need, message })
    failpoint('needs.message.noted')
    await this.#send(message, context)
  }

  async #send(messageId: string, context?: Context): Promise<void> {
    const { conversationId } = [...this.#all.values()].find(({ message }) => message === messageId)!
    const needs = this.#of(conversationId).filter(({ message }) => message === messageId)
    try {
      const { run } = await this.#say(
        { conversationId, messageId, run: runOf(messageId), prompt: messageOf(needs), byOthers: hasOthers(needs) },
        context,
      )
      failpoint('needs.message.accepted')
      for (const need of needs) await this.#put({ ...need, continued: run })
    } catch (error) {
      if (this.#host.signal.aborted) return
      this.#host.log.warn('a conversation does not go on yet', { conversation: conversationId, error: String(error) })
      if (Refusal.from(error).reason === 'not-found')
        for (const need of needs) await this.#put({ ...need, toldIn: 'nobody' })
      else this.#sendLater()
    }
  }

  #sendLater(): void {
    this.#again ??= setTimeout(() => {
      this.#again = undefined
      void this.sendDue()
    }, AGAIN_MS).unref()
  }

  /** Sends every message that was not accepted yet. */
  async sendDue(): Promise<void> {
    const due = this.all.filter(need => need.message !== undefined && !isTold(need))
    for (const message of new Set(due.map(({ message }) => message!))) await this.#send(message)
    // The daemon ended between an answer and its message.
    for (const id of new Set(this.all.map(({ conversationId }) => conversationId)))
      await this.#turns.with(id, () => this.#goOn(id))
  }

  /** Answers that the conversation did not wait for, as notes for a run. */
  async forTurn(
    conversationId: string,
    run: string,
  ): Promise<{ notes: { title: string; text: string }[]; byOthers: boolean }> {
    return this.#turns.with(conversationId, async () => {
      const due = this.#of(conversationId).filter(
        need => !isOpen(need) && (need.quiet === true || !need.blocking) && (need.toldIn === run || !isTold(need)),
      )
      for (const need of due) if (need.toldIn !== run) await this.#put({ ...need, toldIn: run })
      const notes = due.map(need => ({ title: 'Answer to a need', text: outcomeOf(need) }))
      return { notes, byOthers: hasOthers(due) }
    })
  }

  /** Settles what a connected capability or a stored secret answers. */
  async arrived(by: string, answers: (need: StoredNeed) => boolean): Promise<void> {
    for (const need of this.all.filter(isOpen)) {
      if (!answers(need)) continue
      const keys = secretKeysOf(need)
      const references = need.fields.map(({ key, secretKey }) => [key, `{{secret:${secretKey}}}`])
      await this.settle(need.id, { status: 'given', by, ...(keys && { answers: Object.fromEntries(references) }) })
    }
  }

  /** Withdraws the open needs of a conversation that is gone. */
  async withdrawAll(conversationId: string): Promise<void> {
    for (const need of this.#of(conversationId))
      if (isOpen(need)) await this.settle(need.id, { status: 'withdrawn', by: 'sandbox:discard' })
  }

  /** Settles needs whose time has passed, and waits for the next. */
  async expire(): Promise<void> {
    for (const need of this.all)
      if (isOpen(need) && need.expiresAt !== undefined && need.expiresAt <= Date.now())
        await this.settle(need.id, { status: 'expired', by: 'sandbox:clock' })
    this.#awaitExpiry()
  }

  #awaitExpiry(): void {
    clearTimeout(this.#timer)
    const next = Math.min(...this.all.filter(isOpen).map(({ expiresAt = Infinity }) => expiresAt))
    if (next === Infinity || this.#host.signal.aborted) return
    const wait = Math.min(Math.max(0, next - Date.now()), LONGEST_TIMER)
    this.#timer = setTimeout(
      () => void this.expire().catch(warned(this.#host, 'settling needs that expired')),
      wait,
    ).unref()
  }

  stop(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#again)
  }

  #changed(need: StoredNeed): void {
    const { id, conversationId, title, status } = need
    this.#host.emit('need.changed', { id, conversationId, title, status, open: this.counts[conversationId] ?? 0 })
    this.#published(need)
  }

  /** Stores a need; the index names what is stored. */
  async #put(need: StoredNeed): Promise<void> {
    await this.#host.store.set(need.id, need)
    this.#all.set(need.id, need)
  }
}

/** Whether somebody who may not land has a say in what an agent reads of these needs. */
const hasOthers = (needs: readonly StoredNeed[]): boolean => needs.some(({ byOthers }) => byOthers === true)
