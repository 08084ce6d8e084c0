import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Text } from '../../sdk/types.js'
import type { AdmissionFloor, CommandClass, SettingVerdict } from '../settings/contract.js'

/** What is decided about. */
export interface SafetySubject {
  kind: 'command' | 'script' | 'action' | 'tool' | 'path' | 'host'
  /** The line, the script, the text that is sent, the tool's name, the path, the host. */
  text: Text & tags.MaxLength<20000>
  /** The provider of an action, such as `chat`. */
  provider?: string & tags.MaxLength<60>
  /** The type of an action, such as `message.send`. */
  type?: string & tags.MaxLength<60>
  /** From the workspace root. */
  cwd?: string & tags.MaxLength<1000>
  repo?: string & tags.MaxLength<300>
}
/** What a rule is about; all given parts must hold, at least one is required. */
export interface SafetyMatch {
  class?: CommandClass
  /** On a path, a host or the name of a tool. */
  glob?: Text & tags.MaxLength<500>
  /** On the text; RE2 syntax, which has no backreferences. */
  regex?: Text & tags.MaxLength<500>
  /** `<provider>.<type>` or `<provider>.*`. */
  action?: Text & tags.MaxLength<121>
}
/** The turns that a rule is for; left out: all. */
export interface SafetyWhen {
  unattended?: boolean
  /** The turn has taken in content from outside. */
  outside?: boolean
  persona?: Text & tags.MaxLength<60>
  repo?: Text & tags.MaxLength<300>
}
/** A rule; the first one that matches decides. */
export interface SafetyRule {
  id: string & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
  label: Text & tags.MaxLength<120>
  target: SafetySubject['kind']
  match: SafetyMatch
  when?: SafetyWhen
  verdict: SettingVerdict
  /** What the agent is told when the rule holds or denies. */
  message?: string & tags.MaxLength<500>
  /** True when left out. */
  enabled?: boolean
}
/** How a model judges what the rules allow. */
export interface SafetyJudge {
  /** `shadow`: judge and log, decide nothing. */
  mode: 'off' | 'shadow' | 'on'
  /** The classes that are shown to the model. */
  ask: CommandClass[] | 'all'
  /** Show sends and posts too. */
  actions: boolean
  /** `<provider>:<model>`, in order; empty: what is connected. */
  models: (string & tags.MinLength<3> & tags.MaxLength<200>)[] & tags.MaxItems<10>
  timeoutMs: Count & tags.Minimum<1000> & tags.Maximum<60000>
  /** What holds when no model answers. */
  onFailure: SettingVerdict
}
/** What agents may do while nobody looks. */
export interface SafetyPolicy {
  /** The owner's own words, for the judge; empty: nothing to judge by. */
  prose: string & tags.MaxLength<20000>
  judge: SafetyJudge
  rules: SafetyRule[] & tags.MaxItems<200>
  /** Hold reads of secrets in turns that have read content from outside. */
  outsideFloor: boolean
}
/** What a model said about a subject. */
export interface JudgeAnswer {
  verdict: SettingVerdict
  reason: string
  /** The sentence of the policy that it rests on. */
  quote?: string
  model: string
  ms: Count
  costUsd?: number
}
/** Which step decided. */
export type DecidedBy = 'rule' | 'commandRules' | 'actionRules' | 'outside-floor' | 'judge' | 'default'
/** What was decided about a subject, and why. */
export interface SafetyDecision {
  verdict: SettingVerdict
  by: DecidedBy
  ruleId?: string
  classes: CommandClass[]
  reason: Text & tags.MaxLength<1000>
  judge?: JudgeAnswer
}
/** What a person said about a verdict. */
export interface VerdictReview {
  correct: boolean
  note?: string
  by: string
  at: Millis
}
/** What became of a decided subject. */
export type SafetyOutcome = 'ran' | 'refused' | 'approved' | 'declined' | 'pending' | 'shadow'
/** One entry of the log: something that was held, denied, judged or excepted. Stored values are masked. */
export interface SafetyVerdict extends SafetyDecision {
  id: string
  at: Millis
  subject: SafetySubject
  conversationId?: string
  run?: string
  persona?: string
  unattended: boolean
  /** The content from outside that the turn had read. */
  outside?: string
  outcome: SafetyOutcome
  /** The person or `token:<label>` who answered. */
  answeredBy?: string
  policyRevision: string
  review?: VerdictReview
}
/** A class with what the settings say of it. */
export interface ClassEntry {
  class: CommandClass
  label: string
  setting?: SettingVerdict
  examples: string[]
}
/** Whether a model could judge now. */
export interface JudgeState {
  available: boolean
  model?: string
  reason?: string
}
/** The policy in force. */
export interface SafetyState {
  policy: SafetyPolicy
  revision: string
  classes: ClassEntry[]
  judge: JudgeState
  /** How often people agreed with a verdict. */
  reviewed: { right: Count; wrong: Count }
}
/** The turn in which something would happen. */
export interface TestContext {
  unattended?: boolean
  outside?: boolean
  persona?: string & tags.MaxLength<60>
  repo?: string & tags.MaxLength<300>
}
/** One step of a decision. */
export interface DecisionStep {
  step: Count
  matched: boolean
  detail: string
}
/** A recorded subject whose verdict would change. */
export interface ReplayChange {
  at: Millis
  /** The entry of the log; left out for a plain allow. */
  id?: string
  subject: SafetySubject
  conversationId?: string
  persona?: string
  unattended: boolean
  outside?: string
  was: SettingVerdict
  now: SettingVerdict
  by: DecidedBy
  ruleId?: string
  reason: Text & tags.MaxLength<1000>
  /** The judge would be asked now: `now` is what rules and settings say. */
  unjudged?: boolean
  /** Decided by the part of the text that was kept. */
  cut?: boolean
}
/** How often a pair of verdicts occurs. */
export interface ReplayCount {
  was: SettingVerdict
  now: SettingVerdict
  count: Count
}
/** What a policy would have decided. */
export interface SafetyReplay {
  replayed: Count
  /** When the oldest subject was decided. */
  from?: Millis
  /** More were recorded than replayed. */
  truncated: boolean
  counts: ReplayCount[]
  unjudged: Count
  /** Newest first, at most 1,000; all are counted. */
  changes: ReplayChange[]
}
/** The turn in which something is about to happen. */
export interface DecisionContext {
  conversationId?: string
  run?: string
  persona?: string
  repo?: string
  unattended: boolean
  /** The content from outside that the turn has read, such as `fetch example.org`. */
  outside?: string
}

/** What decides for other groups. */
export interface SafetyServices {
  /**
   * Decides whether something runs, and logs it; with a `hold`, `id` names the entry that `safety.settle` closes.
   *
   * A hold of an unattended turn, or of an action, is logged as refused.
   */
  'safety.decide'(input: { subject: SafetySubject; context: DecisionContext }): SafetyDecision & {
    id?: string
    /** What the agent is told on a hold or denial. */
    message?: string
  }
  /** Logs what became of something that was held. */
  'safety.settle'(input: { id: string; outcome: 'approved' | 'declined' | 'refused'; answeredBy?: string }): Ok
  /** Names the classes of a shell line. */
  'safety.classify'(input: { text: string }): { classes: CommandClass[] }
  /** Says whether something that starts turns by itself may, by its source: at once, after a person's yes, or not. */
  'safety.admit'(input: { source: keyof AdmissionFloor }): { verdict: SettingVerdict }
}

/** What agents may do while nobody looks. */
export interface SafetyCalls extends SafetyServices {
  /** Read the policy, the classes with their settings, whether a model can judge, and how often people agreed. */
  'GET /safety'(): SafetyState

  /**
   * Replace the policy whole.
   *
   * Every pattern is compiled before anything is written. It is in force for the next decision, in running turns too.
   *
   * - 400: a bad regex or glob, two rules of one id, a rule that could never match, a value out of range
   * - 409: `revision` names another revision; nothing was written
   * - 422: the file of the policy cannot be read, or its folder is none
   * - 424: the file of the policy could not be written; the message says why
   */
  'POST /safety'(input: { policy: SafetyPolicy; revision?: string & tags.MaxLength<100> }): {
    ok: true
    revision: string
  }

  /**
   * Decide without doing anything: the classes found, every step, and the result.
   *
   * With `policy` by an unsaved one. A model is asked only when `judge` is true. Nothing is logged.
   *
   * - 400: a bad subject or policy
   * - 424: `judge` is true and no model can be asked; the message says why
   * - 429: more than 30 judged tests a minute
   */
  'POST /safety/test'(input: {
    subject: SafetySubject
    context?: TestContext
    policy?: SafetyPolicy
    judge?: boolean
  }): { decision: SafetyDecision; steps: DecisionStep[] }

  /**
   * Decide what was recorded again under an unsaved policy and the settings of today, and list what would change.
   *
   * It takes the log and the last 20,000 plain allows, newest first, and asks no model: a recorded answer of the judge
   * counts where the policy asks the same, else the entry is decided by the rules alone and marked `unjudged`. At most
   * 30 seconds.
   *
   * - 400: a bad regex or glob, two rules of one id, a rule that could never match, a value out of range
   * - 409: another replay is running
   * - 429: more than 10 a minute
   */
  'POST /safety/replay'(input: {
    policy: SafetyPolicy
    since?: Millis
    /** 20,000 when left out; more than 40,000 counts as that. */
    limit?: Count & tags.Minimum<1>
  }): SafetyReplay

  /**
   * List what was held, denied, judged or excepted, newest first.
   *
   * Kept for 90 days, at most 20,000 entries. `before` is the `next` of an earlier answer; a `limit` above 500 counts
   * as that.
   *
   * - 400: a cursor that is none, an unknown filter
   */
  'GET /safety/verdicts'(input: {
    limit?: Count & tags.Minimum<1>
    before?: string & tags.MaxLength<60>
    verdict?: SettingVerdict
    conversationId?: string & tags.MaxLength<120>
    class?: CommandClass
    unreviewed?: boolean
  }): { verdicts: SafetyVerdict[]; next?: string }

  /**
   * Say whether a verdict was right, and add a rule at the head of the list for cases like it.
   *
   * The newest review of an entry stands.
   *
   * - 400: a rule that does not fit
   * - 404: there is no such entry
   * - 409: a rule of that id exists, or there are 200; nothing was written
   * - 422: the file of the policy cannot be read, or its folder is none
   * - 424: the file of the policy could not be written; the message says why
   */
  'POST /safety/verdicts/{id}/review'(input: {
    id: string & tags.MaxLength<60>
    correct: boolean
    note?: string & tags.MaxLength<2000>
    rule?: SafetyRule
  }): { ok: true; ruleId?: string }
}

export const safetyContract: Contract<SafetyCalls> = {
  schema: () => typia.json.application<SafetyCalls>(),
  request: typia.misc.createValidatePrune<Requests<SafetyCalls>>(),
  reply: () => typia.createValidate<Replies<SafetyCalls>>(),
}
