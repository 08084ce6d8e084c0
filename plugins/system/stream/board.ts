import { isDeepStrictEqual } from 'node:util'
import type { FrameForms, LiveFrame, PlacedForm } from '../../../sdk/kernel.js'
import type { AgentCard, Cards, Roster } from '../../agents/contract.js'
import type { AgentEvent, AgentsEvent, AttentionEvent } from '../contract.js'

/** Schedules a function; the returned function cancels it. */
export type After = (ms: number, run: () => void) => () => void

/** Dependencies of the board. */
export interface BoardStreamDeps {
  readonly read: () => Promise<Roster>
  /** Reads only these cards; undefined: the whole board must be read. */
  readonly some?: (ids: string[]) => Promise<Cards | undefined>
  /** How many needs are open, by conversation. */
  readonly needs?: () => Promise<{ readonly [conversationId: string]: number }>
  /** How many approvals are proposed, by conversation; those of none are under an empty id. */
  readonly approvals?: () => Promise<{ readonly [conversationId: string]: number }>
  /** How many issues wait for a person, by the folder of their repository; without one for issues of none. */
  readonly issues?: () => Promise<readonly WaitingIssues[]>
  /** How many branches failed since they were seen, by the folder of their repository. */
  readonly branches?: () => Promise<readonly WaitingIssues[]>
  readonly show: (frames: LiveFrame[]) => Promise<unknown>
  readonly failed: (error: unknown) => void
  /** The places a person must reach to see a conversation; undefined: people limited to areas do not see it. */
  readonly places?: (card: AgentCard) => Promise<string[] | undefined>
  readonly after?: After
}

/** Issues or failed branches of one repository, or of none, that wait for a person. */
export interface WaitingIssues {
  readonly within?: string
  readonly count: number
}

const PAUSE = 1_000
const PATIENCE = 2_000
/**
 * How long cards are read one by one before the whole board is read again, because changes in git alone are not
 * published.
 */
const WHOLE = 10_000

const timer: After = (ms, run) => {
  const started = setTimeout(run, ms).unref()
  return () => clearTimeout(started)
}

/** A card as last published. */
interface PublishedCard {
  readonly card: AgentCard
  readonly json: string
  /** The places a person must reach to see it; absent: people limited to areas do not see it. */
  readonly within?: string[]
}

/**
 * The fleet as watchers see it: read when something may have changed, at most once a second; publishes the differences.
 *
 * If only one card can have changed, only that card is read.
 *
 * Without watchers nothing is read. The next watcher triggers a reading first, so that no change in between is lost.
 */
export class BoardStream {
  readonly #deps: BoardStreamDeps
  readonly #after: After
  /** Each card as last published; undefined before the first reading. */
  #published: ReadonlyMap<string, PublishedCard> | undefined
  /** The cards that may have changed since the last reading; undefined: any of them. */
  #due: Set<string> | undefined
  /** Set while the last reading of the whole board is recent; cancelled by the next. */
  #whole = false
  #stale: (() => void) | undefined
  #figures = JSON.stringify([NOTHING, 0, [], []])
  #counted = NOTHING
  /** Fires of automations that wait for a person. */
  #held = 0
  #issues: readonly WaitingIssues[] = []
  #branches: readonly WaitingIssues[] = []
  /** How many needs are open, by conversation. */
  #needs = new Map<string, number>()
  /** How many approvals are proposed, by conversation. */
  #approvals = new Map<string, number>()
  #last: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #watchers = 0
  #ready = false
  #paused = false
  #again = false

  constructor(deps: BoardStreamDeps) {
    this.#deps = deps
    this.#after = deps.after ?? timer
  }

  /** Call it when the groups have started: their roster is complete from now on. */
  ready(): void {
    this.#ready = true
    this.changed()
  }

  /**
   * Adds a watcher and waits, for a limited time, until the current fleet is published; call the returned function when
   * the watcher leaves.
   */
  async watched(): Promise<() => void> {
    this.#watchers += 1
    this.#due = undefined
    if (this.#ready) await this.#within(this.#refresh())
    return () => {
      this.#watchers -= 1
    }
  }

  /** Call it when so many fires of automations wait. */
  async held(waiting: number): Promise<void> {
    this.#held = waiting
    await this.#showAttention()
  }

  /** Call it when other issues wait. */
  async reported(waiting: readonly WaitingIssues[]): Promise<void> {
    this.#issues = waiting
    await this.#showAttention()
  }

  /** Call it when other branches failed or were seen. */
  async failed(waiting: readonly WaitingIssues[]): Promise<void> {
    this.#branches = waiting
    await this.#showAttention()
  }

  async #showAttention(): Promise<void> {
    await this.#deps.show([this.#attention()])
  }

  #attention(): LiveFrame {
    return attentionFrame(this.#counted, this.#held, this.#issues, this.#branches)
  }

  /** Call it when so many needs of a conversation are open. */
  async needed(conversationId: string, open: number): Promise<void> {
    await this.#recount(this.#needs, conversationId, open)
  }

  /** Call it when so many approvals of a conversation are proposed. */
  async proposed(conversationId: string, proposed: number): Promise<void> {
    await this.#recount(this.#approvals, conversationId, proposed)
  }

  async #recount(counts: Map<string, number>, conversationId: string, count: number): Promise<void> {
    if (count > 0) counts.set(conversationId, count)
    else counts.delete(conversationId)
    if (!this.#published) return
    this.#counted = countedOf([...this.#published.values()], this.#needs, this.#approvals)
    await this.#showAttention()
  }

  /** Call it when one conversation, or any, may have changed. */
  changed(id?: string): void {
    if (!this.#ready || !this.#watchers) return
    if (id === undefined) this.#due = undefined
    else this.#due?.add(id)
    this.#begin()
  }

  #begin(): void {
    if (!this.#ready || !this.#watchers) return
    if (this.#paused) {
      this.#again = true
      return
    }
    this.#paused = true
    this.#after(PAUSE, () => {
      this.#paused = false
      if (!this.#again) return
      this.#again = false
      this.#begin()
    })
    void this.#refresh()
  }

  /** One reading at a time; requests during one share the next. */
  #refresh(): Promise<void> {
    this.#next ??= this.#last = this.#last.then(() => {
      this.#next = undefined
      return this.#read().catch(this.#deps.failed)
    })
    return this.#next
  }

  async #read(): Promise<void> {
    const due = this.#due
    if (due?.size === 0) return
    this.#due = new Set()
    try {
      const cards = due && this.#published && this.#whole ? await this.#deps.some?.([...due]) : undefined
      if (cards)
        await this.#publishChanges(withCards(this.#published!, await this.#publishedOf(cards.agents), cards), cards.rev)
      else await this.#readWhole()
    } catch (error) {
      // The next reading publishes what this one was to read.
      this.#due = undefined
      throw error
    }
  }

  async #readWhole(): Promise<void> {
    const { agents, rev, held } = await this.#deps.read()
    this.#held = held.length
    this.#needs = new Map(Object.entries((await this.#deps.needs?.()) ?? {}))
    this.#approvals = new Map(Object.entries((await this.#deps.approvals?.()) ?? {}))
    this.#issues = (await this.#deps.issues?.()) ?? []
    this.#branches = (await this.#deps.branches?.()) ?? []
    this.#whole = true
    this.#stale?.()
    this.#stale = this.#after(WHOLE, () => (this.#whole = false))
    await this.#publishChanges(await this.#publishedOf(agents), rev)
  }

  async #publishedOf(agents: readonly AgentCard[]): Promise<Map<string, PublishedCard>> {
    const { places = async ({ startIn = '.' }) => [startIn] } = this.#deps
    return new Map(
      await Promise.all(
        agents.map(async (card): Promise<[string, PublishedCard]> => {
          const within = await places(card)
          return [card.id, { card, json: JSON.stringify(card), ...(within && { within }) }]
        }),
      ),
    )
  }

  /** The places a person must reach to see a conversation of the board, as last published. */
  placesOf(id: string): readonly string[] | undefined {
    return this.#published?.get(id)?.within
  }

  async #publishChanges(now: ReadonlyMap<string, PublishedCard>, rev: number): Promise<void> {
    const frames = this.#published ? differences(this.#published, now, rev) : []
    if (this.#published && !frames.length) return
    this.#published = now
    const agents = [...now.values()].map(({ card }) => card).sort((one, other) => other.updatedAt - one.updatedAt)
    this.#counted = countedOf([...now.values()], this.#needs, this.#approvals)
    const figures = JSON.stringify([this.#counted, this.#held, this.#issues, this.#branches])
    const attention = figures === this.#figures ? [] : [this.#attention()]
    this.#figures = figures
    const whole: AgentsEvent = { kind: 'agents', agents, rev }
    const forTokens: AgentsEvent = { ...whole, agents: agents.map(withoutAccount) }
    await this.#deps.show([
      ...frames,
      {
        data: whole,
        ...(agents.some(({ account }) => account !== undefined) && { tokens: forTokens }),
        limited: { list: { field: 'agents', items: agents.map(({ id }) => formsOf(now.get(id)!)) } },
        snapshot: true,
        mode: 'snapshot',
      },
      ...attention,
    ])
  }

  async #within(reading: Promise<void>): Promise<void> {
    const late = Promise.withResolvers<void>()
    const cancel = this.#after(PATIENCE, late.resolve)
    await Promise.race([reading, late.promise])
    cancel()
  }
}

/** The published cards, with these replaced by their current state. */
const withCards = (
  published: ReadonlyMap<string, PublishedCard>,
  moved: ReadonlyMap<string, PublishedCard>,
  { gone }: Cards,
): ReadonlyMap<string, PublishedCard> => {
  const now = new Map([...published, ...moved])
  for (const id of gone) now.delete(id)
  return now
}

/** A card as control tokens see it. */
const withoutAccount = ({ account: _, ...card }: AgentCard): AgentCard => card

const differences = (
  before: ReadonlyMap<string, PublishedCard>,
  now: ReadonlyMap<string, PublishedCard>,
  rev: number,
): LiveFrame[] => {
  const moves = (id: string, { within }: PublishedCard) => !isDeepStrictEqual(now.get(id)!.within, within)
  const elsewhere = [...before].filter(([id, published]) => now.has(id) && moves(id, published))
  const gone = [...before].filter(([id]) => !now.has(id))
  const without = ([removed, { within }]: [string, PublishedCard]) =>
    delta({ kind: 'agent', rev, removed }, within ? [{ within, value: {} }] : [])
  const moved = [...now].filter(
    ([id, { json, within }]) => before.get(id)?.json !== json || !isDeepStrictEqual(before.get(id)?.within, within),
  )
  return [
    // A conversation that moved to other folders is removed for people who reach the old places only.
    ...elsewhere.map(without),
    ...moved.map(([, published]) => delta({ kind: 'agent', rev, agent: published.card }, formsOf(published))),
    ...gone.map(without),
  ]
}

const delta = (data: AgentEvent, forms: readonly PlacedForm[]): LiveFrame => {
  const { agent } = data
  const tokens: AgentEvent = agent?.account === undefined ? data : { ...data, agent: withoutAccount(agent) }
  return {
    data,
    tokens,
    limited: {
      forms: forms.map(({ within, value }) => ({ within, value: data.agent ? { ...data, agent: value } : data })),
    },
    mode: 'delta',
  }
}

/** The card for people who reach its places: figures about whole repositories only if they reach all of them. */
const formsOf = ({ card, within }: PublishedCard): PlacedForm[] => {
  if (!within) return []
  const { diff, landedPresence, ...rest } = card
  const counts = diff !== undefined || landedPresence !== undefined
  return counts
    ? [
        { within: ['.'], value: card },
        { within, value: rest },
      ]
    : [{ within, value: card }]
}

/** What a badge counts of conversations, and the part of each that people limited to areas may see. */
interface Counted {
  readonly cards: number
  readonly land: number
  readonly needs: number
  readonly approvals: number
  readonly parts: (FrameForms['sums'] & {})['parts']
}

const NOTHING: Counted = { cards: 0, land: 0, needs: 0, approvals: 0, parts: [] }

const countedOf = (
  published: readonly PublishedCard[],
  open: ReadonlyMap<string, number>,
  proposed: ReadonlyMap<string, number>,
): Counted => {
  let [cards, land] = [0, 0]
  const parts: Counted['parts'] = []
  for (const { card, within } of published) {
    const needs = open.get(card.id) ?? 0
    const approvals = proposed.get(card.id) ?? 0
    const add = { cards: card.cards?.length ?? 0, land: card.landRequested ? 1 : 0, needs, approvals }
    cards += add.cards
    land += add.land
    if (within && add.cards + add.land + needs + approvals > 0) parts.push({ within, add })
  }
  return { cards, land, needs: sumOf(open), approvals: sumOf(proposed), parts }
}

const sumOf = (counts: ReadonlyMap<string, number>): number => [...counts.values()].reduce((sum, each) => sum + each, 0)

/** What a badge counts; the groups of the other figures do not exist yet. */
export const attentionFrame = (
  { cards, land, needs, approvals, parts } = NOTHING,
  held = 0,
  issues: readonly WaitingIssues[] = [],
  branches: readonly WaitingIssues[] = [],
): LiveFrame => {
  const tokens: AttentionEvent = {
    kind: 'attention',
    cards,
    approvals: approvals + held,
    needs,
    land,
    ci: branches.reduce((sum, { count }) => sum + count, 0),
    issues: issues.reduce((sum, { count }) => sum + count, 0),
  }
  const data: AttentionEvent = { ...tokens, offload: 0 }
  const ofRepos = (field: 'issues' | 'ci', waiting: readonly WaitingIssues[]) =>
    waiting.map(({ within, count }) => ({ within: within === undefined ? [] : [within], add: { [field]: count } }))
  const all = [
    ...parts,
    ...ofRepos('issues', issues),
    ...ofRepos('ci', branches),
    { within: [], add: { approvals: held } },
  ]
  const sums = { fields: ['cards', 'land', 'needs', 'approvals', 'issues', 'ci'], parts: all }
  return { data, tokens, limited: { sums }, snapshot: true }
}
