import type { BriefingNote, TurnPersona } from '../../personas/contract.js'

/** The arm of a turn or conversation in an experiment. */
export interface ExperimentArm {
  on: boolean
  /** Only arms of one cohort are compared: those of one text, drawn with the same share. */
  cohort: string
}
/** The arms of the experiments that a turn is in; an experiment that is left out is not running. */
export interface TurnArms {
  /** Whether the turn asks for short answers. */
  readonly terse?: ExperimentArm
  /** Whether its conversation was taught to search. */
  readonly search?: ExperimentArm
}

export interface BriefingCalls {
  /** The notes, beside context and skills, that a first turn of the sandbox's own loop with this persona would have. */
  'agent.notes'(input: { persona: TurnPersona; unattended: boolean }): { notes: BriefingNote[] }

  /** The cohorts of the experiments of the settings, as turns that begin now are in them. */
  'agent.cohorts'(): { terse: string; search: string }
}
