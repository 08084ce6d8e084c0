import typia from 'typia'
import type { Contract, Replies, Requests, Stream } from '../../sdk/contract.js'
import type { Millis, Ok } from '../../sdk/types.js'
import type { ActionCalls } from './actions/contract.js'
import type { CatalogCalls } from './cards/contract.js'
import type { KindEntry } from './kinds/contract.js'
import type { LoginCalls } from './login/contract.js'
import type { OneTimeCodeCalls } from './otp/contract.js'
import type { RecommendationCalls } from './recommendations/contract.js'
import type { RecordCalls } from './records/contract.js'
import type { ServerCalls } from './servers/contract.js'
import type { WalletCalls } from './wallet/contract.js'

export type * from './actions/contract.js'
export type * from './cards/contract.js'
export type * from './kinds/contract.js'
export type * from './login/contract.js'
export type * from './otp/contract.js'
export type * from './recommendations/contract.js'
export type * from './records/contract.js'
export type * from './servers/contract.js'
export type * from './wallet/contract.js'

/** A connected capability as it is stored, without its secret fields. */
export interface CapabilityRecord {
  id: string
  kind: string
  /** The card of the catalogue that it was made from; left out: that of its kind. */
  card?: string
  /** That card is one of an extension. */
  brought?: boolean
  label: string
  config: { [field: string]: string | number | boolean }
  /** The names of its secret fields that hold a value. */
  secrets: string[]
}
/** An agent program that a turn can run on, with everything it is started with. */
export interface AgentRuntime {
  id: string
  label: string
  /** The program and its arguments. */
  command: string[]
  /** Its environment, with secret values: never shown, never stored. */
  env: { [name: string]: string }
  /** What a person types to sign in, when there is such a command. */
  loginCommand?: string
}
/** A tool of a connected server, as a turn is offered it. */
export interface ConnectedTool {
  /** The id of the capability it belongs to. */
  server: string
  /** Its name on the server. */
  name: string
  /** Its name for the model, unique among all tools of a turn. */
  agentName: string
  title?: string
  description: string
  /** The JSON Schema of its input. */
  input: { [keyword: string]: unknown }
  readOnly: boolean
  destructive: boolean
  /** The key of the action that it is, where it may change something: a person can allow it later. */
  action?: string
  /** Whether a call of it needs a person's yes, where the mode of the turn asks for one at all. */
  approve: boolean
}
/** Whose tools, and what the turn may use of them. */
export interface ToolsAsked {
  conversationId: string
  run: string
  /** The capabilities the turn may use; left out: all. */
  capabilities?: string[]
}
/** The tools of a turn, and a sentence for each server that could not be reached. */
export interface ConnectedTools {
  tools: ConnectedTool[]
  problems: string[]
}
/** One call of a tool. */
export interface ToolAsked {
  conversationId: string
  run: string
  server: string
  name: string
  input: { [field: string]: unknown }
}
/** How far a call has come. */
export interface ToolProgress {
  kind: 'progress'
  message: string
}
/** The server asks the person something: answered with `mcp.answer`. */
export interface ToolElicits {
  kind: 'elicit'
  id: string
  message: string
  /** The JSON Schema of the answer, flat. */
  schema: { [keyword: string]: unknown }
}
/** A picture that a tool answered with. */
export interface ToolPicture {
  /** Base64. */
  data: string
  mime: string
}
/** What a tool answered. */
export interface ToolAnswered {
  kind: 'result'
  ok: boolean
  text: string
  /** The structured result, when there is one. */
  structured?: { [field: string]: unknown }
  pictures?: ToolPicture[]
}
/** An answer to what a server asked. */
export interface ElicitAnswer {
  id: string
  action: 'accept' | 'decline' | 'cancel'
  content?: { [field: string]: string | number | boolean | string[] }
}
/** A file or folder that the programs of a turn see at another place, read-only. */
export interface TurnFile {
  from: string
  to: string
}
/** A note for a turn about its connections. */
export interface ConnectionNote {
  title: string
  text: string
}
/** A folder with skills, commands, agents, hooks and tool servers, of an extension or a plugin. */
export interface AgentFolder {
  /** The extension, or the connection. */
  id: string
  /** Its real path. */
  dir: string
  /** The path at which programs of a turn see it. */
  seen: string
}
/** What agents read about a connection. */
export interface ConnectionSkill {
  /** The connection. */
  id: string
  name: string
  /** A whole `SKILL.md`. */
  text: string
}
/** A turn that begins. */
export interface EnvironmentAsked {
  conversationId: string
  /** The connections that it may use; left out: all. */
  capabilities?: string[]
  /** Whose work it is. */
  trust?: 'lands' | 'waits' | 'outside'
  /** What it reaches, as text. */
  reach?: string
}
/** What the programs of a turn get of the connections; the variables have secret values: never shown, never stored. */
export interface TurnVariables {
  variables: { [name: string]: string }
  files?: TurnFile[]
  notes?: ConnectionNote[]
  /** Folders with skills, commands, agents and hooks for agent programs. */
  agents?: AgentFolder[]
}
/** What another group stores as a capability. */
export interface CapabilityGiven {
  id: string
  kind: string
  label?: string
  config: { [field: string]: string | number | boolean }
  /** Secret fields to store; one left out keeps its value, "" removes it. */
  secrets?: { [field: string]: string }
}

/** The profile of a browser with the sign-ins of an account. */
export interface AccountProfile {
  profile: string
  label: string
  /** When a person signed in last. */
  signedIn?: Millis
  /** The exit through which its pages are asked. */
  exit?: string
}

/** What capabilities are for other groups. */
export interface CapabilityServices {
  /**
   * Lists everything that is connected, without asking any of it; with `waiting` also what was saved here once and
   * waits for a maintainer now, such as while the extension of its card is off.
   */
  'capabilities.records'(input: { kind?: string; waiting?: boolean }): { capabilities: CapabilityRecord[] }
  /**
   * Gives a connection of this kind with the values of its secrets, for the group that serves the kind. 404: there is
   * none; 422: no maintainer saved it as it is, or a value is missing; 503: the store of secrets is locked.
   */
  'capabilities.entry'(input: { id: string; kind: string }): KindEntry
  /** Stores a record of a kind that another group serves. 409 where the id belongs to another kind. */
  'capabilities.put'(input: CapabilityGiven): CapabilityRecord
  /** Removes such a record with its secrets. */
  'capabilities.drop'(input: { id: string }): Ok
  /** Gives an agent program as it is started. 404: no such capability; 409: another kind. */
  'capabilities.runtime'(input: { id: string }): AgentRuntime
  /** Lists the tools of the connected servers for a turn. */
  'mcp.tools'(input: ToolsAsked): ConnectedTools
  /** Calls a tool of a connected server; the last event is its result. */
  'mcp.call'(input: ToolAsked): Stream<ToolProgress | ToolElicits | ToolAnswered>
  /** Answers what a server asked while a call of it runs. */
  'mcp.answer'(input: ElicitAnswer): Ok
  /** Ends the servers and the container engine that were started for a conversation, and removes its images. */
  'mcp.release'(input: { conversationId: string }): Ok
  /**
   * Gives the variables of the connected command-line tools, what ssh needs for the connected servers, the socket of
   * the container engine, and the folders of plugins. A container engine that served a turn of another `trust` or
   * `reach` ends.
   */
  'env.variables'(input: EnvironmentAsked): TurnVariables
  /** Gives the browser's profile of an account that a turn may use. 404: it has none. */
  'capabilities.profile'(input: { id: string; capabilities?: string[] }): AccountProfile
  /**
   * Lists the origins that an account names, where its password and codes may be filled in; left out: the id is none of
   * an account.
   */
  'capabilities.origins'(input: { id: string; capabilities?: string[] }): { origins?: string[] }
  /** Gives a one-time code to fill into a form, for a turn that may use the connection. */
  'capabilities.code'(input: { id: string; capabilities?: string[] }): { code: string }
  /** Lists what agents read about the connections that a turn may use; left out: all. */
  'capabilities.skills'(input: { capabilities?: string[] }): { skills: ConnectionSkill[] }
  /** Lists the folders of the connected plugins, by the connections that a turn may use; left out: all. */
  'capabilities.agentFolders'(input: { capabilities?: string[] }): { folders: AgentFolder[] }
}

/** A capability was connected or changed, or removed. */
export interface CapabilitiesEvents {
  'capability.connected': { id: string; kind: string }
  'capability.removed': { id: string; kind: string }
}

export interface CapabilitiesCalls
  extends
    ActionCalls,
    CapabilityServices,
    RecordCalls,
    RecommendationCalls,
    ServerCalls,
    CatalogCalls,
    LoginCalls,
    OneTimeCodeCalls,
    WalletCalls {}

export const capabilities: Contract<CapabilitiesCalls> = {
  schema: () => typia.json.application<CapabilitiesCalls>(),
  request: typia.misc.createValidatePrune<Requests<CapabilitiesCalls>>(),
  reply: () => typia.createValidate<Replies<CapabilitiesCalls>>(),
}
