import { hash } from 'node:crypto'
import { Refusal, type Files } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import type { ConversationState } from '../../agent/contract.js'
import { cardOf } from './card.js'
import type { AgentCard, Cards, Roster } from '../contract.js'
import type { RunNotes } from '../work/run-notes.js'
import type { Round, BranchStatuses } from '../work/branch-status.js'

const FILE = 'roster'
/** How many revisions are set aside at a time, so that most of them cost no write. */
const AHEAD = 1000
const PARALLEL = 4
const READING = 'reading'

/** What a roster is made from. */
export interface RosterDeps {
  readonly files: Pick<Files, 'read' | 'write'>
  readonly statuses: BranchStatuses
  readonly conversations: () => Promise<ConversationState[]>
  readonly conversation: (id: string) => Promise<ConversationState>
  readonly notes: Pick<RunNotes, 'commit' | 'landed'>
}

/** The board: every live conversation, with a revision that grows whenever any card differs, also over restarts. */
export class RosterBook {
  readonly #deps: RosterDeps
  #rev = 0
  #ceiling = 0
  /** What every card on the board was when it was read last. */
  readonly #signatures = new Map<string, string>()
  #known = false
  /** One reading at a time: an earlier reading must not be answered after a newer one. */
  readonly #readings = new KeyedMutex()
  #running: Promise<Roster> | undefined
  #next: Promise<Roster> | undefined

  constructor(deps: RosterDeps) {
    this.#deps = deps
  }

  /** Continues the revisions where an earlier start ended. */
  async open(): Promise<void> {
    const stored = await this.#deps.files.read<{ ceiling: number }>(FILE)
    this.#rev = this.#ceiling = stored?.ceiling ?? 0
    await this.#reserve()
  }

  /** The revision of the roster made last. */
  get rev(): number {
    return this.#rev
  }

  /** The cards of these conversations as they are now, in their order. */
  async cards(states: readonly ConversationState[]): Promise<AgentCard[]> {
    const round = this.#deps.statuses.round()
    const agents = new Array<AgentCard>(states.length)
    const left = states.entries()
    await Promise.all(
      Array.from({ length: PARALLEL }, async () => {
        for (const [at, state] of left) agents[at] = await this.card(state, round)
      }),
    )
    return agents
  }

  /** One conversation's card as it is now. */
  async card(state: ConversationState, round?: Round): Promise<AgentCard> {
    const { notes, statuses } = this.#deps
    await notes.commit(state)
    const branchStatus = await statuses.of(state.conversation, round)
    const landedRun = notes.landed(state.conversation.id)
    return cardOf(state, { branchStatus, ...(landedRun !== undefined && { landedRun }) })
  }

  /** The roster as it is now or became since; callers that ask while one is made share the one after it. */
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

  /** These cards as they are now, with the revision of the board; those that are not on it are gone. */
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
      const states = (await this.#deps.conversations())
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

  /** The revision of the board with these cards on it and those that are gone off it. */
  async #revision(agents: readonly AgentCard[], gone: readonly string[]): Promise<number> {
    const moved = agents
      .map(card => [card.id, hash('sha256', JSON.stringify(card))] as const)
      .filter(([id, signature]) => this.#signatures.get(id) !== signature)
    const left = gone.filter(id => this.#signatures.has(id))
    // What was answered before a restart is not known.
    if (this.#known && moved.length === 0 && left.length === 0) return this.#rev
    if (this.#rev + AHEAD / 2 >= this.#ceiling) await this.#reserve()
    this.#known = true
    for (const [id, signature] of moved) this.#signatures.set(id, signature)
    for (const id of left) this.#signatures.delete(id)
    return ++this.#rev
  }

  /** Sets revisions aside long before they are needed, so that a disk that takes nothing does not hide the board. */
  async #reserve(): Promise<void> {
    const ceiling = this.#rev + AHEAD
    await this.#deps.files.write(FILE, { ceiling }).then(
      () => (this.#ceiling = ceiling),
      () => {},
    )
  }
}

const isOnBoard = ({ conversation }: ConversationState): boolean => conversation.archivedAt === undefined
