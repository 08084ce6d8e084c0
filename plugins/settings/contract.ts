import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Ok } from '../../sdk/types.js'
import type { PromptMode } from '../personas/contract.js'
import type { Day } from '../usage/contract.js'
import type { BuiltinBase, FieldCalls } from './fields/contract.js'
import type { ModelCalls, ModelKey } from './models/contract.js'
import type { RuleCalls, RuleEvents, RuleList } from './rules/contract.js'
import type { SavingsCalls } from './savings/contract.js'

export type { BuiltinBase, SettingField, SettingType, OutputCleaner } from './fields/contract.js'
export type { ModelKey, ModelLadder, ModelRung, RoleModels } from './models/contract.js'
export type * from './rules/contract.js'
export type * from './savings/contract.js'

/** Whether what starts by itself may run: at once, after a person's approval, or not at all. */
export type SettingVerdict = 'allow' | 'hold' | 'deny'

/** What may start by itself, by what starts it; all `allow` unless set. */
export interface AdmissionFloor {
  schedule: SettingVerdict
  /** Webhooks. */
  event: SettingVerdict
  /** Messages from outside, through extensions. */
  listener: SettingVerdict
  /** Messages of visitors of a web page, through its chat. */
  webchat: SettingVerdict
  /** Events of the workspace. */
  workspace: SettingVerdict
  /** Gates of workflows. */
  workflow: 'allow' | 'deny'
}

/** What a shell line or script would do; one program can fall in several. */
export type CommandClass =
  | 'git.destructive'
  | 'git.publish'
  | 'files.destructive'
  | 'secrets.access'
  | 'package.publish'
  | 'network.outbound'
  | 'database.destructive'
  | 'infra.destructive'
  | 'system.privileged'

/** Whether agents may run commands of a class; a class that is left out has no rule. */
export interface CommandRules {
  /** A forced push, a hard reset, a clean, a deleted branch, rewritten history. */
  'git.destructive'?: SettingVerdict
  /** A push to a remote. */
  'git.publish'?: SettingVerdict
  /** A recursive forced delete, `shred`, `mkfs`, `dd` onto a device. */
  'files.destructive'?: SettingVerdict
  /** Reads `.env`, keys and credential stores, or has a `{{secret:…}}` reference. */
  'secrets.access'?: SettingVerdict
  /** Publishes a package, pushes an image, creates a release. */
  'package.publish'?: SettingVerdict
  /** A request to a host that is not this machine. */
  'network.outbound'?: SettingVerdict
  /** Drop, truncate, delete without where. */
  'database.destructive'?: SettingVerdict
  /** Destroy, delete or apply on clusters and cloud resources. */
  'infra.destructive'?: SettingVerdict
  /** `sudo`, `mount`, the firewall, kernel settings, other users' processes. */
  'system.privileged'?: SettingVerdict
}
/** Whether agents may send or post, by `<provider>.<type>` or `<provider>.*`; the exact key wins. */
export interface ActionRules {
  [action: string]: SettingVerdict
}

/** A share of turns, conversations or commands: 0 is none, 1 is all. */
export type Share = number & tags.Minimum<0> & tags.Maximum<1>

/** The settings of this sandbox's agents. */
export interface Settings {
  /**
   * Nothing that changes between turns stands in the instructions of the sandbox's own loop, so that a provider's cache
   * of them holds; off unless set. Date, branch and repositories are then told before each message.
   */
  stableSystemPrompt: boolean
  /** Ask for short answers, before the message of each turn; off unless set. */
  terseOutput: boolean
  /** The share of turns that are not asked, to compare them with; 0 unless set. */
  terseHoldout: Share
  /** Teach agents of the sandbox's own loop the tool `Search`, once a conversation; off unless set. */
  iqSearch: boolean
  /** The share of conversations that are not taught, to compare them with; 0 unless set. */
  iqSearchHoldout: Share
  /** Begin each conversation with a map: the repositories and two levels of folders; off unless set. */
  workspaceMap: boolean
  /**
   * What shortens the output of the tools `Shell` and `Code` before a model reads it: `off` unless set, empty for every
   * cleaner of `GET /settings/schema`, `a,b` for these alone, `-a,-b` for all others.
   *
   * A line that tells of an error is never left out. The whole output stays in a file that the result names.
   */
  outputCleaners: string & tags.MaxLength<200>
  /** The share of commands whose output is not shortened, to compare them with; 0 unless set. */
  outputHoldout: Share
  /**
   * Draft the message of the commit after a landing, from its patch; on unless set. The models of `quickModel` are
   * asked, or without any the model that did the work: never one of another provider.
   */
  draftLandedMessages: boolean
  /**
   * The repositories that keep a changelog, `root` or their paths: the message that is drafted after a landing there
   * also has a note for it, and what the change breaks. None unless set.
   */
  changelogRepos: (string & tags.MinLength<1> & tags.MaxLength<400>)[] & tags.MaxItems<50>
  /** The names of the skills that are switched on, none unless set. */
  skills: (string & tags.Pattern<'^[a-z0-9][a-z0-9-]{0,59}$'>)[] & tags.MaxItems<200>
  /**
   * `Read` names each line of a file by its number and a short hash of its text, and `Edit` takes these names, so that
   * an edit of a file that changed meanwhile is refused; from the next turn on, off unless set.
   */
  hashlineEdits: boolean
  /**
   * The instructions of turns whose persona brings none, from the next turn on: `core`, the sandbox's own, unless set;
   * `custom`: `systemPrompt`. `vendor` is what the provider's own agent program brings; the sandbox's own loop has no
   * other text, so there it is `core`. Agent programs get `custom` in addition to their own.
   */
  systemPromptMode: PromptMode
  /** The instructions in the mode `custom`; empty: those of `core`. */
  systemPrompt: string & tags.MaxLength<20000>
  /**
   * The models of small automatic jobs, tried in order: `<provider>:<model>`, none unless set: what is connected, the
   * cheapest first.
   */
  quickModel: ModelKey[] & tags.MaxItems<10>
  /**
   * The models of new conversations that start by themselves and name none, tried in order; none unless set: what any
   * message without a model runs on.
   */
  agentRunModels: ModelKey[] & tags.MaxItems<10>
  /** The effort of these conversations; empty: the model's usual one. */
  agentRunEffort: string & tags.MaxLength<40>
  /**
   * Whether easy turns run on a cheaper model of their provider, from the next turn on. `shadow`, unless set: turns are
   * judged and recorded, and run on the chosen model; `on`: an easy turn runs on the first of `autoFastModels` that can
   * be used; `off`: no turn is judged. A turn whose provider has no model in `autoFastModels` is not judged either.
   */
  autoTier: 'off' | 'shadow' | 'on'
  /** How readily a turn counts as easy: its difficulty is below 0.2, 0.35 or 0.5; `balanced` unless set. */
  autoTierEagerness: 'cautious' | 'balanced' | 'eager'
  /** The cheaper models for easy turns, tried in order: `<provider>:<model>`, none unless set. */
  autoFastModels: ModelKey[] & tags.MaxItems<10>
  /**
   * The embedding model that search ranks by, `<provider>:<model>` of a model server or an account; none unless set:
   * what is learned here, and nothing is sent.
   *
   * Once a search in words is made, each part of 40 lines of the files that search reads is sent to it with its path,
   * and each question in words; not files whose names say that they hold secrets. A file of settings that came with
   * the code names none.
   */
  searchModel: string & tags.Pattern<'^(?:[^\\s:]+:\\S.*)?$'> & tags.MaxLength<200>
  /** Rules for the end of turns, pushes and landings, in their order; none unless set. */
  rules: RuleList
  /** Days without activity until a finished conversation is archived, 3 unless set; 0: never. */
  agentRetentionDays: number & tags.Minimum<0> & tags.Maximum<365>
  /** Resume turns that a restart of the sandbox interrupted; off unless set. */
  autoResumeOnRestart: boolean
  /** Resume a turn that failed in an outage of its provider, once the provider may be back; off unless set. */
  resumeAfterOutage: boolean
  /** Subagents of one turn that may run at once, 20 unless set. */
  subagentsAtOnce: number & tags.Minimum<1> & tags.Maximum<200>
  /** Subagents that one turn may start in all, 200 unless set. */
  subagentsPerTurn: number & tags.Minimum<1> & tags.Maximum<2000>
  /** How deep subagents may start subagents, 3 unless set. */
  subagentDepth: number & tags.Minimum<1> & tags.Maximum<10>
  /**
   * The network of a conversation's programs, from its next turn on: `own` unless set, its own network, connected
   * through the daemon; `shared`: the machine's network.
   */
  network: 'own' | 'shared'
  /**
   * What conversations reach beside public addresses, from the next connection: `host[:port]`, none unless set.
   *
   * A host is a name, `*.` and a name, an address, or a network such as `10.1.0.0/16`. `localhost:5432` is a port of
   * the machine, reachable inside at the same port. Otherwise names give no access to the machine itself.
   */
  networkAllow: (string & tags.MinLength<1> & tags.MaxLength<260>)[] & tags.MaxItems<200>
  /** What may start by itself; stricter than what an automation says for itself. */
  admission: AdmissionFloor
  /** Failures in a row after which an automation is switched off, 0 unless set: never. */
  automationFailureLimit: number & tags.Type<'uint32'> & tags.Maximum<20>
  /** Which classes of commands agents may run: at once, after a person's approval, or not at all; none unless set. */
  commandRules: CommandRules
  /** The same for what agents send or post; none unless set. */
  actionRules: ActionRules
  /** Conversations reach nothing but what `networkAllow` names, from the next connection; off unless set. */
  networkOnly: boolean
}
/** What may start by itself, by what starts it; a source may be left out. */
export interface AdmissionFloorGiven {
  schedule?: SettingVerdict
  event?: SettingVerdict
  listener?: SettingVerdict
  webchat?: SettingVerdict
  workspace?: SettingVerdict
  workflow?: 'allow' | 'deny'
}
/** Settings to write; a key that is none of them is refused. */
export interface SettingsGiven extends Partial<Omit<Settings, 'admission'>> {
  /** Sources left out are unchanged by a patch, and `allow` in a whole write. */
  admission?: AdmissionFloorGiven
}
export type SettingKey = keyof Settings

export interface SettingsCalls extends FieldCalls, ModelCalls, RuleCalls, SavingsCalls {
  /**
   * Read every setting.
   *
   * Missing keys and keys with invalid values have their defaults. The `etag` of the answer is the revision of the
   * settings.
   */
  'GET /settings'(): Settings

  /**
   * Write the settings whole: a key left out takes its default.
   *
   * With `if-match: <tag of an earlier answer>` nothing is written when the settings have changed since. A running turn
   * keeps the settings it started with, except what it may reach. Unknown keys of the file stay as they are.
   *
   * - 400: an unknown key, a value that does not fit, an entry of `networkAllow` that may not be allowed, two rules
   *   with one id, or a rule that does nothing at its moment
   * - 409: `if-match` names another revision; nothing was written
   * - 422: the file of settings cannot be read, or its folder is none
   * - 424: the file of settings could not be written; the message says why
   */
  'POST /settings'(input: SettingsGiven): Ok

  /**
   * Change only the keys in `set`, return those in `unset` to their defaults, and read every setting.
   *
   * Changes of different keys never lose each other. With `revision`, as an earlier answer gave it (the tag of a read
   * without its quotes), nothing is written when the settings have changed since.
   *
   * - 400: an unknown key, a value that does not fit as for `POST /settings`, or a key in both `set` and `unset`
   * - 409: the settings have another revision; nothing was written
   * - 422: the file of settings cannot be read, or its folder is none
   * - 424: the file of settings could not be written; the message says why
   */
  'POST /settings/patch'(input: { set?: SettingsGiven; unset?: SettingKey[]; revision?: string }): {
    settings: Settings
    revision: string
  }

  /** Read every setting as it is now: at the start of a turn, and wherever a setting decides. */
  'settings.get'(): Settings
}

export interface SettingsEvents extends RuleEvents {
  /** The settings changed. Without `by` a person changed the file, which is noticed at the next read. */
  'settings.changed': { keys: SettingKey[]; by?: string }
}

/** A read takes any query. */
interface Read {
  call:
    | 'GET /settings'
    | 'settings.get'
    | 'GET /settings/schema'
    | 'GET /settings/models'
    | 'GET /settings/rule-firings'
  input: { [key: string]: unknown }
}
type Write = Requests<
  Omit<SettingsCalls, Read['call'] | 'GET /settings/system-prompt/{base}' | 'GET /settings/savings'>
>
/** Other keys of the query are ignored. */
interface Savings {
  call: 'GET /settings/savings'
  input: { from?: Day; to?: Day; [key: string]: unknown }
}
/** The base is part of the path; a query is ignored. */
interface BuiltinPrompt {
  call: 'GET /settings/system-prompt/{base}'
  input: { base: BuiltinBase; [key: string]: unknown }
}

export const settings: Contract<SettingsCalls> = {
  schema: () => typia.json.application<SettingsCalls>(),
  request: typia.createValidateEquals<Read | Write | BuiltinPrompt | Savings>(),
  reply: () => typia.createValidate<Replies<SettingsCalls>>(),
}
