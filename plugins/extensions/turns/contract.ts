import type { TurnFile } from '../../capabilities/contract.js'

/** The extensions that a persona allows; left out: all. */
export interface ExtensionsAllowed {
  extensions?: string[]
}

/** The agent folder of an extension: skills, commands, agents, hooks and tool servers. */
export interface AgentFolder {
  /** The extension. */
  id: string
  /** Its real path. */
  dir: string
  /** The path at which programs of a turn see it. */
  seen: string
}

/** What programs of a turn get of the extensions; the variables may have secret values: never shown, never stored. */
export interface TurnExtensions {
  variables: { [name: string]: string }
  files: TurnFile[]
  /** Folders for the end of PATH, as programs of the turn see them. */
  path: string[]
  agents: AgentFolder[]
}

/** What extensions add to turns. */
export interface ExtensionTurnCalls {
  /** Gives the variables, programs and agent folders of the extensions that run now. */
  'extensions.forTurn'(input: ExtensionsAllowed): TurnExtensions
  /** Lists the agent folders of the extensions that run now. */
  'extensions.agentFolders'(input: ExtensionsAllowed): { folders: AgentFolder[] }
  /** Lists the extensions that exist, without those that are built in. */
  'extensions.ids'(): { ids: string[] }
}
