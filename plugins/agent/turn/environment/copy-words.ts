import { join } from 'node:path'
import { covers, type ReachFolder } from '../../../../sdk/index.js'
import type { GitFailure } from '../../../../sdk/node/programs/git.js'
import { pathOf } from '../../../../sdk/node/repositories/main-repository.js'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import type { Tip } from '../../copies/states.js'
import type { CopyRepo } from '../../contract.js'
import type { TurnNetwork } from './networks.js'

/** The notice about work that git does not commit. */
export const uncommittedNotice = ({ message }: GitFailure): string =>
  `what the turn left could not be committed (${message.slice(0, 300)}): have the agent fix that`

/** The notice about filters of git that cannot run. */
export const unfilteredNotice = (repo: string, filters: readonly string[]): string =>
  `the filter${filters.length === 1 ? '' : 's'} ${filters.join(', ')} of ${repo} cannot run behind the wall, so `
  + 'this copy has the files as git stores them (of LFS: pointers): install what the filter starts, or show it with '
  + 'wall.read, for later copies'

/** The notice about files outside every repository, on a machine without a wall to prevent them. */
export const outsideNotice = (paths: readonly string[], repos: readonly CopyRepo[]): string =>
  `${paths.length} file${paths.length === 1 ? ' lies' : 's lie'} outside the repositories of this private copy `
  + 'and cannot land: '
  + `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ', …' : ''}; have the agent move what is needed `
  + `into ${repos.map(({ repo }) => repo).join(', ')}`

/** The notice about files of a private copy that are in no commit of it. */
export const apartNotice = (paths: readonly string[]): string =>
  `${paths.length} file${paths.length === 1 ? ' is' : 's are'} not committed and cannot land, because git keeps `
  + 'folders of other repositories, names of its own, pipes and sockets out of a commit: '
  + `${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ', …' : ''}; check the submodule out in the workspace, or `
  + 'have the agent move what is needed elsewhere'

/** The notice about a repository of a private copy that is not on the branch of its work. */
const detachedNotice = (repo: string, branch: string): string =>
  `the private copy of ${repo} is not on its branch ${branch}, so what was done there cannot land: have the agent go `
  + 'back to it'

/** The notice about submodules that a turn moved to commits which do not land. */
const pointersNotice = (paths: readonly string[]): string =>
  `a commit of this private copy moves the submodule${paths.length === 1 ? '' : 's'} ${paths.slice(0, 5).join(', ')}${
    paths.length > 5 ? ', …' : ''
  } to a commit that is not on the branch of its work there, so a landing does not move it: have the agent check its `
  + 'branch out there and bring that commit into it, or check the commit out in the workspace'

/** The notice about new files of a private copy that git ignores. */
const ignoredNotice = (paths: readonly string[]): string =>
  `git ignores ${paths.length} new file${paths.length === 1 ? '' : 's'} of this private copy, so ${
    paths.length === 1 ? 'it is' : 'they are'
  } not committed and cannot land: ${paths.slice(0, 5).join(', ')}${paths.length > 5 ? ', …' : ''}; have the agent add `
  + 'what is needed (git add --force)'

/** The notices about work of a turn that its branches do not hold, or that does not land. */
export const tipNotices = (tips: readonly Tip[], branch: string, ignored: readonly string[]): string[] => [
  ...tips.flatMap(({ repo, out, detached, pointers = [] }) => [
    ...(out === undefined ? [] : [out]),
    ...(detached ? [detachedNotice(repo, branch)] : []),
    ...(pointers.length > 0 ? [pointersNotice(pointers.map(path => join(pathOf(repo), path)))] : []),
  ]),
  ...(ignored.length > 0 ? [ignoredNotice(ignored)] : []),
]

/** The repositories that are visible to somebody who reaches these folders. */
export const coveredRepos = (folders: readonly ReachFolder[] | undefined, repos: readonly string[]): string[] =>
  repos.filter(repo => covers(folders, repo) !== 'none')

/** The notice to a turn that is kept to areas. */
export const narrowedNotice = (folders: readonly ReachFolder[]): string =>
  `this conversation is kept to ${folders.map(({ path }) => path).join(', ')}, which is what the person who opened it `
  + 'reaches: the turn reaches nothing else; fork the conversation for turns that reach the whole workspace'

/** The frame that says where a turn works. */
export const worktreeFrame = async (
  branch: string,
  repos: readonly CopyRepo[],
  has: TurnNetwork | undefined,
  sync?: { commits: number; blocked: string[] },
) => {
  const base = (repos.find(({ repo }) => repo === 'root') ?? repos[0])?.base ?? ''
  const unenforced = (await wallKind()) === 'none'
  const network = await has?.kind()
  return {
    kind: 'worktree' as const,
    branch,
    base,
    ...(unenforced && { unenforced }),
    ...(network && { network }),
    ...(sync && { sync }),
  }
}
