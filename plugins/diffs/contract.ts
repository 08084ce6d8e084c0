import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Positive, Size } from '../../sdk/types.js'
import type { GitRepoName, RepoPath, Sha } from '../git/contract.js'
import type { DiffKind, Renderer } from '../workspace/contract.js'

/**
 * What is compared.
 *
 * `working`: uncommitted work of `repo`, by `side`. `agent`: what the conversation `agent` changed in `repo`. `commit`:
 * `sha` of `repo` against its first parent or `base`. `checkpoint`: the saved point `snapshot` of the repository
 * `scope` against the one before it, another point or `now`. `files`: two files of the workspace.
 */
export type DiffSourceName = 'working' | 'agent' | 'commit' | 'checkpoint' | 'files'

/** The comparison of the files that a call asks for. */
export interface DiffSource {
  source: DiffSourceName
  /** For `working`, `agent` and `commit`. */
  repo?: GitRepoName
  /** For `working`; of a conflict it is ours against theirs. */
  side?: 'staged' | 'unstaged' | 'conflicted'
  /** The conversation, for `agent`; for `files` its tree in place of the shared one. */
  agent?: string & tags.MinLength<1> & tags.MaxLength<200>
  /** For `commit`. */
  sha?: Sha
  base?: Sha
  /** For `checkpoint`: the id of a saved point. */
  snapshot?: string & tags.MinLength<1> & tags.MaxLength<200>
  /** For `checkpoint`: its repository. */
  scope?: GitRepoName
  /** For `checkpoint`: another point, or `now`. */
  against?: string & tags.MinLength<1> & tags.MaxLength<200>
}
/** A comparison of single files: a path of its repository, or two of the workspace for `files`. */
export interface DiffPair extends DiffSource {
  path?: RepoPath
  /** The earlier name of a renamed file, for `commit`. */
  from?: RepoPath
  before?: RepoPath
  after?: RepoPath
}

/** One side of a comparison as text. */
export interface RenderedSide {
  /** The SHA-256 of its bytes; empty where it is larger than 50 MiB. */
  hash: string
  size: Size
  deriver: string
  /** At most 1 MiB. */
  markdown?: string
  title?: string
  /** What the text does not show. */
  notes: string[]
  /** Pages, sheets, slides or cells. */
  parts?: Count
  truncated: boolean
  /** Why it could not be read: encrypted, damaged, over 50 MiB, not within 60 s. */
  failed?: string
}
/** Both sides of a changed document, and how their texts differ. */
export interface RenderedDiff {
  path: string
  from?: string
  kind: DiffKind
  /** Absent: added. */
  before?: RenderedSide
  /** Absent: deleted. */
  after?: RenderedSide
  /** The texts are equal, whether or not the bytes are. */
  same: boolean
  /** With 3 lines of context, at most 512 KiB; absent where a side failed or the texts are equal. */
  unified?: string
  imagesChanged?: Count
}
/** A changed file that is not plain text. */
export interface DocumentRow {
  path: string
  from?: string
  kind: DiffKind
  /** There is an earlier side. */
  before: boolean
  /** There is a later side. */
  after: boolean
  renderable: boolean
  /** Why it is not. */
  reason?: string
  /** The texts of all its sides are kept; a side on disk counts as not kept. */
  cached: boolean
}
/** One page of changed documents. */
export interface ChangedDocuments {
  documents: DocumentRow[]
  hasMore: boolean
  /** The formats that can be read here. */
  renderers: Renderer[]
}
/** The bytes of a side. */
export interface SideBytes {
  'content-type': string
}

/** What changed in files that a comparison of lines does not show. */
export interface DiffsCalls {
  /**
   * Give both sides of a changed document as markdown, and how they differ.
   *
   * Each side is read for at most 60 s, both at once; bytes that were read before are answered from the store. A side
   * that cannot be read has `failed`, and the other is still shown. A picture inside is written as the first digits of
   * its hash.
   *
   * - 400: a field of the source is missing or malformed
   * - 404: no such repository, commit, saved point, conversation or path, or outside the caller's areas
   * - 409: the branch of the conversation is gone
   * - 422: a picture or another file without text form, a folder, pipe or device, the conversation works in the shared
   *   tree, a shortened id names more than one commit, or the git folder cannot be used
   * - 424: git failed; the message says how
   * - 429: four documents are waiting
   * - 501: a program is missing: LibreOffice for .doc, .xls and .ppt, or git; the message says how to install it
   */
  'GET /diff/rendered'(input: DiffPair): RenderedDiff

  /**
   * Give the bytes of one side, at most 25 MiB; the ETag is their SHA-256.
   *
   * - 400: a field of the source is missing or malformed
   * - 404: no such repository, commit, saved point, conversation or path, outside the caller's areas, or there is no
   *   such side
   * - 409: the branch of the conversation is gone
   * - 413: it is larger than 25 MiB
   * - 422: a folder, pipe or device, the conversation works in the shared tree, a shortened id names more than one
   *   commit, or the git folder cannot be used
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'GET /diff/raw'(input: DiffPair & { which: 'before' | 'after' }): SideBytes

  /**
   * List the files that a comparison changed and that are not plain text, by path; pass the last as `after` for more.
   *
   * Nothing is rendered. Kinds are those of the names.
   *
   * - 400: a field of the source is missing or malformed, or the source is `files`
   * - 404: no such repository, commit, saved point or conversation, or outside the caller's areas
   * - 409: the branch of the conversation is gone
   * - 422: the conversation works in the shared tree, a shortened id names more than one commit, or the git folder
   *   cannot be used
   * - 424: git failed; the message says how
   * - 501: git is missing; the message says how to install it
   */
  'GET /diff/documents'(
    input: DiffSource & { limit?: Positive & tags.Default<200>; after?: RepoPath },
  ): ChangedDocuments
}

export const diffsContract: Contract<DiffsCalls> = {
  schema: () => typia.json.application<DiffsCalls>(),
  request: typia.misc.createValidatePrune<Requests<DiffsCalls>>(),
  reply: () => typia.createValidate<Replies<DiffsCalls>>(),
}
