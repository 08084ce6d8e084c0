import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { PathTree } from '../../../sdk/node/files/open-path.js'
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
