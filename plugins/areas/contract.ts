import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Access, ReachFolder } from '../../sdk/reach.js'
import type { Count, Millis, Ok, Role, Text } from '../../sdk/types.js'

/** The name of an area in addresses and grants. */
export type AreaId = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
/** A path from the workspace root; `.` is the root. */
export type FolderPath = string & tags.MinLength<1> & tags.MaxLength<4096>
/** A person's e-mail. */
export type Email = string & tags.MinLength<3> & tags.MaxLength<254>

/** A person who holds an area; an open invitation is named `invitation:<id>`. */
export interface Holder {
  email: string
  role: 'collaborator' | 'viewer'
  /** An open invitation. */
  pending?: true
}
/** Why a folder of an area grants nothing now. */
export interface FolderProblem {
  folder: string
  problem: 'missing' | 'leads-outside' | 'closed'
}
/** A named set of folders; each counts with all below it. */
export interface Area {
  id: string
  label: string
  note?: string
  folders: string[]
  /** `read`: inside it the holder is a viewer, whatever the role. */
  access: Access
  createdAt: Millis
  updatedAt: Millis
  updatedBy: string
  /** For maintainers and the owner alone. */
  holders?: Holder[]
  /** Absent: every folder is there. */
  problems?: FolderProblem[]
}
/** A repository that an area covers. */
export interface CoveredRepo {
  repo: string
  covered: 'all' | 'part'
}
/** A folder of an area as it is now. */
export interface CoveredFolder {
  path: string
  exists: boolean
  /** Up to 100,000 are counted. */
  files?: Count
}
/** An area with what it covers now. */
export interface AreaDetail {
  folders: CoveredFolder[]
  repos: CoveredRepo[]
  /** Conversations that start in it. */
  conversations: Count
  id: string
  label: string
  note?: string
  /** `read`: inside it the holder is a viewer, whatever the role. */
  access: Access
  createdAt: Millis
  updatedAt: Millis
  updatedBy: string
  /** For maintainers and the owner alone. */
  holders?: Holder[]
  /** Absent: every folder is there. */
  problems?: FolderProblem[]
}
/** The areas of a caller. */
export interface AreaList {
  areas: Area[]
  /** Whether the caller is limited to areas. */
  limited: boolean
  /** The areas the caller holds. */
  mine: string[]
  /** What the caller reaches, folded. */
  folders: ReachFolder[]
}
/** A person and how far they reach; `via` is empty for the whole workspace. */
export interface PersonReach {
  email: string
  role: Role
  access: Access | 'none'
  via: string[]
}
/** A folder a person reaches, and through which areas. */
export interface FolderReach {
  path: string
  access: Access
  via: string[]
}
/** The result of an audit. */
export interface ReachReport {
  /** The path's real location. */
  path?: string
  people: PersonReach[]
  folders?: FolderReach[]
}

/** Named sets of folders: the unit in which access is granted. */
export interface Areas {
  /**
   * List the areas by label: all of them for maintainers, the owner and tokens, only the caller's own for others.
   *
   * It also says whether the caller is limited, and what the caller reaches.
   */
  'GET /areas'(): AreaList

  /**
   * Audit who reaches a path, or what a person reaches, and through which areas.
   *
   * Exactly one of `path` and `email`. The answer uses the same rules as every call: an area whose folder is gone
   * grants nothing.
   *
   * - 400: neither or both of `path` and `email`, or `path` is not a workspace path
   * - 404: nothing is at the path, or the person is not on the roster
   */
  'GET /areas/reach'(input: { path?: FolderPath; email?: Text }): ReachReport

  /**
   * Give one area with what it covers now: repositories, folders with their number of files, conversations that start
   * in it.
   *
   * - 404: no such area, or none the caller holds
   */
  'GET /areas/{id}'(input: { id: Text }): AreaDetail

  /**
   * Create an area, or replace one whole.
   *
   * Folders are kept by their real location; duplicates and folders below another one are merged. People who hold it
   * keep it, and what they reach changes at once. A folder may be one repository, a group of folders, or `.` for
   * everything.
   *
   * - 400: a reserved id, a blank label, or a folder that is not a workspace path
   * - 404: a folder does not exist
   * - 409: there are 200 areas already
   * - 422: a folder is a file, belongs to git or the sandbox, or leads out of the workspace
   */
  'POST /areas'(input: {
    id: AreaId
    label: string & tags.MinLength<1> & tags.MaxLength<80>
    note?: string & tags.MaxLength<500>
    folders: FolderPath[] & tags.MinItems<1> & tags.MaxItems<50>
    /** Left out: `work`. */
    access?: Access
  }): { area: Area; created: boolean }

  /**
   * Give an area to people on the roster and take it from others, all or nothing; their other areas stay.
   *
   * Giving it to a person who reaches the whole workspace reduces their reach and needs `narrow`. A person who loses
   * their last area reaches nothing, not everything. Giving an area twice and taking one that a person does not hold
   * have no effect.
   *
   * - 400: both lists are empty, or one person is in both
   * - 404: no such area, or a person who is not on the roster
   * - 409: a person reaches the whole workspace, and `narrow` was not given
   * - 422: a maintainer or the owner, who are never limited to areas
   */
  'POST /areas/{id}/holders'(input: {
    id: Text
    add?: Email[] & tags.MaxItems<100>
    remove?: Email[] & tags.MaxItems<100>
    narrow?: boolean
  }): { holders: Holder[] }

  /**
   * Remove an area without holders; its folders and files stay as they are.
   *
   * - 404: no such area
   * - 409: people still hold it, open invitations included; `holders` of the body lists them
   */
  'DELETE /areas/{id}'(input: { id: Text }): Ok

  /**
   * What areas reach together now, by the real location of their folders; unknown areas and folders that are gone reach
   * nothing. With `email` only those that the person still holds count.
   */
  'areas.reach'(input: { areas: string[]; email?: string }): { folders: ReachFolder[] }
  /** Which of these ids name no area. */
  'areas.known'(input: { ids: string[] }): { unknown: string[] }
}

export const areas: Contract<Areas> = {
  schema: () => typia.json.application<Areas>(),
  request: typia.misc.createValidatePrune<Requests<Areas>>(),
  reply: () => typia.createValidate<Replies<Areas>>(),
}
