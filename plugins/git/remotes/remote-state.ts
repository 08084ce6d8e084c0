import type { GitRemoteState } from '../records.js'
import type { RepoGit } from '../repositories/repo-git.js'
import { remotesOf, gitSettings } from './settings.js'

/** The branch that is checked out, and its distance to its upstream. */
export interface BranchPlace {
  readonly branch?: string
  readonly upstream?: string
  readonly ahead: number
  readonly behind: number
  /** The commit of the branch. */
  readonly head?: string
}

/** The remote of a branch: its own, otherwise `origin`, otherwise the first. */
export const remoteOfBranch = async (git: RepoGit, branch: string | undefined): Promise<string | undefined> => {
  const remotes = await remotesOf(git)
  if (branch !== undefined) {
    const settings = await gitSettings(git, '^branch\\..*\\.(remote|pushremote)$')
    const own = settings.findLast(([key]) => key === `branch.${branch}.remote`)?.[1]
    if (own !== undefined && remotes.some(({ name }) => name === own)) return own
  }
  return remotes[0]?.name
}

/** The state of the current branch relative to its remote, as of the last fetch. */
export const remoteStateOf = async (git: RepoGit, place: BranchPlace): Promise<GitRemoteState> => {
  const { branch, upstream, ahead, behind, head } = place
  const remote = await remoteOfBranch(git, branch)
  return {
    ...(remote !== undefined && { remote }),
    ...(branch !== undefined && { branch }),
    ...(upstream !== undefined && { upstream }),
    ahead,
    behind,
    ...(head !== undefined && { head }),
  }
}
