import type { tags } from 'typia'
import type { Positive, Text } from '../../../sdk/types.js'
import type { Harness } from '../../agent/contract.js'
import type { LoopCheck, OutputSpec } from '../../loops/contract.js'

/** The id of a design; `runs` is a word of routes. */
export type WorkflowId = string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
/** The id of a step within its design. */
export type WorkflowStepId = string & tags.MaxLength<24> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>

/** One conversation of a design. */
export interface WorkflowStep {
  id: WorkflowStepId
  title: string & tags.MinLength<1> & tags.MaxLength<60>
  /** Left out: the request of the run. */
  goal?: string & tags.MinLength<1> & tags.MaxLength<8000>
  /** The words of each round; left out: the request of the run. */
  prompt?: string & tags.MinLength<1> & tags.MaxLength<20000>
  /** The steps that must be done first; what they found is handed to this one. */
  needs: WorkflowStepId[] & tags.MaxItems<24>
  /** `continue`: goes on in the conversation of the one step that it needs. */
  handoff: 'fresh' | 'continue'
  /** The document that each round writes. */
  output: OutputSpec
  /** What must hold before it is done; without output and checks it is done with its turn. */
  checks: LoopCheck[] & tags.MaxItems<12>
  /** Whether each round begins a new session of the provider. */
  context: 'fresh' | 'continue'
  maxSpendUsd?: number & tags.ExclusiveMinimum<0>
  /** The provider; left out: the default one. */
  agent?: Text & tags.MaxLength<120>
  harness?: Harness
  account?: Text & tags.MaxLength<320>
  model?: string & tags.MinLength<1> & tags.MaxLength<200>
  /** The persona that its turns wear. */
  actsAs?: string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
}
/** Lets a program run the design and wait for a verdict. */
export interface WorkflowGate {
  /** The step whose document decides. */
  step: WorkflowStepId
  /** The field of that document, which is required there. */
  field: string & tags.MinLength<1> & tags.MaxLength<40>
  /** The values of it that pass, as text. */
  pass: (Text & tags.MaxLength<200>)[] & tags.MinItems<1> & tags.MaxItems<20>
  /** Runs a day, by UTC; left out: 50. */
  dailyMax?: Positive & tags.Maximum<10000>
}
/** A saved design. */
export interface Workflow {
  id: WorkflowId
  name: string & tags.MinLength<1> & tags.MaxLength<80>
  description?: string & tags.MaxLength<400>
  steps: WorkflowStep[] & tags.MinItems<1> & tags.MaxItems<24>
  /** The number of steps that may run at once. */
  maxParallel: Positive & tags.Maximum<8>
  /** What a run may cost. */
  maxSpendUsd?: number & tags.ExclusiveMinimum<0>
  gate?: WorkflowGate
}
