import { refuse, type Host } from '../../sdk/index.js'
import type { SecretLane, SecretUse } from './contract.js'

/** What is noted of a value that leaves. */
export type NotedUse = Omit<SecretUse, 'id'>
/** Which uses are listed, newest first. */
export interface UseQuery {
  readonly limit?: number
  readonly before?: string
  readonly name?: string
  readonly conversationId?: string
  readonly lane?: SecretLane
}

const JOURNAL = 'uses'
const DAY = 24 * 60 * 60_000
const KEPT_MS = 180 * DAY
const KEPT = 20_000
/** So many too many are waited for before the journal is written anew. */
const SLACK = 2_000
const LIMIT = 100
const MOST = 500
const CURSOR = /^u([1-9][0-9]{0,14})$/

/** Which values left, when, and for what: durable, the newest 20,000 of 180 days. */
export class UseLog {
  readonly #journal: Pick<Host['journal'], 'append' | 'read' | 'rewrite'>
  readonly #now: () => number
  #uses: Promise<SecretUse[]> | undefined

  constructor(journal: Pick<Host['journal'], 'append' | 'read' | 'rewrite'>, now = Date.now) {
    this.#journal = journal
    this.#now = now
  }

  /** Notes uses; they survive the end of the process when this returns. */
  async note(uses: readonly NotedUse[]): Promise<void> {
    const all = await this.#all()
    let last = numberOf(all.at(-1)?.id)
    const added = uses.map((use): SecretUse => ({ id: `u${++last}`, ...use }))
    all.push(...added)
    await this.#journal.append(JOURNAL, added)
    await this.#trim(all)
  }

  async list({
    limit = LIMIT,
    before,
    name,
    conversationId,
    lane,
  }: UseQuery): Promise<{ uses: SecretUse[]; next?: string }> {
    if (before !== undefined && !CURSOR.test(before))
      refuse('invalid', `before: expected the next of an earlier page, found ${JSON.stringify(before.slice(0, 40))}`, {
        errors: [{ path: 'before', expected: 'the next of an earlier page' }],
      })
    const all = await this.#all()
    const [end, oldest] = [before === undefined ? Infinity : numberOf(before), this.#now() - KEPT_MS]
    const most = Math.min(limit, MOST)
    const uses: SecretUse[] = []
    for (let at = all.length - 1; at >= Math.max(0, all.length - KEPT); at--) {
      const use = all[at]!
      if (use.at < oldest || numberOf(use.id) >= end) continue
      if ((name ?? use.name) !== use.name || (lane ?? use.lane) !== use.lane) continue
      if (conversationId !== undefined && use.conversationId !== conversationId) continue
      if (uses.length === most) return { uses, next: uses.at(-1)!.id }
      uses.push({ ...use })
    }
    return { uses }
  }

  /** The last use of each name. */
  async last(): Promise<ReadonlyMap<string, SecretUse>> {
    return new Map((await this.#all()).map(use => [use.name, use]))
  }

  #all(): Promise<SecretUse[]> {
    this.#uses ??= this.#journal.read<SecretUse>(JOURNAL)
    this.#uses.catch(() => (this.#uses = undefined))
    return this.#uses
  }

  async #trim(all: SecretUse[]): Promise<void> {
    const oldest = this.#now() - KEPT_MS - DAY
    if (all.length <= KEPT + SLACK && (all[0]?.at ?? Infinity) >= oldest) return
    const kept = all.slice(-KEPT).filter(({ at }) => at >= oldest + DAY)
    all.splice(0, all.length, ...kept)
    await this.#journal.rewrite(JOURNAL, kept)
  }
}

const numberOf = (id = 'u0'): number => Number(id.slice(1))
