import type { Host } from '../../sdk/index.js'
import type { LiveFrame } from '../../sdk/kernel.js'
import type { AgentCard, Roster } from '../agents/contract.js'
import type { AgentEvent, AgentsEvent, AttentionEvent } from './contract.js'

/** Runs something later, unless the answer is called before. */
export type After = (ms: number, run: () => void) => () => void

/** What the board needs of the daemon. */
export interface BoardParts {
  readonly read: () => Promise<Roster>
  readonly show: (frames: LiveFrame[]) => Promise<unknown>
  readonly failed: (error: unknown) => void
  readonly after?: After
}

const PAUSE = 1_000
const PATIENCE = 2_000

const timer: After = (ms, run) => {
  const started = setTimeout(run, ms).unref()
  return () => clearTimeout(started)
}

/**
 * The fleet as watchers see it: read when something may have changed, at most once a second, and told as what differs.
 *
 * While nobody watches nothing is read. Whoever comes next has it read first, so that no change in between is lost.
 */
export class Board {
  readonly #parts: BoardParts
  readonly #after: After
  /** Each card as it was told last; undefined before the first reading. */
  #told: Map<string, string> | undefined
  #cards = 0
  #land = 0
  #last: Promise<void> = Promise.resolve()
  #next: Promise<void> | undefined
  #watchers = 0
  #ready = false
  #paused = false
  #again = false

  constructor(parts: BoardParts) {
    this.#parts = parts
    this.#after = parts.after ?? timer
  }

  /** The groups are up: from now on their roster counts. */
  ready(): void {
    this.#ready = true
    this.changed()
  }

  /** Counts a watcher and waits, for a while, until the fleet is told as it is now; call the answer when it has gone. */
  async watched(): Promise<() => void> {
    this.#watchers += 1
    if (this.#ready) await this.#within(this.#refresh())
    return () => {
      this.#watchers -= 1
    }
  }

  /** Something about the fleet may be another. */
  changed(): void {
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
      this.changed()
    })
    void this.#refresh()
  }

  /** One reading at a time; whoever asks while one is under way shares the one after it. */
  #refresh(): Promise<void> {
    this.#next ??= this.#last = this.#last.then(() => {
      this.#next = undefined
      return this.#read().catch(this.#parts.failed)
    })
    return this.#next
  }

  async #read(): Promise<void> {
    const { agents, rev } = await this.#parts.read()
    const told = new Map<string, string>(agents.map(card => [card.id, JSON.stringify(card)]))
    const frames = this.#told ? differences(this.#told, told, agents, rev) : []
    if (this.#told && !frames.length) return
    this.#told = told
    const cards = agents.reduce((sum, card) => sum + (card.cards?.length ?? 0), 0)
    const land = agents.filter(({ landRequested }) => landRequested).length
    const attention = cards === this.#cards && land === this.#land ? [] : [attentionFrame(cards, land)]
    this.#cards = cards
    this.#land = land
    const whole: AgentsEvent = { kind: 'agents', agents, rev }
    await this.#parts.show([...frames, { data: whole, snapshot: true, mode: 'snapshot' }, ...attention])
  }

  async #within(reading: Promise<void>): Promise<void> {
    const late = Promise.withResolvers<void>()
    const cancel = this.#after(PATIENCE, late.resolve)
    await Promise.race([reading, late.promise])
    cancel()
  }
}

const differences = (before: ReadonlyMap<string, string>, now: ReadonlyMap<string, string>, agents: readonly AgentCard[], rev: number): LiveFrame[] => {
  const moved = agents.filter(({ id }) => before.get(id) !== now.get(id)).map((agent): AgentEvent => ({ kind: 'agent', rev, agent }))
  const gone = [...before.keys()].filter(id => !now.has(id)).map((removed): AgentEvent => ({ kind: 'agent', rev, removed }))
  return [...moved, ...gone].map(data => ({ data, mode: 'delta' }))
}

/** What a badge counts; the groups of the other figures are not there. */
export const attentionFrame = (cards: number, land: number): LiveFrame => {
  const tokens: AttentionEvent = { kind: 'attention', cards, approvals: 0, needs: 0, land, ci: 0, issues: 0 }
  const data: AttentionEvent = { ...tokens, offload: 0 }
  return { data, tokens, snapshot: true }
}
