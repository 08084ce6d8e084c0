import type { AgentCard } from '../../../agents/contract.js'
import type { SystemEvent } from '../../../system/contract.js'

/** The conversations of the board by id, and the revision they are of. */
export interface FleetState {
  readonly cards: ReadonlyMap<string, AgentCard>
  readonly rev: number
}

export const NO_FLEET: FleetState = { cards: new Map(), rev: -1 }

type RosterEvent = Extract<SystemEvent, { kind: 'agents' | 'agent' }>

/** The board after an event; ignores an older revision. */
export const fleetAfter = (state: FleetState, event: RosterEvent): FleetState => {
  if (event.rev < state.rev) return state
  if (event.kind === 'agents') return { cards: new Map(event.agents.map(card => [card.id, card])), rev: event.rev }
  const cards = new Map(state.cards)
  if (event.agent) cards.set(event.agent.id, event.agent)
  if (event.removed) cards.delete(event.removed)
  return { cards, rev: event.rev }
}

/** What a person has to do about a conversation; the order is that of the page. */
export type FleetSection = 'needs' | 'working' | 'ready' | 'done'

const WORKING = new Set<AgentCard['status']>(['running', 'stopping', 'resuming'])
const FAILED = new Set<AgentCard['status']>(['error', 'interrupted', 'conflict', 'awaiting'])

/** The section in which a conversation is shown. */
export const sectionOf = (card: AgentCard): FleetSection => {
  if (card.cards?.length || FAILED.has(card.status) || card.landRequested) return 'needs'
  if (WORKING.has(card.status)) return 'working'
  return card.status === 'ready' ? 'ready' : 'done'
}

/** Conversations by section, newest activity first. */
export const sectionsOf = (cards: Iterable<AgentCard>): ReadonlyMap<FleetSection, readonly AgentCard[]> => {
  const sections = new Map<FleetSection, AgentCard[]>([
    ['needs', []],
    ['working', []],
    ['ready', []],
    ['done', []],
  ])
  for (const card of [...cards].sort((a, b) => b.updatedAt - a.updatedAt)) sections.get(sectionOf(card))!.push(card)
  return sections
}

/** Whether a turn of the conversation is under way or parked. */
export const turnIsLive = ({ status }: Pick<AgentCard, 'status'>): boolean =>
  WORKING.has(status) || status === 'awaiting'

/** The items that wait for one person, newest first: requests to land, and their stuck conversations. */
export const waitsForPerson = (
  cards: Iterable<AgentCard>,
  { email, lands }: { readonly email: string; readonly lands: boolean },
): { readonly landings: readonly AgentCard[]; readonly stuck: readonly AgentCard[] } => {
  const sorted = [...cards].sort((a, b) => b.updatedAt - a.updatedAt)
  const stuck = new Set<AgentCard['status']>(['error', 'interrupted', 'conflict'])
  return {
    landings: lands ? sorted.filter(({ landRequested }) => landRequested !== undefined) : [],
    stuck: sorted.filter(card => card.lastBy === email && stuck.has(card.status) && !card.landRequested),
  }
}
