import type { ChangesSeen, GitChange, GitCode, GitRemoteState, UncommittedChanges } from '../../../git/contract.js'
import { refetch } from './queries.js'

/** What calls of the group git answer that git itself may refuse. */
export interface GitOutcome {
  readonly ok: boolean
  readonly reason?: string
  readonly code?: GitCode
  readonly conflicts?: readonly string[]
}

const WORDS: { readonly [code in GitCode]: string } = {
  conflict: 'the same lines were changed',
  nothing: 'there is nothing to do',
  dirty: 'uncommitted changes are in the way',
  'no-remote': 'there is no remote',
  'no-upstream': 'the branch follows no branch of a remote',
  'not-fast-forward': 'both sides have commits of their own',
  rejected: 'the remote refused',
  auth: 'the remote wants a sign-in: store the value for its host under Secrets',
  unreachable: 'the remote does not answer',
  'checked-out': 'the branch is checked out elsewhere',
  unmerged: 'the branch is not merged',
  other: 'git refused',
}
const MOST_NAMED = 10

/** Reads again what shows repositories. */
export const gitChanged = (): void => refetch(new Set(['refs', 'files']))

/** A result that git accepted; throws what it said where it refused. */
export const accepted = <T extends GitOutcome>(verdict: T): T => {
  gitChanged()
  if (verdict.ok) return verdict
  const { reason, code = 'other', conflicts = [] } = verdict
  const named = conflicts.slice(0, MOST_NAMED).join(', ')
  const more = conflicts.length > MOST_NAMED ? ` and ${conflicts.length - MOST_NAMED} more` : ''
  throw new Error(`${reason ?? WORDS[code] ?? code}${named && ` (${named}${more})`}`)
}

/** Whether a refused result left the repository halted, to be resolved. */
export const leftHalted = ({ ok, code }: GitOutcome): boolean => !ok && code === 'conflict'

/** Where HEAD was when a page showed it, as calls that move or publish a branch take it. */
export const expectedHead = (shown: Pick<GitRemoteState, 'head'> | undefined): { expectHead?: string } =>
  shown?.head === undefined ? {} : { expectHead: shown.head }

/** The shown changes, as `expect` of a discard takes them. */
export const seenStampsOf = (changes: readonly GitChange[]): ChangesSeen =>
  Object.fromEntries(changes.flatMap(({ path, stamp }) => (stamp === undefined ? [] : [[path, stamp]])))

/** All of the changes of a repository that are listed. */
export const allChanges = ({ conflicted, staged, unstaged }: UncommittedChanges): GitChange[] => [
  ...conflicted,
  ...staged,
  ...unstaged,
]

/** The name of a repository for people. */
export const repoTitle = (repo: string): string => (repo === 'root' ? 'The workspace' : repo)
