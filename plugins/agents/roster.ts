import { hash } from 'node:crypto'
import type { Files } from '../../sdk/index.js'
import type { ConversationState } from '../agent/contract.js'
import { cardOf } from './card.js'
import type { AgentCard, Roster } from './contract.js'
import type { RunNotes } from './run-notes.js'
import type { Round, Standings } from './standing.js'

const FILE = 'roster'
/** How many revisions are set aside at a time, so that most of them cost no write. */
const AHEAD = 1000
const PARALLEL = 4

/** What a roster is made from. */
export interface RosterDeps {
  readonly files: Pick<Files, 'read' | 'write'>
  readonly standings: Standings
  readonly conversations: () => Promise<ConversationState[]>
  readonly notes: Pick<RunNotes, 'commit' | 'landed'>
}

/** The board: every live conversation, with a revision that grows whenever any card differs, also over restarts. */
export class RosterBook {
  readonly #deps: RosterDeps
  #rev = 0
  #ceiling = 0
  #signature = ''
  #running: Promise<Roster> | undefined
  #next: Promise<Roster> | undefined

  constructor(deps: RosterDeps) {
    this.#deps = deps
  }

  /** Takes up the revisions where an earlier start left them. */
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
    const round = this.#deps.standings.round()
    const agents = new Array<AgentCard>(states.length)
    const left = states.entries()
    await Promise.all(Array.from({ length: PARALLEL }, async () => {
      for (const [at, state] of left) agents[at] = await this.card(state, round)
    }))
    return agents
  }

  /** One conversation's card as it is now. */
  async card(state: ConversationState, round?: Round): Promise<AgentCard> {
    const { notes, standings } = this.#deps
    await notes.commit(state)
    const standing = await standings.of(state.conversation, round)
    const landedRun = notes.landed(state.conversation.id)
    return cardOf(state, { standing, ...(landedRun !== undefined && { landedRun }) })
  }

  /** The roster as it is now or became since; callers that ask while one is made share the one after it. */
  read(): Promise<Roster> {
    if (!this.#running) return this.#start()
    this.#next ??= this.#running.then(() => this.#start(), () => this.#start())
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

  async #make(): Promise<Roster> {
    const states = (await this.#deps.conversations())
      .filter(({ conversation }) => conversation.archivedAt === undefined)
      .sort((one, other) => other.conversation.updatedAt - one.conversation.updatedAt)
    const agents = await this.cards(states)
    return { agents, rev: await this.#revision(agents), held: [] }
  }

  async #revision(agents: readonly AgentCard[]): Promise<number> {
    const signature = hash('sha256', JSON.stringify(agents))
    if (signature === this.#signature) return this.#rev
    if (this.#rev + AHEAD / 2 >= this.#ceiling) await this.#reserve()
    this.#signature = signature
    return ++this.#rev
  }

  /** Sets revisions aside long before they are needed, so that a disk that takes nothing does not hide the board. */
  async #reserve(): Promise<void> {
    const ceiling = this.#rev + AHEAD
    await this.#deps.files.write(FILE, { ceiling }).then(() => (this.#ceiling = ceiling), () => {})
  }
}
