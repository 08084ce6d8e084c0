import type { tags } from 'typia'
import type { Count, Size } from '../../../sdk/types.js'

/** A path of the workspace: relative, separated by `/`, without empty, `.` or `..` segments. */
export type WsPath = string & tags.MinLength<1> & tags.MaxLength<4096>

/** A conversation whose private copy is read. */
export type CopyOf = string & tags.Pattern<'^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$'>

/** A number that increases with every batch of changes of a tree. */
export type Generation = number & tags.Type<'uint64'>

/** Where a link leads. */
export interface EntryLink {
  /** The text of the link; empty if the caller may not see its target. */
  to: string
  /** Absent: it leads to something in the workspace. */
  state?: 'broken' | 'outside'
}
/** Something in a folder. */
export interface WorkspaceEntry {
  name: string
  path: string
  /** A link has the type of its target, and is a file if broken. */
  type: 'file' | 'dir'
  /** Of files, in bytes. */
  size?: Size
  /** Tools ignore it, and the tree does not open it. */
  ignored?: boolean
  link?: EntryLink
  /** It belongs to the sandbox or to git and is never opened or written here. */
  closed?: true
  /** Its name is not UTF-8, so no path names it. */
  lossy?: true
  /** Absent: not opened; list its children. Empty: an empty folder. */
  children?: WorkspaceEntry[]
}
/** The workspace as a tree. */
export interface WorkspaceTree {
  /** The name of the folder. */
  root: string
  tree: WorkspaceEntry[]
  /** Entries of the root that did not fit. */
  hidden: Count
  /** The topmost opened folders without a file anywhere below them. */
  barren: string[]
  /** As it was before the walk began. */
  generation: Generation
  /** `polling`: the system's limit of watches is reached, and changes are found every 30 s. */
  watch?: 'live' | 'polling'
}
/** A page of a folder. */
export interface FolderPage {
  entries: WorkspaceEntry[]
  /** Entries of this folder after this page. */
  hidden: Count
}
/** The path that a text names. */
export interface ResolvedPath {
  path?: string
}

/** The tree of files. */
export interface TreeCalls {
  /**
   * List the files and folders of the workspace as a tree, at most 5,000 entries.
   *
   * Wide before deep, folders before files, then by name. Ignored and closed folders and links that lead out or back to
   * a folder around them are listed unopened; a folder that does not fit the rest of the 5,000 entries or of 3 s is
   * listed unopened too. With `agent` it is the private copy of that conversation.
   *
   * - 404: no such conversation
   * - 409: its private copy was cleaned up
   */
  'GET /workspace/tree'(input: { agent?: CopyOf }): WorkspaceTree

  /**
   * List one folder by name, with `depth` up to five levels of it; ignored folders too.
   *
   * At most 5,000 entries: `hidden` counts the rest of the folder, and `after`, the name of the last entry, continues
   * behind it. A folder that cannot be read lists as empty. `path` is `.` or empty for the root.
   *
   * - 400: not a workspace path, or `after` with a depth over 1
   * - 404: no such folder or conversation
   * - 409: the private copy was cleaned up
   * - 422: the path is a file
   */
  'GET /workspace/children'(input: {
    agent?: CopyOf
    path: string & tags.MaxLength<4096>
    depth?: number & tags.Type<'uint32'> & tags.Minimum<1> & tags.Maximum<5>
    after?: string & tags.MaxLength<1024>
  }): FolderPage

  /**
   * Find the file that a path in a text means.
   *
   * Line numbers, quotes, the prefixes `a/` and `b/` and the absolute path of the workspace are removed; then the path
   * is tried, then its ever shorter suffixes. Of several matches the one with the fewest folders wins, then the one
   * changed last. The private copy of `agent` is searched first. Without a match the answer is empty.
   *
   * - 404: no such conversation
   */
  'GET /workspace/resolve'(input: {
    agent?: CopyOf
    path: string & tags.MinLength<1> & tags.MaxLength<512>
  }): ResolvedPath
}
