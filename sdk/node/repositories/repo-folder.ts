import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse } from '../../refusal.js'
import { openPath, type PathTree, shownPath } from '../files/open-path.js'

/** The folder of a repository, from the workspace root; refuses an unknown one. */
export const repoFolder = async (tree: PathTree, repo: string): Promise<string> => {
  const path = repo === 'root' ? '.' : repo
  await using found = await openPath(tree, path)
  const git = found && (await lstat(join(found.at, '.git')).catch(() => undefined))
  return git ? found.path : refuse('not-found', `no repository is named ${shownPath(repo)}`)
}
