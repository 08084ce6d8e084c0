import type { ActivityCalls } from '../plugins/activity/contract.js'
import type { Agent, AgentEvents } from '../plugins/agent/contract.js'
import type { Agents, AgentsEvents } from '../plugins/agents/contract.js'
import type { Areas } from '../plugins/areas/contract.js'
import type { LogsCalls } from '../plugins/logs/contract.js'
import type { SettingsCalls, SettingsEvents } from '../plugins/settings/contract.js'
import type {
  BundlePart,
  ManifestProblemReport,
  OwnedProcess,
  System,
  SystemEvents,
} from '../plugins/system/contract.js'
import type { Kernel, KernelEvents } from './kernel.js'

/** Every call the sandbox answers. Types only: importing this pulls in no daemon code. */
export interface Api extends ActivityCalls, Agent, Agents, Areas, LogsCalls, SettingsCalls, System, Kernel {}

/** Every event a plugin may emit, by name. */
export interface Events extends AgentEvents, AgentsEvents, SettingsEvents, SystemEvents, KernelEvents {}

/** Every point several plugins may contribute to, by name, and what one contribution looks like. */
export interface Points {
  /** Programs of the machine that a group needs or can use, for `GET /info`. */
  'system.programs': () => Promise<import('./kernel.js').Program[]>
  /** Processes a group has under way, for `GET /system/usage`; what they start counts as theirs. */
  'system.processes': () => OwnedProcess[]
  /** What a group hands over for a backup, at this moment. */
  'bundle.parts': () => Promise<BundlePart>
  /** The groups that take back at a start what they handed over once. */
  'bundle.takers': () => string[]
  /** What a group cannot honour in the files that people edit by hand, for `GET /system/manifest-problems`. */
  'system.manifestProblems': () => Promise<ManifestProblemReport[]>
}
