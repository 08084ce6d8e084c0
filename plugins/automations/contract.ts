import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { DispatchFrame, ListenerMessage, ListeningAutomation } from '../../sdk/node/extension/protocol.js'
import type { Count, Millis, Ok, Positive, Text } from '../../sdk/types.js'
import type { ConversationId, Harness, RunId } from '../agent/contract.js'
import type { AutomationRun, Fired, HeldCalls } from './fires/contract.js'
import type { ChatSite, PageOrigin, WebchatCalls, WebchatConfig } from './webchat/contract.js'
import type { WebhookCalls } from './webhooks/contract.js'

export type { DispatchFrame, ListenerMessage } from '../../sdk/node/extension/protocol.js'
export type * from './fires/contract.js'
export type * from './webchat/contract.js'
export type * from './webhooks/contract.js'

/** The id of an automation; `catalog`, `pending`, `preview` and `turn` are words of routes. */
export type AutomationId = string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
/** At most 64,000 characters that come with a fire. */
export type AutomationPayload = string & tags.MaxLength<64000>
type Provider = string & tags.MinLength<1> & tags.MaxLength<120>
type Filter = string & tags.MinLength<1> & tags.MaxLength<300>

/** Fires at times. */
export interface ScheduleTrigger {
  kind: 'schedule'
  /** Five fields, or six with seconds first. */
  cron: string & tags.MinLength<1> & tags.MaxLength<200>
  /** An IANA time zone; UTC unless set. */
  timeZone?: string & tags.MinLength<1> & tags.MaxLength<100>
  /**
   * What happens to times that passed while nothing could fire: `once` unless set fires for the newest if it is less
   * than an hour late, `skip` for none, `every` for all, oldest first, at most 24.
   */
  missed?: 'once' | 'skip' | 'every'
}
/** Fires when its webhook is called. */
export interface WebhookTrigger {
  kind: 'event'
}
/** Fires for messages from outside that an extension receives; every field given has to match. */
export interface ListenerTrigger {
  kind: 'listener'
  provider: Provider
  channelId?: Filter
  eventType?: Filter
  /** Only messages that mention the sandbox, or only those that do not. */
  mentioned?: boolean
  branch?: Filter
  /** Of `webchat` alone: the sites whose pages may show the chat; none: nobody may. */
  allowedOrigins?: PageOrigin[] & tags.MaxItems<50>
}
/** An event of the workspace. */
export type WorkspaceEventName = 'turn.settled' | 'agent.landed' | 'deps.broken' | 'deps.fixed'
/** Fires for events of the workspace; `repo` limits it to one repository. */
export interface WorkspaceTrigger {
  kind: 'workspace'
  event: WorkspaceEventName
  repo?: Filter
}
/** What starts an automation. */
export type AutomationTrigger = ScheduleTrigger | WebhookTrigger | ListenerTrigger | WorkspaceTrigger

/** What an automation is, as its author writes it. */
export interface AutomationDraft {
  trigger: AutomationTrigger
  /** A shell command in the workspace: exit code 0 lets it fire. The payload is in `AUTOMATION_PAYLOAD`; 60 s. */
  guard?: string & tags.MinLength<1> & tags.MaxLength<4000>
  prompt: string & tags.MinLength<1> & tags.MaxLength<20000>
  /** With a listener to `webchat`: the chat of web pages. */
  webchat?: WebchatConfig
  /** Narrows what the persona allows. */
  allowedTools?: (Text & tags.MaxLength<120>)[] & tags.MaxItems<100>
  /** The provider; left out: that of a new conversation. */
  agent?: Provider
  account?: string & tags.MinLength<1> & tags.MaxLength<320>
  harness?: Harness
  model?: string & tags.MinLength<1> & tags.MaxLength<200>
  /** The persona that its turns wear; `front-desk` unless set for those that answer visitors. */
  actsAs?: string & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
  /** Every fire waits for a person. */
  requireApproval?: boolean
  /** Every fire waits so long, then runs by itself unless it is rejected. */
  holdForSeconds?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<86400>
  /** Lists it among the chores. */
  chore?: boolean
  enabled: boolean
}
/** An automation. */
export interface Automation extends AutomationDraft {
  id: AutomationId
}

/** The turn of an automation that is running, or waits for its place. */
export interface RunningFire {
  conversationId: ConversationId
  run: RunId
  since: Millis
}
/** An automation as it stands. */
export interface AutomationRow extends Automation {
  /** Newest first, at most 20 in a list. */
  runs: AutomationRun[]
  /** Of an enabled schedule. */
  nextRun?: Millis
  running?: RunningFire
  /** Messages and events that wait behind it. */
  queued?: Positive
  /** When the token of its webhook was made. */
  tokenAt?: Millis
  /** Errors in a row; skipped and interrupted fires neither count nor reset. */
  failures: Count
  /** Why the newest fire that ended in an error did; absent after the next completed one. */
  lastError?: string
  /** Times of its schedule that passed without a fire since the last fire. */
  missed?: Positive
  /** `failures`, or who switched it off. */
  disabledBy?: string
  /** Why it cannot fire now. */
  problem?: string
}
/** An automation with its longer history. */
export interface AutomationDetail extends AutomationRow {
  /** Of a chat of web pages: the sites that loaded it or were refused it, newest first. */
  installs?: ChatSite[]
}
/** An entry of the file that is no automation. */
export interface AutomationProblem {
  id?: string
  message: string
}
/** All automations by id, and the entries of the file that are none. */
export interface AutomationList {
  automations: AutomationRow[]
  problems: AutomationProblem[]
}

/** One kind of messages of a source. */
export interface CatalogEvent {
  value: string
  label: string
}
/** A field in the form of a source. */
export interface CatalogField {
  label: string
  placeholder: string
  hint?: string
}
/** A source of messages. */
export interface CatalogSource {
  provider: string
  label: string
  logo?: string
  icon?: string
  events: CatalogEvent[]
  channel: CatalogField
  branchField?: CatalogField
  mentionLabel?: string
  starterPrompt?: string
  requires: string[]
  /** Whether what `requires` names is there. */
  enabled: boolean
  /** The extension that receives them; absent: a group of the sandbox does. */
  extension?: string
}
/** A ready-made automation. */
export interface CatalogTemplate {
  id: string
  title: string
  logo?: string
  icon?: string
  /** Connections of which one has to be there. */
  requires: string[]
  trigger: AutomationTrigger
  guard?: string
  holdForSeconds?: Positive
  prompt: string
  note?: string
  setup?: string
  description?: string
  offer?: 'create' | 'configure'
  chore?: boolean
  /** The extension that offers it. */
  extension: string
}
/** The triggers that can be used here, and ready-made automations. */
export interface AutomationCatalog {
  sources: CatalogSource[]
  templates: CatalogTemplate[]
  workspaceEvents: CatalogEvent[]
}

/** What a guard answered. */
export interface GuardResult {
  pass: boolean
  exitCode?: Count
  /** The end of what it printed, or why it did not run. */
  detail?: string
  durationMs: Count
}
/** What a draft would do. */
export interface AutomationPreview {
  /** The next five times of a schedule. */
  nextRuns?: Millis[]
  /** The schedule in words. */
  words?: string
  guard?: GuardResult
  /** Why the trigger cannot fire. */
  problem?: string
}
/** Work that starts by itself. */
export interface AutomationsCalls extends HeldCalls, WebhookCalls, WebchatCalls {
  /**
   * List all automations by id, with their recent runs and next fire.
   *
   * Never contains a token. Entries of the file that are no automations are named in `problems` and kept in the file.
   */
  'GET /automations'(): AutomationList

  /**
   * Read one automation with its longer run history.
   *
   * `before` is the `at` of the last run that the caller has.
   *
   * - 404: no such automation
   */
  'GET /automations/{id}'(input: {
    id: Text
    limit?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<200>
    before?: Millis
  }): AutomationDetail

  /**
   * Write one automation whole: creates it, or edits the one of this id and keeps its history and token.
   *
   * A webhook without a token gets one. A changed schedule takes effect at once; a running turn goes on as it was. An
   * automation that came with the code fires only after it was written by this call.
   *
   * - 413: the file of automations would become too large, or the disk is full
   * - 422: cron expression or time zone cannot be read, a provider or kind of message that no source has, an unknown
   *   agent provider, model or account, a reserved id, a chat for strangers with tools that change something, or the
   *   file cannot be read
   * - 424: the file of automations could not be written; the message says why
   */
  'POST /automations'(input: Automation): Ok

  /**
   * List the triggers that can be used here, and ready-made automations of extensions.
   *
   * `POST /automations` accepts exactly these triggers.
   */
  'GET /automations/catalog'(): AutomationCatalog

  /**
   * Try a draft without saving it: the next five times of its schedule, and with `runGuard` the answer of its guard.
   *
   * No turn starts.
   *
   * - 422: cron expression or time zone cannot be read
   */
  'POST /automations/preview'(input: {
    trigger: AutomationTrigger
    guard?: string & tags.MinLength<1> & tags.MaxLength<4000>
    payload?: AutomationPayload
    runGuard?: boolean
  }): AutomationPreview

  /**
   * Switch an automation on or off; on clears its failures.
   *
   * Off lets a running turn end; what is queued is dropped, what is held stays.
   *
   * - 404: no such automation
   * - 413: the disk is full
   * - 422: the file of automations cannot be read
   * - 424: the file of automations could not be written; the message says why
   */
  'POST /automations/{id}/enabled'(input: { id: Text; enabled: boolean }): Ok

  /**
   * Remove an automation with its token, history and held wakes; its conversations stay, a running turn goes on.
   *
   * - 404: no such automation
   * - 413: the disk is full
   * - 422: the file of automations cannot be read
   * - 424: the file of automations could not be written; the message says why
   */
  'DELETE /automations/{id}'(input: { id: Text }): Ok

  /**
   * Fire an automation now, also one that is switched off; answers when its turn has started or was skipped.
   *
   * The call counts as the approval. Guard and admission are still asked.
   *
   * - 404: no such automation
   * - 409: it is running, or it came with the code and nobody saved it yet
   * - 422: a listener needs a real message, or the turn is not possible
   * - 424: the turn could not start; the message says why
   * - 429: a budget refuses the turn
   * - 501: a program that the turn needs is not installed
   */
  'POST /automations/{id}/run'(input: { id: Text; payload?: AutomationPayload }): Fired

  /** Fires the listener automations that a message matches; without a stream their replies are delivered when ready. */
  'automations.dispatch'(input: ListenerMessage): { matched: string[] }
  /** The same, with what the agents say; ends when all their turns have. */
  'automations.dispatchStream'(input: ListenerMessage): Stream<DispatchFrame>
  /** The listener automations of a provider. */
  'automations.listening'(input: { provider: string }): { automations: ListeningAutomation[] }
  /** How many automations have each of these prompts. */
  'automations.usedTemplates'(input: { prompts: string[] }): { used: Count[] }
}

export const automations: Contract<AutomationsCalls> = {
  schema: () => typia.json.application<AutomationsCalls>(),
  request: typia.misc.createValidatePrune<Requests<AutomationsCalls>>(),
  reply: () => typia.createValidate<Replies<AutomationsCalls>>(),
}

/** Events of the group. */
export interface AutomationsEvents {
  /** A definition changed; `id` is the automation. */
  'automations.changed': { id: string }
  /** A wake is held, or was released; so many wait now. */
  'automations.held': { waiting: Count }
}
