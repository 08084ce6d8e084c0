import type { RunEnd } from './frames/frames.js'

/**
 * The phases of a turn:
 *
 * preparing → running ⇄ parked → switching → running … → worked → settling → leaving → done
 *
 * A stop or a failure leads from any of the first five to `stopping` or `failing`, and from there to `settling`. When
 * the daemon stops, it freezes a turn that is not settling yet. The next start finds it as `found`, or as `cut-off` if
 * its end was being written, and continues from the stored state.
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
  | 'found'
  | 'cut-off'

/** How a turn ends when nobody stops it: the first error decides. */
export type TurnOutcome = 'completed' | 'failed' | 'outage' | 'interrupted'

/** The state of a turn, which decides its next transitions. */
export interface TurnState {
  readonly phase: Phase
  /** The number of open cards, or after a restart of those to open again. */
  readonly cards: number
  readonly outcome: TurnOutcome
  /** A stop was requested: the next message does not start automatically, however the turn ends. */
  readonly stopAsked: boolean
}

/** The events of a turn. */
export type TurnEvent =
  /** Its tree is ready. */
  | 'prepared'
  | 'card-raised'
  | 'card-lowered'
  /** It moves to another provider, account or model; and has moved. */
  | 'switch'
  | 'switched'
  /** Its adapter has finished. */
  | 'worked'
  | 'stop'
  /** Its log has an error, or an outage after which the message can be retried. */
  | 'error'
  | 'outage'
  /** It ends as failed now. */
  | 'fail'
  /** Its log cannot be written. */
  | 'broken'
  /** It begins to end; its outcome is decided and being written; it has ended and the conversation is free. */
  | 'settle'
  | 'leave'
  | 'end'
  /** The daemon ends. */
  | 'freeze'
  | RestartEvent

/**
 * What the next start does with a turn: `restart` resumes it, `give-up` keeps it only for a card that can still be
 * answered, and `supersede` ends it, because a newer run of its conversation was found.
 */
export type RestartEvent = 'restart' | 'give-up' | 'supersede'

/** The effects of an event, in this order. */
export type Effect = 'show' | 'note-stop' | 'lower-cards' | 'abort' | 'plan-resume' | RestartEffect

/** The effects of a restart. */
export type RestartEffect = 'fail-subagents' | 'cancel-offers' | 'restore-cards' | 'resume' | 'finish'

const NONE: readonly Effect[] = []
const WORKING: ReadonlySet<Phase> = new Set(['preparing', 'running', 'parked', 'switching', 'worked'])
const ENDING: ReadonlySet<Phase> = new Set(['settling', 'leaving', 'done'])

const AFTER_RESTART = ['fail-subagents', 'cancel-offers'] as const

/** The state a new turn begins in. */
export const NEW_TURN: TurnState = { phase: 'preparing', cards: 0, outcome: 'completed', stopAsked: false }

/** The state in which a restart finds a turn. */
export const foundAs = (cards: number, { stopAsked, ending }: { stopAsked: boolean; ending: boolean }): TurnState => ({
  ...NEW_TURN,
  phase: ending ? 'cut-off' : 'found',
  cards,
  stopAsked,
})

/** The state after an event, and its effects; an event that does not apply to a state changes nothing. */
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
    case 'error':
      return [ending(state, 'failed'), NONE]
    case 'outage':
      return [ending(state, 'outage'), NONE]
    case 'fail':
      return WORKING.has(phase) ? to('failing', ['lower-cards', 'abort']) : stay
    case 'broken':
      return [{ ...ending(state, 'failed'), phase: WORKING.has(phase) ? 'failing' : phase }, ['abort']]
    case 'settle':
      return phase === 'frozen' || ENDING.has(phase) ? stay : to('settling')
    case 'leave':
      // An end that could not be written is repeated, with the resume that it plans.
      return phase === 'settling' || phase === 'leaving'
        ? to('leaving', state.outcome === 'outage' ? ['plan-resume'] : NONE)
        : stay
    case 'end':
      return phase === 'frozen' ? stay : to('done')
    case 'freeze':
      return ENDING.has(phase) ? stay : to('frozen')
    case 'restart':
    case 'give-up':
    case 'supersede':
      return restarted(state, event)
  }
}

const ending = (state: TurnState, outcome: TurnOutcome): TurnState =>
  state.outcome === 'completed' ? { ...state, outcome } : state

/** A turn that this daemon froze is left to the next start. */
const restarted = (state: TurnState, event: RestartEvent): [TurnState, readonly Effect[]] => {
  const { phase, cards, stopAsked } = state
  if (phase === 'frozen' || ENDING.has(phase)) return [state, NONE]
  if (phase === 'cut-off') return [{ ...state, phase: 'worked', cards: 0 }, ['finish']]
  // A stop, or a log that cannot be written, came first.
  if (phase !== 'found') return [state, ['finish']]
  if (event === 'supersede') return [{ ...state, phase: 'worked', cards: 0, outcome: 'interrupted' }, ['finish']]
  if (stopAsked) return [{ ...state, phase: 'stopping', cards: 0 }, ['finish']]
  // Each card is counted again when it is opened.
  if (cards > 0) return [{ ...state, phase: 'preparing', cards: 0 }, [...AFTER_RESTART, 'restore-cards']]
  if (event === 'restart') return [{ ...state, phase: 'preparing' }, [...AFTER_RESTART, 'resume']]
  return [{ ...state, phase: 'worked', outcome: 'interrupted' }, [...AFTER_RESTART, 'finish']]
}

const awake = (cards: number): Phase => (cards > 0 ? 'parked' : 'running')

const counted = (state: TurnState, cards: number): [TurnState, readonly Effect[]] => {
  const { phase } = state
  return [{ ...state, cards, phase: phase === 'running' || phase === 'parked' ? awake(cards) : phase }, NONE]
}

/** A second stop, or one after the outcome is decided, only prevents the next message from starting. */
const stopped = (state: TurnState): [TurnState, readonly Effect[]] => {
  const { phase, stopAsked } = state
  const late = stopAsked || phase === 'leaving' || phase === 'done' || phase === 'frozen'
  if (late) return [{ ...state, stopAsked: true }, NONE]
  return [
    { ...state, stopAsked: true, phase: phase === 'settling' ? phase : 'stopping' },
    ['show', 'note-stop', 'lower-cards', 'abort'],
  ]
}

/** How the turn ends, unless its end is stored already. */
export const endOf = ({ outcome, stopAsked }: TurnState): RunEnd => {
  if (outcome === 'interrupted') return 'interrupted'
  if (stopAsked) return 'stopped'
  return outcome === 'completed' ? 'completed' : 'failed'
}

/** Its adapter has finished, or the turn is ending. */
export const isWorked = ({ phase }: TurnState): boolean => phase === 'worked' || ENDING.has(phase)

/** Its end is being written, which cannot be interrupted. */
export const isSettling = ({ phase }: TurnState): boolean => ENDING.has(phase)

/** Outcome decided; shown as idle while the last writes finish. */
export const isLeaving = ({ phase }: TurnState): boolean => phase === 'leaving' || phase === 'done'

/** Whether a card may be opened. */
export const mayAsk = ({ phase, stopAsked }: TurnState): boolean => WORKING.has(phase) && !stopAsked

/** The turn as the board shows it. */
export const shownAs = ({ cards, stopAsked }: TurnState): 'running' | 'parked' | 'stopping' =>
  stopAsked ? 'stopping' : cards > 0 ? 'parked' : 'running'
