import type { Host, Store } from '../../../sdk/index.js'
import { LazyDocuments } from '../../../sdk/node/files/lazy-documents.js'
import type { ConversationState, HeldConversation } from '../../agent/contract.js'

/** Notes on a conversation's newest run. */
interface RunNote {
  /** The run after which the rest of the private copy was committed. */
  readonly committed?: string
  /** Some of its work is only in the private copy: too large to be committed, or refused by git's checks. */
  readonly large?: boolean
  /** The run whose work landed after it had ended. */
  readonly landed?: string
}

/**
 * Runs work while no turn of a conversation can start and nothing else changes its private copy; passes the
 * conversation as read under this lock.
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
 * Commits uncommitted work once after every run, also after a restart, so that the branch shows the status of the work.
 */
export class RunNotes {
  readonly #host: Pick<Host, 'call' | 'log' | 'signal'> & { readonly store: Store }
  readonly #notes = new LazyDocuments<RunNote>()
  readonly #committing = new Map<string, Promise<void>>()
  /** Why committing the work of a conversation failed. */
  readonly #failures = new Map<string, string>()
  #opened: Promise<void> | undefined
  #closing = false

  constructor(host: Pick<Host, 'call' | 'log' | 'signal'> & { readonly store: Store }) {
    this.#host = host
  }

  /** Reads the notes when one is first needed: a start has thousands that nobody asks for. */
  #open(): Promise<void> {
    this.#opened ??= this.#host.store
      .texts()
      .then(texts => this.#notes.load(texts))
      .catch(error => {
        this.#opened = undefined
        throw error
      })
    return this.#opened
  }

  /** The run of a conversation whose work landed after it had ended; known once `commit` was called. */
  landed(id: string): string | undefined {
    return this.#notes.get(id)?.landed
  }

  noteLanded(id: string, run: string): Promise<void> {
    return this.#note(id, { landed: run })
  }

  /** Notes that all work of the newest run is on the branch, also in the repository. */
  noteCommitted(id: string, run: string): Promise<void> {
    return this.#note(id, { committed: run, large: false })
  }

  /** Why the work of the last run could not be committed, if so. */
  failure(id: string): string | undefined {
    return this.#failures.get(id)
  }

  async forget(id: string): Promise<void> {
    await this.#open()
    this.#notes.delete(id)
    this.#failures.delete(id)
    await this.#host.store.delete(id)
  }

  /** Whether all work is on the branch; only turns change a copy. */
  async holdsAll({ conversation: { id, lastRun }, live }: ConversationState): Promise<boolean> {
    await this.#open()
    const { committed, large = false } = this.#notes.get(id) ?? {}
    return !live && lastRun !== undefined && committed === lastRun && !large
  }

  /** Commits the work of the last run to the branch; retries later if the copy cannot be committed now. */
  async commit({ conversation: { id, branch, lastRun, archivedAt }, live }: ConversationState): Promise<void> {
    await this.#open()
    const nothing =
      branch === undefined
      || live
      || lastRun === undefined
      || archivedAt !== undefined
      || this.#notes.get(id)?.committed === lastRun
    if (this.#closing || nothing) return
    const busy = this.#committing.get(id)
    if (busy) return patiently(busy)
    const work = this.#commit(id)
      .catch(error => {
        if (this.#host.signal.aborted) return
        this.#failures.set(id, error instanceof Error ? error.message : String(error))
        this.#host.log.warn('committing the work of a turn failed', { conversation: id, error: String(error) })
      })
      .finally(() => this.#committing.delete(id))
    this.#committing.set(id, work)
    return patiently(work)
  }

  /** Starts no more commits and waits at most 5 s for running ones. */
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
    await this.#open()
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
