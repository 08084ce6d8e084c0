import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Ok, Size } from '../../sdk/types.js'

/** The name of a skill, which is that of its folder. */
export type SkillName = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
/**
 * Where a skill comes from: it ships with the sandbox, the owner wrote it, a connection, an extension or a cloned
 * plugin brought it, it is in the kit of a persona, or it is an unclaimed loose folder.
 */
export type SkillOrigin = 'builtin' | 'own' | 'capability' | 'extension' | 'plugin' | 'persona' | 'dropped'

/** A skill without its text. */
export interface SkillSummary {
  /** The name of an own, built-in or dropped skill; otherwise `<origin>:<owner>:<name>`. */
  id: string
  /** The name of the folder, regardless of the file. */
  name: string
  /** When to use it; empty if the file declares nothing. */
  description: string
  origin: SkillOrigin
  /** Who ships it. */
  owner?: string
  /** Whether the next turn can reach it. */
  enabled: boolean
  switchable: boolean
  editable: boolean
  removable: boolean
  /** The estimated size of the text, in tokens. */
  tokens: Count
  /** Files beside `SKILL.md`. */
  files: Count
}
/** A file beside `SKILL.md`, by its path from the folder. */
export interface SkillFile {
  path: string
  size: Size
}
/** The text of a skill and its other files. */
export interface SkillBody {
  id: string
  name: string
  description: string
  body: string
  files: SkillFile[]
}
/** A parsed `SKILL.md`. */
export interface SkillText {
  description: string
  body: string
}
/** A skill that is offered to a turn. */
export interface TurnSkill {
  name: string
  description: string
  origin: SkillOrigin
  /** Its folder from the workspace root, or the path at which programs see that of an extension or plugin. */
  folder?: string
}
/** Whose skills: those of the sandbox, and of the persona that the turn wears. */
export interface SkillsAsked {
  persona?: string
  /** The extensions that the persona allows; left out: all. */
  extensions?: string[]
  /** The connections that the persona allows; left out: all. */
  capabilities?: string[]
  /** The folders that the turn is limited to; left out: the whole workspace. */
  folders?: { path: string; access: 'read' | 'work' }[]
}

/** A folder of the workspace, or an archive in it, with skills in it. */
export interface SkillFolder {
  kind: 'path'
  path: string & tags.MinLength<1> & tags.MaxLength<1000>
}
/** A commit of a repository with skills in it. */
export interface SkillCommit {
  kind: 'git'
  /** https, ssh, http on this machine, or the path of a repository in the workspace. */
  url: string & tags.MinLength<1> & tags.MaxLength<2000>
  /** The full id of the commit: 40 hexadecimal digits. */
  ref: string & tags.MinLength<40> & tags.MaxLength<40> & tags.Pattern<'^[0-9a-f]+$'>
  /** A folder in the repository; default: all of it. */
  path?: string & tags.MinLength<1> & tags.MaxLength<500>
  /** The name of a stored secret that is sent as access token. */
  secret?: string & tags.MaxLength<200>
}
/** The skills to import, and their source. */
export interface SkillImport {
  from: SkillFolder | SkillCommit
  /** Default: every skill of the source. */
  names?: SkillName[] & tags.MaxItems<100>
  /** Replace existing skills. */
  replace?: boolean
}
/** An imported skill: its files beside `SKILL.md`, and the total size. */
export interface ImportedSkill {
  name: string
  files: Count
  size: Size
}
/** A skill that was not imported, and why. */
export interface SkippedSkill {
  name: string
  reason: string
}
/** The result of an import. */
export interface ImportedSkills {
  imported: ImportedSkill[]
  skipped: SkippedSkill[]
}

export interface SkillsCalls {
  /**
   * List every skill by name: own ones, then built-in, those of personas, extensions and plugins, and loose folders.
   *
   * It is read from the disk: a turn would get exactly the enabled ones. A folder without a readable `SKILL.md` is no
   * skill. People limited to areas see no loose folder that they do not reach, and only maintainers see those of
   * connections.
   */
  'GET /skills'(): SkillSummary[]

  /**
   * Write an own skill by name; a new one is switched on, and one that is off stays off.
   *
   * The front matter is written so that every loader can read it; files beside `SKILL.md` are not changed. The answer
   * comes when the loaded skills are updated.
   *
   * - 400: a bad name, an empty description or body
   * - 409: the name belongs to a built-in skill or to a loose folder; or 200 skills are on
   * - 413: the disk is full
   * - 422: the path of the skills is not a folder, or the settings cannot be read
   * - 424: a file could not be written; the message says why
   */
  'POST /skills'(input: {
    name: SkillName
    description: string & tags.MinLength<1> & tags.MaxLength<1024>
    body: string & tags.MinLength<1> & tags.MaxLength<200000>
  }): Ok

  /**
   * Read the text of a skill, and which files are beside it.
   *
   * - 404: no skill with that id
   */
  'GET /skills/read'(input: { id: string & tags.MinLength<1> & tags.MaxLength<200> }): SkillBody

  /**
   * Delete an own skill or a loose folder, with its files, its switch and its links.
   *
   * - 404: no skill of that name
   * - 409: it belongs to something else, which the message names
   * - 422: the settings cannot be read
   * - 424: a file could not be removed; the message says why
   */
  'POST /skills/remove'(input: { name: SkillName }): Ok

  /**
   * Switch an own or a built-in skill on or off; a running turn keeps its skills.
   *
   * - 404: no skill with that id
   * - 409: it has no switch here, or 200 skills are on; the message names whose it is
   * - 413: the disk is full
   * - 422: the settings cannot be read
   * - 424: a file could not be written; the message says why
   */
  'POST /skills/enabled'(input: { id: string & tags.MinLength<1> & tags.MaxLength<200>; enabled: boolean }): Ok

  /**
   * Copy skills with their files from a folder or an archive of the workspace, or from a commit of a repository, and
   * switch new ones on.
   *
   * Every folder with a `SKILL.md` is a skill, at most 100 with 500 files and 20 MiB each. Programs stay executable,
   * and nothing runs: hooks and filters of a repository are off. All are imported, or after a refusal none; names
   * that exist are skipped unless `replace` is set. An archive is zip, tar, gz, zst, bz2, xz, 7z or rar, by its
   * content: bz2 and xz need the programs of that name, 7z and rar need bsdtar. An archive with an entry that leads
   * outside, a device, or a name that the sandbox keeps for itself is refused.
   *
   * - 400: a wrong address, or a `ref` that is not a full commit id
   * - 404: no such folder or archive in the workspace
   * - 409: more than 200 skills would be on
   * - 413: too many skills or files, an archive of more than 2 GiB or 50,000 entries, or over 64 MiB and 200 times its
   *   own size, or the disk is full
   * - 422: the address is no repository of the workspace, no folder there is a skill, a link leads out of a skill, the
   *   file is not an archive, is damaged or encrypted, an entry of it is refused (the message names it), or the
   *   settings cannot be read
   * - 424: the repository could not be fetched, has no such commit, or a file could not be written
   * - 501: the program for the format of the archive is missing
   */
  'POST /skills/import'(input: SkillImport): ImportedSkills

  /** Parses a `SKILL.md`. */
  'skills.parse'(input: { text: string }): SkillText
  /** Writes a `SKILL.md` that every loader can read. */
  'skills.compose'(input: { name: string; description: string; body: string }): { text: string }
  /** Lists the skills that a turn may use. */
  'skills.forTurn'(input: SkillsAsked): { skills: TurnSkill[] }
  /** Reads a skill of a turn, or one of its files. 404: no such skill of the turn, or no such file. */
  'skills.text'(input: SkillsAsked & { name: string; file?: string }): { text: string; files: SkillFile[] }
}

export const skills: Contract<SkillsCalls> = {
  schema: () => typia.json.application<SkillsCalls>(),
  request: typia.misc.createValidatePrune<Requests<SkillsCalls>>(),
  reply: () => typia.createValidate<Replies<SkillsCalls>>(),
}
