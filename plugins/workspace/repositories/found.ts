import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { openPath, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { walkFolders } from '../tree/folders.js'
import { pathIn } from '../tree/ignore-rules.js'
import type { RepoList } from './contract.js'

const DEEPEST = 6

/** The repositories below the root that a caller sees. */
export const reposIn = async (tree: PathTree): Promise<RepoList> => {
  const repos: string[] = []
  const skipped: RepoList['skipped'] = []
  const unnamed = async (path: string, name: Buffer) => {
    if (await hasGit(tree.root, path, name))
      skipped.push({ path: pathIn(path, name.toString()), reason: 'its name is not UTF-8' })
  }
  for await (const folder of walkFolders(tree, { deepest: DEEPEST, unnamed })) {
    const { path, names } = folder
    const git = path === '.' ? undefined : names.find(({ name }) => name.toString() === '.git')
    if (git?.isSymbolicLink()) skipped.push({ path, reason: 'its .git is a link' })
    else if (git) {
      repos.push(path)
      folder.enter = false
    }
  }
  return { repos: repos.sort(), skipped }
}

const hasGit = (root: string, path: string, name: Buffer): Promise<boolean> =>
  lstat(Buffer.concat([Buffer.from(`${join(root, path)}/`), name, Buffer.from('/.git')])).then(
    () => true,
    () => false,
  )

/** The folder of a repository, from the workspace root; refuses an unknown one. */
export const repoFolder = async (tree: PathTree, repo: string): Promise<string> => {
  const path = repo === 'root' ? '.' : repo
  await using found = await openPath(tree, path)
  const git = found && (await lstat(join(found.at, '.git')).catch(() => undefined))
  return git ? found.path : refuse('not-found', `no repository is named ${shownPath(repo)}`)
}
