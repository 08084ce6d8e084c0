import { hash } from 'node:crypto'
import { Refusal, type Files } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { CardLoop, CardWorkflow, ConversationState } from '../../agent/contract.js'
import { cardOf } from './card.js'
import type { AgentCard, Cards, Roster } from '../contract.js'
import type { LandedMessages } from '../landing/landed-messages.js'
import type { RunNotes } from '../work/run-notes.js'
import type { Round, BranchStatuses } from '../work/branch-status.js'

const FILE = 'roster'
/** Revisions reserved at a time, so that most of them need no write. */
const AHEAD = 1000
const PARALLEL = 4
const READING = 'reading'

/** The dependencies of the roster. */
export interface RosterDeps {
  readonly files: Pick<Files, 'read' | 'write'>
  readonly statuses: BranchStatuses
  /** Those that are archived or not. */
  readonly conversations: (archived: boolean) => Promise<ConversationState[]>
  readonly conversation: (id: string) => Promise<ConversationState>
  readonly notes: Pick<RunNotes, 'commit' | 'landed'>
  /** The messages of landings. */
  readonly messages?: Pick<LandedMessages, 'of' | 'opened'>
  /** What other groups show on the cards of some conversations. */
  readonly shown: (ids: string[]) => Promise<CardAdditions>
}

/** What other groups show on cards, by conversation. */
interface CardAdditions {
  readonly loops: { readonly [conversationId: string]: CardLoop }
  readonly workflows: { readonly [conversationId: string]: CardWorkflow }
}

/** The board: all live conversations, with a revision that grows with every change of a card, also across restarts. */
export class RosterBook {
  readonly #deps: RosterDeps
  #rev = 0
  #ceiling = 0
  /** A hash of each card on the board, as last read. */
  readonly #signatures = new Map<string, string>()
  #known = false
  /** Serialises readings, so that an older one is never returned after a newer one. */
  readonly #readings = new KeyedMutex()
  #running: Promise<Roster> | undefined
  #next: Promise<Roster> | undefined

  constructor(deps: RosterDeps) {
    this.#deps = deps
  }

  /** Continues the revisions of an earlier start. */
  async open(): Promise<void> {
    const stored = await this.#deps.files.read<{ ceiling: number }>(FILE)
    this.#rev = this.#ceiling = stored?.ceiling ?? 0
    await this.#reserve()
  }

  /** The revision of the last roster. */
  get rev(): number {
    return this.#rev
  }

  /** The current cards of these conversations, in their order. */
  async cards(states: readonly ConversationState[]): Promise<AgentCard[]> {
    const round = this.#deps.statuses.round()
    const shown = await this.#deps.shown(states.map(({ conversation }) => conversation.id))
    const agents = new Array<AgentCard>(states.length)
    const left = states.entries()
    await Promise.all(
      Array.from({ length: PARALLEL }, async () => {
        for (const [at, state] of left) agents[at] = await this.#card(state, shown, round)
      }),
    )
    return agents
  }

  /** A conversation's current card. */
  async card(state: ConversationState): Promise<AgentCard> {
    return this.#card(state, await this.#deps.shown([state.conversation.id]))
  }

  async #card(state: ConversationState, shown: CardAdditions, round?: Round): Promise<AgentCard> {
    const { notes, statuses, messages } = this.#deps
    await Promise.all([notes.commit(state), messages?.opened])
    const branchStatus = await statuses.of(state.conversation, round)
    const { id } = state.conversation
    const landedRun = notes.landed(id)
    const loop = shown.loops[id]
    const workflow = shown.workflows[id]
    return cardOf(state, {
      branchStatus,
      ...(messages && { landed: messages.of(id) }),
      ...(landedRun !== undefined && { landedRun }),
      ...(loop && { loop }),
      ...(workflow && { workflow }),
    })
  }

  /** The current roster. Concurrent callers share the reading after the one in progress. */
  read(): Promise<Roster> {
    if (!this.#running) return this.#start()
    this.#next ??= this.#running.then(
      () => this.#start(),
      () => this.#start(),
    )
    return this.#next
  }

  #start(): Promise<Roster> {
    this.#next = undefined
    const made = this.#make().finally(() => {
      if (this.#running === made) this.#running = undefined
    })
    this.#running = made
    return made
  }

  /** The current cards of these conversations, with the revision of the board; ids that are not on it are in `gone`. */
  some(ids: readonly string[]): Promise<Cards> {
    return this.#readings.with(READING, async () => {
      const states = await Promise.all(
        ids.map(id =>
          this.#deps.conversation(id).catch((error: unknown) => {
            if (Refusal.from(error).reason === 'not-found') return undefined
            throw error
          }),
        ),
      )
      const there = states.filter(state => state !== undefined && isOnBoard(state)) as ConversationState[]
      const agents = await this.cards(there)
      const found = new Set(agents.map(({ id }) => id))
      const gone = ids.filter(id => !found.has(id))
      return { agents, gone, rev: await this.#revision(agents, gone) }
    })
  }

  #make(): Promise<Roster> {
    return this.#readings.with(READING, async () => {
      const states = (await this.#deps.conversations(false))
        .filter(isOnBoard)
        .sort((one, other) => other.conversation.updatedAt - one.conversation.updatedAt)
      const agents = await this.cards(states)
      const found = new Set(agents.map(({ id }) => id))
      return {
        agents,
        rev: await this.#revision(
          agents,
          [...this.#signatures.keys()].filter(id => !found.has(id)),
        ),
        held: [],
      }
    })
  }

  /** The revision of the board after updating these cards and removing those in `gone`. */
  async #revision(agents: readonly AgentCard[], gone: readonly string[]): Promise<number> {
    const moved = agents
      .map(card => [card.id, hash('sha256', JSON.stringify(card))] as const)
      .filter(([id, signature]) => this.#signatures.get(id) !== signature)
    const left = gone.filter(id => this.#signatures.has(id))
    // The cards of before a restart are not known.
    if (this.#known && moved.length === 0 && left.length === 0) return this.#rev
    if (this.#rev + AHEAD / 2 >= this.#ceiling) await this.#reserve()
    this.#known = true
    for (const [id, signature] of moved) this.#signatures.set(id, signature)
    for (const id of left) this.#signatures.delete(id)
    return ++this.#rev
  }

  /** Reserves revisions long before they are needed, so that a full disk does not block the board. */
  async #reserve(): Promise<void> {
    const ceiling = this.#rev + AHEAD
    await this.#deps.files.write(FILE, { ceiling }).then(
      () => (this.#ceiling = ceiling),
      () => {},
    )
  }
}

const isOnBoard = ({ conversation }: ConversationState): boolean => conversation.archivedAt === undefined
