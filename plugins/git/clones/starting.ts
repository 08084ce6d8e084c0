import { lstat, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse, type Context, type Input } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { flushFolder } from '../../../sdk/node/files/files.js'
import { openParent, openPath, shownPath, type OpenedPath, type PathTree } from '../../../sdk/node/files/open-path.js'
import { git as runGit } from '../../../sdk/node/programs/git.js'
import { record } from '../../../sdk/node/record/record.js'
import type { RemoteDeps } from '../remotes/fetching.js'
import { checkedRef } from '../repositories/names.js'
import { RepoGit } from '../repositories/repo-git.js'
import { identityFor } from '../writes/identity.js'
import type { CloneCalls, StartedRepo } from './contract.js'
import { pointerTo, type NewGitdirs } from './new-gitdirs.js'
import { reposChanged } from './repos-changed.js'

/** A repository to create. */
export type StartOrder = Input<CloneCalls, 'POST /workspace/repos/init'>

/** Opens the folder, and creates it if missing. */
const openFolder = async (tree: PathTree, path: string): Promise<OpenedPath> => {
  const found = await openPath(tree, path)
  if (!found) {
    await using parent = await openParent(tree, path, { make: true })
    await mkdir(parent.target)
    await flushFolder(parent.at)
  }
  const opened = found ?? (await openPath(tree, path)) ?? refuse('conflict', `${shownPath(path)} went meanwhile`)
  if (opened.stats.isDirectory() && opened.path !== '.') return opened
  await opened.close()
  return refuse('conflict', `${shownPath(path)} is no folder below the root of the workspace`)
}

/** Refuses a folder that is or lies in a repository, apart from the workspace's own. */
const assertFree = async (workspace: string, path: string): Promise<void> => {
  for (let folder = path; folder !== '.'; folder = dirname(folder))
    if (await lstat(join(workspace, folder, '.git')).catch(() => undefined))
      refuse('conflict', `${shownPath(path)} ${folder === path ? 'is' : 'lies in'} a repository already`)
}

/** Creates a repository in a folder: it exists as soon as its `.git` file does. */
export const startRepo = async (
  { host, repositories }: RemoteDeps,
  gitdirs: NewGitdirs,
  { path: named, branch = 'main', commit = true }: StartOrder,
  context: Context,
): Promise<StartedRepo> => {
  checkedRef(branch, 'branch')
  const { workspace } = host.place
  const { reach } = await repositories.viewOf(context.caller)
  const tree = { root: workspace, reach, readsGit: false }
  await using before = await openPath(tree, named)
  await assertFree(workspace, before?.path ?? named.replace(/\/$/, ''))
  await using folder = await openFolder(tree, named)
  await assertFree(workspace, folder.path)
  const gitdir = await gitdirs.make(folder.path)
  let head: string | undefined
  try {
    await mkdir(gitdir.dir, { mode: 0o700 })
    await runGit(gitdir.dir, ['init', '-q', '--bare', '--template=', `--initial-branch=${branch}`, gitdir.dir])
    await runGit(gitdir.dir, ['config', '--file', join(gitdir.dir, 'config'), 'core.bare', 'false'])
    const place = { repo: folder.path, dir: join(workspace, folder.path), gitdir: gitdir.dir, common: gitdir.dir }
    const git = new RepoGit(place, repositories.wall)
    if (commit) head = await firstCommit(git, context)
    failpoint('git.start.committed')
    await writeFile(join(folder.at, '.git'), pointerTo(gitdir.dir), { flag: 'wx' })
    await flushFolder(folder.at)
  } catch (error) {
    await gitdir.drop()
    throw error
  }
  await gitdir.finished()
  await reposChanged(host, repositories)
  await record(host, { type: 'workspace.repoStarted', outcome: 'ok', extra: { repo: folder.path } }, context)
  return { repo: folder.path, path: folder.path, ...(head !== undefined && { head }) }
}

const firstCommit = async (git: RepoGit, { caller }: Context): Promise<string> => {
  const identity = await identityFor(git, caller)
  await git.write(['add', '-A'], { identity })
  await git.write(['commit', '-q', '--allow-empty', '-m', 'Start the repository'], { identity })
  return (await git.read(['rev-parse', 'HEAD'])).text.trim()
}
