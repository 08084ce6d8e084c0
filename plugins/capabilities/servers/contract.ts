import type { Count } from '../../../sdk/types.js'
import type { CapabilityId } from '../records/contract.js'

/** A JSON Schema. */
export interface ServerInputSchema {
  [keyword: string]: unknown
}
/** A tool of a connected server. */
export interface McpTool {
  /** Its name on the server. */
  name: string
  /** Its name for the model. */
  agentName: string
  title?: string
  description: string
  input: ServerInputSchema
  /** The server says that it only reads, and a maintainer saved the connection when it did. */
  readOnly: boolean
  destructive: boolean
  /** Whether turns are offered it. */
  offered: boolean
  /** Why they are not. */
  withheld?: string
  /** Whether a call of it asks a person first. */
  approve: boolean
}
/** What a server calls itself. */
export interface McpServerName {
  name: string
  version: string
  instructions?: string
}
/** A server as it was met last. */
export interface McpInfo {
  server?: McpServerName
  /** The version of the protocol that was agreed on. */
  protocol?: string
  transport: 'http' | 'event-stream' | 'stdio'
  capabilities: ('tools' | 'resources' | 'prompts' | 'sampling' | 'elicitation' | 'logging')[]
  resources: Count
  prompts: Count
  /** The process that a conversation uses, while there is one. */
  pid?: Count
}
/** What agents get of a connection. */
export interface CapabilityTools {
  tools: McpTool[]
  info?: McpInfo
}

/** The tools of connected servers. */
export interface ServerCalls {
  /**
   * List the tools of a connection: which are offered, which are withheld and why, and which ask first.
   *
   * `refresh` connects anew; else the list is the one the server gave last.
   *
   * - 404: no such connection
   * - 409: connections of this kind have no tools
   * - 424: the server cannot be reached, or refuses
   * - 501: its program is missing
   */
  'GET /capabilities/{id}/tools'(input: { id: CapabilityId; refresh?: boolean }): CapabilityTools
}
