/**
 * Where a turn is on its way from its message to its end:
 *
 * preparing → running ⇄ parked → switching → running … → worked → settling → leaving → done
 *
 * A stop or a failure leads from any of the first five to `stopping` or `failing`, and from there to `settling`. The
 * end of the daemon freezes a turn that is not settling yet: the next start goes on from what is written.
 */
export type Phase =
  | 'preparing'
  | 'running'
  | 'parked'
  | 'switching'
  | 'worked'
  | 'failing'
  | 'stopping'
  | 'settling'
  | 'leaving'
  | 'done'
  | 'frozen'

/** All that decides what may happen to a turn next. */
export interface TurnState {
  readonly phase: Phase
  /** How many cards are up. */
  readonly cards: number
  /** Somebody wanted the conversation free: what waits is not to follow by itself, however the turn ends. */
  readonly stopAsked: boolean
}

/** What happens to a turn. */
export type TurnEvent =
  /** Its tree is ready. */
  | 'prepared'
  | 'card-raised'
  | 'card-lowered'
  /** It goes on with another provider, account or model; and does so now. */
  | 'switch'
  | 'switched'
  /** Its adapter is done: it goes on nowhere. */
  | 'worked'
  | 'stop'
  | 'fail'
  /** Its log cannot be written. */
  | 'broken'
  /** From here on it only ends; its outcome is decided, and only written down; it is over and the conversation free. */
  | 'settle'
  | 'leave'
  | 'end'
  /** The daemon ends. */
  | 'freeze'

/** What is to be done because of an event, in this order. */
export type Effect = 'show' | 'note-stop' | 'lower-cards' | 'abort'

const NONE: readonly Effect[] = []
const WORKING: ReadonlySet<Phase> = new Set(['preparing', 'running', 'parked', 'switching', 'worked'])
const ENDING: ReadonlySet<Phase> = new Set(['settling', 'leaving', 'done'])

/** The state a turn begins in, or one that a restart found with a stop asked for. */
export const beginning = (stopAsked: boolean): TurnState => ({
  phase: stopAsked ? 'stopping' : 'preparing',
  cards: 0,
  stopAsked,
})

/** The state after an event, and what is to be done; an event that means nothing in a state changes nothing. */
export const after = (state: TurnState, event: TurnEvent): [state: TurnState, effects: readonly Effect[]] => {
  const { phase, cards } = state
  const to = (next: Phase, effects = NONE): [TurnState, readonly Effect[]] => [{ ...state, phase: next }, effects]
  const stay: [TurnState, readonly Effect[]] = [state, NONE]
  switch (event) {
    case 'prepared':
      return phase === 'preparing' ? to(awake(cards)) : stay
    case 'card-raised':
      return counted(state, cards + 1)
    case 'card-lowered':
      return counted(state, Math.max(0, cards - 1))
    case 'switch':
      return phase === 'running' || phase === 'parked' ? to('switching') : stay
    case 'switched':
      return phase === 'switching' ? to(awake(cards)) : stay
    case 'worked':
      return WORKING.has(phase) || phase === 'failing' ? to('worked') : stay
    case 'stop':
      return stopped(state)
    case 'fail':
      return WORKING.has(phase) ? to('failing', ['lower-cards', 'abort']) : stay
    case 'broken':
      return to(WORKING.has(phase) ? 'failing' : phase, ['abort'])
    case 'settle':
      return phase === 'frozen' || ENDING.has(phase) ? stay : to('settling')
    case 'leave':
      return phase === 'settling' ? to('leaving') : stay
    case 'end':
      return phase === 'frozen' ? stay : to('done')
    case 'freeze':
      return ENDING.has(phase) ? stay : to('frozen')
  }
}

const awake = (cards: number): Phase => (cards > 0 ? 'parked' : 'running')

const counted = (state: TurnState, cards: number): [TurnState, readonly Effect[]] => {
  const { phase } = state
  return [{ ...state, cards, phase: phase === 'running' || phase === 'parked' ? awake(cards) : phase }, NONE]
}

/** A stop that comes again, or when the outcome is decided, only keeps what waits from following. */
const stopped = (state: TurnState): [TurnState, readonly Effect[]] => {
  const { phase, stopAsked } = state
  const late = stopAsked || phase === 'leaving' || phase === 'done' || phase === 'frozen'
  if (late) return [{ ...state, stopAsked: true }, NONE]
  return [
    { ...state, stopAsked: true, phase: phase === 'settling' ? phase : 'stopping' },
    ['show', 'note-stop', 'lower-cards', 'abort'],
  ]
}

/** Its adapter is done, or the turn is ending. */
export const isWorked = ({ phase }: TurnState): boolean => phase === 'worked' || ENDING.has(phase)

/** Its end is being written, which nothing interrupts any more. */
export const isSettling = ({ phase }: TurnState): boolean => ENDING.has(phase)

/** Its outcome is decided: it shows as free while the last writes finish. */
export const isLeaving = ({ phase }: TurnState): boolean => phase === 'leaving' || phase === 'done'

/** Whether a card may be put up. */
export const mayAsk = ({ phase, stopAsked }: TurnState): boolean => WORKING.has(phase) && !stopAsked

/** The turn as the board shows it. */
export const shownAs = ({ cards, stopAsked }: TurnState): 'running' | 'parked' | 'stopping' =>
  stopAsked ? 'stopping' : cards > 0 ? 'parked' : 'running'
