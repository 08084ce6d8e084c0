import type { ContentDigest } from '../../../sdk/types.js'
import type { GitOperation } from '../records.js'

/** A file of a repository, named by its path from there. */
export interface NamedRepoFile {
  repo: string
  path: string
}
/** How a file stands to the history of its repository. */
export interface RepoFileState {
  /** The last commit of HEAD's history that changed it, while it is as in HEAD. */
  commit?: string
  /** It is another one than in HEAD. */
  dirty: boolean
  /** The repository is halted in it. */
  operation?: GitOperation
}

/** Single files and their commits, for other groups. */
export interface PathServices {
  /**
   * Says how a file stands to HEAD; refused with 404 where the caller sees no such repository, with 422 if it is a
   * link or has more than 4 MiB.
   */
  'git.fileState'(input: NamedRepoFile): RepoFileState
  /**
   * Writes a whole text file and commits it alone, as the caller, without hooks: both or neither. Refused with 409
   * if it has uncommitted edits, is not the one of `baseHash` (`absent`: none), or an operation is in progress; with
   * 422 if it is a link or has more than 4 MiB. What somebody saves while a commit fails stays.
   */
  'git.commitFile'(input: NamedRepoFile & { content: string; baseHash: ContentDigest | 'absent'; message: string }): {
    commit: string
  }
}
