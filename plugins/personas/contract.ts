import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Ok } from '../../sdk/types.js'

/** The id of a card or of a connection. */
export type EntryId = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]*$'>
/** The name of a skill, which is that of its folder. */
export type KitSkillName = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
/** The base instructions of a turn: the sandbox's, the provider's, or the persona's prompt. */
export type PromptMode = 'core' | 'vendor' | 'custom'
/**
 * The notes the sandbox adds to a turn and a card may leave out. What a person attached, mentioned or has open is never
 * left out.
 */
export type BriefingNote =
  | 'map'
  | 'context'
  | 'skills'
  | 'search'
  | 'dependencies'
  | 'delegation'
  | 'cards'
  | 'browser'
  | 'capabilities'

/** The powers of a conversation; omitted fields have their defaults. */
export interface Powers {
  /** Files of the workspace; `write` unless set. */
  files?: 'none' | 'read' | 'write'
  /** Run commands; on unless set, like every switch here. */
  shell?: boolean
  /** Run scripts in the code runner. */
  code?: boolean
  /** Fetch and search. */
  web?: boolean
  /** The browser without accounts. */
  browser?: boolean
  /** Start subagents. */
  delegate?: boolean
  /** Let the credential of the turn reach the sandbox's reads, and ask for tunnels and network disks. */
  sandbox?: boolean
  /**
   * Connected command-line tools it may use; `[]`: none. Left out: those among `capabilities`, or all where that names
   * none.
   */
  connectors?: EntryId[] & tags.MaxItems<100>
  /** Connected computers; left out as for `connectors`. */
  devices?: EntryId[] & tags.MaxItems<50>
  /** Connected tool servers; left out as for `connectors`. */
  mcp?: EntryId[] & tags.MaxItems<50>
  /** Extensions whose tools it may use; left out: all. */
  extensions?: (string & tags.MinLength<1> & tags.MaxLength<200>)[] & tags.MaxItems<100>
}
/** A model and how it runs. */
export interface PersonaModel {
  provider: string & tags.MinLength<1> & tags.MaxLength<200>
  model: string & tags.MinLength<1> & tags.MaxLength<200>
  effort?: string & tags.MaxLength<40>
  thinking?: boolean
  fast?: boolean
  harness?: 'native' | 'vendor-code'
}
/** Paths from the workspace root. */
export interface PersonaWorkspace {
  /** The folder in which its conversations begin; it overrides that of a first message. */
  startIn?: string & tags.MaxLength<200>
  /** The folders of the workspace that its turns reach; none: everything. */
  folders?: (string & tags.MaxLength<4096>)[] & tags.MaxItems<50>
}
/** Which nested repositories a conversation sees: no other one. */
export interface PersonaContext {
  repos: (string & tags.MinLength<1> & tags.MaxLength<4096>)[] & tags.MaxItems<50>
}
/** Notes to leave out. */
export interface PersonaBriefing {
  omit: BriefingNote[] & tags.MaxItems<50>
}
/** The stored fields of a persona. */
export interface PersonaCard {
  id: EntryId
  label?: string & tags.MaxLength<60>
  /** The accounts it speaks for; an id that is not connected yet is allowed. */
  capabilities: EntryId[] & tags.MaxItems<50>
  /** Its purpose. */
  brief?: string & tags.MaxLength<2000>
  powers?: Powers
  workspace?: PersonaWorkspace
  context?: PersonaContext
  briefing?: PersonaBriefing
  /** Tried in order. */
  models?: PersonaModel[] & tags.MaxItems<10>
  /** Left out: the sandbox's default. */
  systemPromptMode?: PromptMode
}
/** A card, and which of its accounts can act now. */
export interface Persona extends PersonaCard {
  connected: EntryId[]
}
/** A card as it is sent; `connected`, as listed, is ignored. */
export interface PersonaGiven extends PersonaCard {
  connected?: EntryId[]
}
/** A skill that only conversations wearing the card reach. */
export interface KitSkill {
  name: KitSkillName
  /** When to use it. */
  description: string & tags.MinLength<1> & tags.MaxLength<1024>
  body: string & tags.MinLength<1> & tags.MaxLength<200000>
}
/** A skill by name. */
export interface KitSkillSummary {
  name: string
  description: string
}
/** A skill as it is on the disk. */
export interface KitSkillText extends KitSkillSummary {
  body: string
}
/** The prompt of a card, and its skills by name. */
export interface PersonaKit {
  /** Empty if there is none. */
  prompt: string
  skills: KitSkillSummary[]
}
/** The effective powers; lists have the ids that exist now. */
export interface ResolvedPowers {
  files: 'none' | 'read' | 'write'
  shell: boolean
  code: boolean
  web: boolean
  browser: boolean
  delegate: boolean
  sandbox: boolean
  connectors: string[]
  devices: string[]
  mcp: string[]
  extensions: string[]
}
/** An account of a card; `kind` is empty for an unknown one. */
export interface PersonaAccount {
  id: string
  kind: string
  connected: boolean
}
/** A tool that a turn does not get, and the field of the card that removes it. */
export interface WithheldTool {
  tool: string
  /** The field of the card that takes it, or `unattended`. */
  by: string
}
/** A skill that is offered to a turn. */
export interface PersonaSkill {
  name: string
  description: string
  origin: 'persona' | 'sandbox'
}
/** The source and length of the instructions; length 0: the provider's own, which are unknown here. */
export interface PersonaPrompt {
  mode: PromptMode
  from: 'persona' | 'sandbox'
  chars: Count
}
/** The folder of a turn, its reach, and the card's paths that do not exist. */
export interface ResolvedWorkspace {
  startIn: string
  /** Empty: the whole workspace. */
  folders: string[]
  missing: string[]
}
/** Something that names a card. */
export interface PersonaUse {
  kind: 'automation' | 'workflow' | 'loop' | 'webchat' | 'conversation'
  id: string
  label: string
}
/** The effects of a card on a turn. */
export interface ResolvedPersona {
  id: string
  label: string
  powers: ResolvedPowers
  accounts: PersonaAccount[]
  /** The sandbox's own tools; those of connected servers come with the servers in `powers.mcp`. */
  tools: string[]
  withheld: WithheldTool[]
  skills: PersonaSkill[]
  prompt: PersonaPrompt
  notes: BriefingNote[]
  /** The first of its models that is usable now; left out: the sandbox's choice. */
  model?: PersonaModel
  workspace: ResolvedWorkspace
  usedBy: PersonaUse[]
  /** Sentences about unmet parts of the card, such as an unknown account. */
  problems: string[]
}

/** The effects of a card on a turn; an unknown card grants nothing. */
export interface TurnPersona {
  id: string
  /** Whether the card exists. */
  known: boolean
  powers: ResolvedPowers
  /** The connections it may use. */
  capabilities: string[]
  /** The folders that it reaches, by real path; left out: everything. */
  folders?: string[]
  /** The folder of a first turn, if it exists. */
  startIn?: string
  /** The nested repositories it sees; left out: all. */
  repos?: string[]
  /** The instructions for the model instead of the sandbox's own. */
  instructions?: string
  /** The card says what its turns start from, so that the settings do not. */
  ownPrompt?: boolean
  /** The notes that may be sent. */
  notes: BriefingNote[]
  models: PersonaModel[]
}
/** A skill of a kit with its text and the path of its folder. */
export interface KitSkillFolder extends KitSkillText {
  persona: string
  label: string
  folder: string
}
/** A use of a card. */
export interface PersonaPointer extends PersonaUse {
  persona: string
  startIn?: string
  /** The folders it is limited to; left out: the whole workspace. */
  folders?: { path: string; access: 'read' | 'work' }[]
}

export interface PersonasCalls {
  /**
   * List every card by label, with the accounts that are connected at this moment.
   *
   * A card that is invalid in the file is left out; `GET /system/manifest-problems` names it. People
   * limited to areas see the folders that they reach, and no card that has none of these.
   */
  'GET /personas'(): { personas: Persona[] }

  /**
   * Write a whole card: omitted fields return to their defaults, the prompt and the skills are kept.
   *
   * `folders` and `startIn` are kept also while there is no such folder. Of two writers the last one wins.
   *
   * - 400: an unknown key, a value out of range, or a path that leaves the workspace
   * - 409: `front-desk` answers strangers, and its card has too many powers; or there are 200 cards
   * - 413: the file of cards would become too large, or the disk is full
   * - 422: the file of cards cannot be read, or its folder's path is not a folder
   * - 424: the file of cards could not be written; the message says why
   */
  'POST /personas'(input: PersonaGiven): Ok

  /**
   * Remove a card with its prompt and skills; accounts stay connected.
   *
   * Its users become inactive: a conversation that wears it gets no account and no tools. Without such a card nothing
   * happens.
   *
   * - 413: the disk is full
   * - 422: the file of cards cannot be read, or its folder's path is not a folder
   * - 424: the file of cards could not be written; the message says why
   */
  'DELETE /personas/{id}'(input: { id: EntryId }): Ok

  /**
   * Read the prompt of a card and the names of its skills.
   *
   * - 404: no persona with that id
   */
  'GET /personas/{id}/kit'(input: { id: EntryId }): PersonaKit

  /**
   * Write the prompt of a card; an empty one removes it.
   *
   * It is used while `systemPromptMode` is `custom`, which this does not change. Without a prompt such a card falls
   * back to the sandbox's own instructions.
   *
   * - 400: longer than 20000 characters
   * - 404: no persona with that id
   * - 413: the disk is full
   * - 422: the path of the kit is not a folder
   * - 424: the file could not be written; the message says why
   */
  'POST /personas/{id}/prompt'(input: { id: EntryId; prompt: string & tags.MaxLength<20000> }): Ok

  /**
   * Read one skill of a card from the disk.
   *
   * - 404: no persona with that id, or no such skill on it
   */
  'GET /personas/{id}/skills/read'(input: { id: EntryId; name: KitSkillName }): KitSkillText

  /**
   * Create a skill of a card, or replace the one of that name; files beside its `SKILL.md` are not changed.
   *
   * Only conversations that wear the card reach it, from their next turn.
   *
   * - 400: a bad name, an empty description or body
   * - 404: no persona with that id
   * - 413: the disk is full
   * - 422: the path of the kit is not a folder
   * - 424: the file could not be written; the message says why
   */
  'POST /personas/{id}/skills'(input: {
    id: EntryId
    name: KitSkillName
    description: KitSkill['description']
    body: KitSkill['body']
  }): Ok

  /**
   * Delete a skill of a card with its folder; without such a skill nothing happens.
   *
   * - 404: no persona with that id
   */
  'POST /personas/{id}/skills/remove'(input: { id: EntryId; name: KitSkillName }): Ok

  /**
   * Read the effects of the card on a turn that would start now, and all uses of the card.
   *
   * No model is called. Parts that the caller does not reach are left out. `unattended` asks for a turn that nobody
   * watches: it has no tool that puts up a card.
   *
   * - 404: no persona with that id
   */
  'GET /personas/{id}/resolved'(input: { id: EntryId; unattended?: boolean }): ResolvedPersona

  /** Returns the effects of a card on a turn. */
  'personas.forTurn'(input: { actsAs: string }): TurnPersona
  /** Returns the skills of one card, or of all. */
  'personas.kitSkills'(input: { persona?: string }): { skills: KitSkillFolder[] }
  /** Lists which cards name which connections. */
  'personas.naming'(): { personas: { id: string; capabilities: string[] }[] }
  /** Lets the cards that name a connection name it by its new id. */
  'personas.repoint'(input: { from: string; to: string }): Ok
}

/** A card was removed. */
export interface PersonasEvents {
  'persona.removed': { id: string }
}

type Write = Requests<Pick<PersonasCalls, 'POST /personas'>>
type Others = Requests<Omit<PersonasCalls, 'POST /personas'>>

const write = typia.createValidateEquals<Write>()
const others = typia.misc.createValidatePrune<Others>()

export const personas: Contract<PersonasCalls> = {
  schema: () => typia.json.application<PersonasCalls>(),
  // An unknown key of a card is refused: a typo must not widen what it may do.
  request: asked => ((asked as Partial<Write>).call === 'POST /personas' ? write(asked) : others(asked)),
  reply: () => typia.createValidate<Replies<PersonasCalls>>(),
}
