import type { ChangedSides, SidePair, Size } from '../../../sdk/types.js'

/** Uncommitted work (`side`), or a commit against its first parent or `base`. */
export interface GitComparison {
  repo: string
  side?: 'staged' | 'unstaged' | 'conflicted'
  sha?: string
  base?: string
}

/** Comparisons of files that are not text, for other groups. */
export interface GitSideCalls {
  /** Writes both sides of a path into files of a folder, each up to `most` bytes; `conflicted` is ours and theirs. */
  'git.sides'(input: GitComparison & { path: string; from?: string; folder: string; most: Size }): SidePair

  /** Gives the files that a comparison changed, at most 20,000. */
  'git.changed'(input: GitComparison): { changes: ChangedSides[] }
}
