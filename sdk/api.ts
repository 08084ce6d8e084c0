import type { AccountEvents, AccountsCalls } from '../plugins/accounts/contract.js'
import type { ActivityCalls } from '../plugins/activity/contract.js'
import type { Agent, AgentEvents } from '../plugins/agent/contract.js'
import type { Agents, AgentsEvents } from '../plugins/agents/contract.js'
import type { ApprovalsCalls, ApprovalsEvents } from '../plugins/approvals/contract.js'
import type { Areas } from '../plugins/areas/contract.js'
import type { AutomationsCalls, AutomationsEvents, CatalogSource } from '../plugins/automations/contract.js'
import type { CapabilitiesCalls, CapabilitiesEvents, ContributedKind } from '../plugins/capabilities/contract.js'
import type { ChoresCalls } from '../plugins/chores/contract.js'
import type { ConsoleCalls } from '../plugins/console/contract.js'
import type { CliCalls } from '../plugins/cli/contract.js'
import type { DiffsCalls } from '../plugins/diffs/contract.js'
import type { DisksCalls } from '../plugins/disks/contract.js'
import type { EndpointCalls } from '../plugins/endpoints/contract.js'
import type { ExitCalls, ExitEvents } from '../plugins/exit/contract.js'
import type { ExtensionsCalls } from '../plugins/extensions/contract.js'
import type { GitCalls } from '../plugins/git/contract.js'
import type { HistoryCalls } from '../plugins/history/contract.js'
import type { InventoryCalls } from '../plugins/inventory/contract.js'
import type { IssuesCalls, IssuesEvents } from '../plugins/issues/contract.js'
import type { LogsCalls } from '../plugins/logs/contract.js'
import type { LoopsCalls, LoopsEvents } from '../plugins/loops/contract.js'
import type { NeedsCalls, NeedsEvents } from '../plugins/needs/contract.js'
import type { OutboxCalls } from '../plugins/outbox/contract.js'
import type { PanelsCalls } from '../plugins/panels/contract.js'
import type { PersonaPointer, PersonasCalls, PersonasEvents } from '../plugins/personas/contract.js'
import type { PipelinesCalls, PipelinesEvents } from '../plugins/pipelines/contract.js'
import type { PortsCalls } from '../plugins/ports/contract.js'
import type { DefinedProviderCalls } from '../plugins/providers/contract.js'
import type { PushCalls } from '../plugins/push/contract.js'
import type { RoutedCalls } from '../plugins/routed/contract.js'
import type { SafetyCalls } from '../plugins/safety/contract.js'
import type { RequiredSecret, SecretsCalls, SecretsEvents } from '../plugins/secrets/contract.js'
import type { SessionCalls } from '../plugins/sessions/contract.js'
import type { SettingsCalls, SettingsEvents } from '../plugins/settings/contract.js'
import type {
  BundlePart,
  ManifestProblemReport,
  OwnedProcess,
  System,
  SystemEvents,
} from '../plugins/system/contract.js'
import type { ShareCalls } from '../plugins/share/contract.js'
import type { ShieldCalls } from '../plugins/shield/contract.js'
import type { SkillsCalls } from '../plugins/skills/contract.js'
import type { UsageCalls } from '../plugins/usage/contract.js'
import type { VpnCalls, VpnEvents } from '../plugins/vpn/contract.js'
import type { WorkflowsCalls, WorkflowsEvents } from '../plugins/workflows/contract.js'
import type { FileEvents, ProjectEvents, WorkspaceCalls } from '../plugins/workspace/contract.js'
import type { Kernel, KernelEvents } from './kernel.js'

/** Every call of the sandbox. Types only: importing this loads no daemon code. */
export interface Api
  extends
    ActivityCalls,
    Agent,
    Agents,
    Areas,
    CapabilitiesCalls,
    ConsoleCalls,
    DefinedProviderCalls,
    EndpointCalls,
    GitCalls,
    HistoryCalls,
    LogsCalls,
    SecretsCalls,
    SessionCalls,
    SettingsCalls,
    System,
    UsageCalls,
    WorkflowsCalls,
    WorkspaceCalls,
    PersonasCalls,
    SkillsCalls,
    ExtensionsCalls,
    DiffsCalls,
    PanelsCalls,
    PortsCalls,
    PushCalls,
    AutomationsCalls,
    NeedsCalls,
    SafetyCalls,
    ApprovalsCalls,
    LoopsCalls,
    OutboxCalls,
    ShareCalls,
    AccountsCalls,
    ChoresCalls,
    IssuesCalls,
    VpnCalls,
    DisksCalls,
    PipelinesCalls,
    ShieldCalls,
    CliCalls,
    InventoryCalls,
    ExitCalls,
    RoutedCalls,
    Kernel {}

/** Every event a plugin may emit, by name. */
export interface Events
  extends
    AccountEvents,
    AgentEvents,
    AgentsEvents,
    AutomationsEvents,
    CapabilitiesEvents,
    ApprovalsEvents,
    NeedsEvents,
    IssuesEvents,
    PipelinesEvents,
    LoopsEvents,
    PersonasEvents,
    SecretsEvents,
    SettingsEvents,
    SystemEvents,
    VpnEvents,
    ExitEvents,
    WorkflowsEvents,
    FileEvents,
    ProjectEvents,
    KernelEvents {}

/** Every point that plugins may contribute to, by name, with the type of one contribution. */
export interface Points {
  /** Programs of the machine that a group needs or can use, for `GET /info`. */
  'system.programs': () => Promise<import('./kernel.js').Program[]>
  /** Running processes of a group, for `GET /system/usage`; their child processes belong to them. */
  'system.processes': () => OwnedProcess[]
  /** What conversations reach, by their ids: a `NetworkReach` of `sdk/node`, whose types pages do not have. */
  'browsers.reach': () => (conversationId: string) => Promise<object>
  /** A group's current part of a backup. */
  'bundle.parts': () => Promise<BundlePart>
  /** The groups that restore their part of a backup at start. */
  'bundle.takers': () => string[]
  /** Problems that a group found in hand-edited files, for `GET /system/manifest-problems`. */
  'system.manifestProblems': () => Promise<ManifestProblemReport[]>
  /** What names a persona, for `GET /personas/{id}/resolved`. */
  'personas.pointers': () => Promise<PersonaPointer[]>
  /** What automations can listen to of a group. */
  'automations.sources': () => CatalogSource[]
  /** The kinds of connections that a group serves. */
  'capabilities.kinds': () => ContributedKind[]
  /** The secrets that a group needs, for the inventory of secrets. */
  'secrets.required': () => Promise<RequiredSecret[]>
}
