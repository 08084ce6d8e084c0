import type { Host, Store } from '../../../sdk/index.js'
import type { ConversationState, HeldConversation } from '../../agent/contract.js'

/** What the fleet remembers of a conversation's newest run. */
interface RunNote {
  /** The run after whose end the rest of the private copy was committed. */
  readonly committed?: string
  /** Something of it is in its private copy alone: too large to be committed, or refused by git's checks. */
  readonly large?: boolean
  /** The run whose work landed after it had ended. */
  readonly landed?: string
}

/**
 * Runs work while no turn of a conversation can start and nothing else moves its private copy; the work gets the
 * conversation as it is from then on.
 */
export const holding = async <T>(
  host: Pick<Host, 'call'>,
  id: string,
  signal: AbortSignal,
  work: (held: HeldConversation) => Promise<T>,
): Promise<T> => {
  const ended = new AbortController()
  const lock = await host.call('agent.lock', { id }, { signal: AbortSignal.any([signal, ended.signal]) })
  const events = lock[Symbol.asyncIterator]()
  try {
    const { value, done } = await events.next()
    if (done) throw new Error(`the turn lock of ${id} ended before it was held`)
    return await work(value)
  } finally {
    ended.abort()
    await events.return?.()
  }
}

/**
 * What is done once after every run, and survives a restart: what a turn left uncommitted is put on its branch, so that
 * the branch gives the status of the work.
 */
export class RunNotes {
  readonly #host: Pick<Host, 'call' | 'log' | 'signal'> & { readonly store: Store }
  readonly #notes = new Map<string, RunNote>()
  readonly #committing = new Map<string, Promise<void>>()
  /** Why the work of a conversation is not on its branch. */
  readonly #failures = new Map<string, string>()
  #closing = false

  constructor(host: Pick<Host, 'call' | 'log' | 'signal'> & { readonly store: Store }) {
    this.#host = host
  }

  async open(): Promise<void> {
    for (const [id, note] of await this.#host.store.all<RunNote>()) this.#notes.set(id, note)
  }

  /** The run of a conversation whose work landed after it had ended. */
  landed(id: string): string | undefined {
    return this.#notes.get(id)?.landed
  }

  noteLanded(id: string, run: string): Promise<void> {
    return this.#note(id, { landed: run })
  }

  /** All of the newest run is on the branch, in the repository too. */
  noteCommitted(id: string, run: string): Promise<void> {
    return this.#note(id, { committed: run, large: false })
  }

  /** Why what the last run left is not on the branch, when it could not be put there. */
  failure(id: string): string | undefined {
    return this.#failures.get(id)
  }

  async forget(id: string): Promise<void> {
    this.#notes.delete(id)
    this.#failures.delete(id)
    await this.#host.store.delete(id)
  }

  /** Whether all work is on the branch: nothing but turns changes a copy. */
  holdsAll({ conversation: { id, lastRun }, live }: ConversationState): boolean {
    const { committed, large = false } = this.#notes.get(id) ?? {}
    return !live && lastRun !== undefined && committed === lastRun && !large
  }

  /**
   * Sees to it that what the last run left is on the branch. A copy that cannot be committed now is tried again later.
   */
  commit({ conversation: { id, branch, lastRun, archivedAt }, live }: ConversationState): Promise<void> {
    const nothing =
      branch === undefined
      || live
      || lastRun === undefined
      || archivedAt !== undefined
      || this.#notes.get(id)?.committed === lastRun
    if (this.#closing || nothing) return Promise.resolve()
    const busy = this.#committing.get(id)
    if (busy) return patiently(busy)
    const work = this.#commit(id)
      .catch(error => {
        if (this.#host.signal.aborted) return
        this.#failures.set(id, error instanceof Error ? error.message : String(error))
        this.#host.log.warn('what a turn left could not be committed', { conversation: id, error: String(error) })
      })
      .finally(() => this.#committing.delete(id))
    this.#committing.set(id, work)
    return patiently(work)
  }

  /** Begins nothing more and waits a while for what has begun. */
  async close(): Promise<void> {
    this.#closing = true
    await patiently(Promise.all(this.#committing.values()))
  }

  async #commit(id: string): Promise<void> {
    const host = this.#host
    await holding(host, id, host.signal, async ({ state }) => {
      const {
        conversation: { lastRun },
        live,
      } = state
      if (live || lastRun === undefined) return
      const { tips } = await host.call('checkouts.commitRest', { id })
      await this.#note(id, { committed: lastRun, large: tips.some(({ large, out }) => large || out !== undefined) })
    })
  }

  async #note(id: string, note: RunNote): Promise<void> {
    if (note.committed !== undefined) this.#failures.delete(id)
    const merged = { ...this.#notes.get(id), ...note }
    this.#notes.set(id, merged)
    await this.#host.store.set(id, merged)
  }
}

const PATIENCE = 5000

/** Waits at most 5 s, so that one blocked git does not delay the other cards. */
const patiently = (work: Promise<unknown>): Promise<void> => {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, PATIENCE)
  return Promise.race([work.then(() => {}), late.promise]).finally(() => clearTimeout(timer))
}
