import type { AgentFolder, TurnFile } from '../../capabilities/contract.js'
import type { ExtensionCard } from '../manifest/manifest.js'

/** The extensions that a persona allows; left out: all. */
export interface ExtensionsAllowed {
  extensions?: string[]
}

/** What programs of a turn get of the extensions; the variables may have secret values: never shown, never stored. */
export interface TurnExtensions {
  variables: { [name: string]: string }
  files: TurnFile[]
  /** Folders for the end of PATH, as programs of the turn see them. */
  path: string[]
  agents: AgentFolder[]
}

/** A card of connections that an extension offers. */
export interface OfferedCard {
  /** The extension. */
  extension: string
  card: ExtensionCard
  /** What agents read about its connections. */
  skill?: string
}

/** What extensions add to turns. */
export interface ExtensionTurnCalls {
  /** Gives the variables, programs and agent folders of the extensions that run now. */
  'extensions.forTurn'(input: ExtensionsAllowed): TurnExtensions
  /** Lists the agent folders of the extensions that run now. */
  'extensions.agentFolders'(input: ExtensionsAllowed): { folders: AgentFolder[] }
  /** Lists the cards of connections of the extensions that run now; of two with one id the first. */
  'extensions.cards'(): { cards: OfferedCard[] }
  /** Lists the extensions that exist, without those that are built in. */
  'extensions.ids'(): { ids: string[] }
}
