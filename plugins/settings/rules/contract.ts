import type { tags } from 'typia'
import type { Count, Millis, Ok, Text } from '../../../sdk/types.js'

/** When rules are asked: a turn is about to end, a push is about to start, the work of a turn may land. */
export type RuleMoment = 'turn.ending' | 'push.starting' | 'agent.finished'
/** How the work of a turn ended. */
export type RuleOutcome = 'clean' | 'error' | 'conflict'

/** Runs a command; it fails when its exit code is not 0. */
export interface CommandAction {
  kind: 'command'
  /** Read by `/bin/sh`, behind the wall; empty: the rule is off. */
  command: string & tags.MaxLength<500>
  /** 900000 unless set. A command that takes longer is ended and counts as failed. */
  timeoutMs?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<3600000>
}
/** Tells the agent something, once a turn. */
export interface InstructAction {
  kind: 'instruct'
  text: string & tags.MinLength<1> & tags.MaxLength<4000>
}
/** Decides whether work may land, or holds a push. */
export interface VerdictAction {
  kind: 'verdict'
  verdict: 'allow' | 'hold'
}
/** Runs the declared check of every package that the turn edited: its script typecheck, else lint, else test. */
export interface BuiltinAction {
  kind: 'builtin'
  name: 'verify-edits'
}
export type RuleAction = CommandAction | InstructAction | VerdictAction | BuiltinAction

/** When a rule applies; all given conditions must hold. */
export interface RuleCondition {
  /** A repository that is affected; `root` is the workspace's own. For the verdict `allow` it is the only one. */
  repo?: string & tags.MinLength<1> & tags.MaxLength<4096>
  /** Globs from the workspace root. One path that fits is enough; for the verdict `allow` every path must fit. */
  paths?: (string & tags.MinLength<1> & tags.MaxLength<1000>)[] & tags.MaxItems<20>
  outcome?: RuleOutcome[] & tags.MaxItems<3>
}

/**
 * A standing rule.
 *
 * At `turn.ending` a rule runs a command, instructs, or is the builtin; at `push.starting` it runs a command or holds;
 * at `agent.finished` it gives a verdict.
 */
export interface Rule {
  id: string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,99}$'>
  label: string & tags.MinLength<1> & tags.MaxLength<80>
  moment: RuleMoment
  when?: RuleCondition
  action: RuleAction
  /** On unless set. */
  enabled?: boolean
}
export type RuleList = Rule[] & tags.MaxItems<50>

/** What rules are compared with; a condition on something that is left out does not hold. */
export interface OccasionFacts {
  /** The affected repositories; `root` is the workspace's own. */
  repos?: string[]
  /** The changed files, from the workspace root. */
  paths?: string[]
  outcome?: RuleOutcome
}

/** The same as people give it. */
export interface TriedFacts extends OccasionFacts {
  repos?: (string & tags.MaxLength<4096>)[] & tags.MaxItems<200>
  paths?: (string & tags.MaxLength<4096>)[] & tags.MaxItems<1000>
}

/** When a rule last did something, and how often it did. */
export interface RuleFiring {
  id: string
  at: Millis
  count: number & tags.Type<'uint32'> & tags.Minimum<1>
  outcome: FiringOutcome
}
/** It acted, it stopped a push, or it held something for a person. */
export type FiringOutcome = 'acted' | 'blocked' | 'held'

/** A rule that acts. */
export interface ActingRule {
  id: string
  label: string
  action: RuleAction
  /** Its verdict decides. */
  decides: boolean
}
/** A rule that does not act, and why. */
export interface SkippedRule {
  id: string
  why: string
}
/** Which rules would act. */
export interface RulesTried {
  matched: ActingRule[]
  skipped: SkippedRule[]
  /** What the rules decide where they decide something. */
  verdict?: 'allow' | 'hold'
}

/** What a rule did. */
export interface RuleRun {
  id: string
  label: string
  action: RuleAction['kind']
  outcome: 'ok' | 'failed' | 'allow' | 'hold'
  detail?: string
}
/** Words for the agent, and the rule that they are from. */
export interface RuleWords {
  id: string
  label: string
  text: string
}
/** What the rules of a moment did, and whether what they were asked about may go on. */
export interface RulesFired {
  go: boolean
  /** The rule that decided. */
  ruleId?: string
  label?: string
  reason?: string
  /** What the agent is told, at `turn.ending`. */
  instruct?: RuleWords[]
  ran: RuleRun[]
}
/** A rule that is in force at a moment. */
export interface StandingRule {
  id: string
  label: string
  /** What it needs to know. */
  asks: ('repo' | 'paths' | 'outcome')[]
}

export interface RuleCalls {
  /**
   * List when each rule last did something, the newest first.
   *
   * A rule that matched and had nothing to do is not listed, nor is one that was deleted.
   */
  'GET /settings/rule-firings'(): RuleFiring[]

  /**
   * Try which rules would act, and why the others would not: the stored ones, or those in `rules`. Runs nothing.
   *
   * - 400: an unknown moment, a rule that does not fit, or two rules with one id
   * - 413: too many paths for so many globs
   */
  'POST /settings/rules/test'(input: { moment: RuleMoment; facts: TriedFacts; rules?: RuleList }): RulesTried

  /** The rules that are in force at a moment. */
  'rules.standing'(input: { moment: RuleMoment }): { rules: StandingRule[] }
  /** The rules that would act; runs nothing. */
  'rules.matching'(input: { moment: RuleMoment; facts: OccasionFacts }): RulesTried
  /** Notes that a rule did something. */
  'rules.stamp'(input: { id: string; outcome: FiringOutcome }): Ok
  /**
   * Runs what acts at a moment, in order, and says whether it may go on.
   *
   * At `push.starting` one run goes on at a time; a second one on the same occasion joins it.
   */
  'rules.fire'(input: {
    moment: RuleMoment
    facts: OccasionFacts
    /** The folder in which commands run, from the workspace root. */
    cwd?: Text
    /** The conversation in whose tree commands run. */
    conversationId?: Text
    /** The rules that have instructed this turn already. */
    said?: string[]
  }): RulesFired
  /** Ends what runs at a moment; it counts as failed. */
  'rules.cancel'(input: { moment: RuleMoment }): { ended: Count }
}

export interface RuleEvents {
  /** Rules that apply to a push are about to run, in this order. */
  'rules.began': {
    moment: RuleMoment
    facts: OccasionFacts
    cwd?: string
    rules: { id: string; label: string; command?: string }[]
    startedAt: number
  }
  /** They ended; `cancelled`: by a call, or because nobody waits for them any more. */
  'rules.ended': { moment: RuleMoment; go: boolean; reason?: string; cancelled?: true; endedAt: number }
  /** The command of a rule started. */
  'rule.running': { moment: RuleMoment; ruleId: string; command: string; session?: string; startedAt: number }
  /** It ended; `output` is the end of what it wrote. */
  'rule.ran': {
    moment: RuleMoment
    ruleId: string
    outcome: 'ok' | 'failed'
    exitCode?: number
    timedOut?: boolean
    output: string
  }
}
