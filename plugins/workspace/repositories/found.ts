import { isUtf8 } from 'node:buffer'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { leads, refuse } from '../../../sdk/index.js'
import { closedAs } from '../../../sdk/node/files/closed-names.js'
import { openPath, type PathTree, shownPath } from '../../../sdk/node/files/open-path.js'
import { IgnoreRules, isIgnored, pathIn } from '../tree/ignore-rules.js'
import { namesOfFolder } from '../tree/sweep.js'
import type { RepoList } from './contract.js'

const DEEPEST = 6
const MOST_FOLDERS = 50_000
const SLICE = 200
const LEFT_OUT = new Set(['refs', 'public'])

/** The repositories below the root that a caller sees. */
export const reposIn = async (tree: PathTree): Promise<RepoList> => {
  const rules = new IgnoreRules(tree.root)
  const repos: string[] = []
  const skipped: RepoList['skipped'] = []
  let level = ['.']
  let looked = 0
  for (let depth = 0; depth <= DEEPEST && level.length > 0; depth++) {
    const next: string[] = []
    for (const path of level) {
      if (++looked > MOST_FOLDERS) break
      if (looked % SLICE === 0) await new Promise<void>(resolve => setImmediate(resolve))
      const names = namesOfFolder(tree.root, path)
      const git = path === '.' ? undefined : names.find(({ name }) => name.toString() === '.git')
      if (git?.isSymbolicLink()) skipped.push({ path, reason: 'its .git is a link' })
      else if (git) {
        repos.push(path)
        continue
      }
      const scope = rules.in(path)
      for (const entry of names) {
        const name = entry.name.toString()
        const below = pathIn(path, name)
        if (!entry.isDirectory() || name.startsWith('.') || closedAs(below.split('/')) !== undefined) continue
        if ((path === '.' && LEFT_OUT.has(name)) || !leads(tree.reach, below) || isIgnored(scope, below, true)) continue
        if (isUtf8(entry.name)) next.push(below)
        else if (await hasGit(tree.root, path, entry.name))
          skipped.push({ path: below, reason: 'its name is not UTF-8' })
      }
    }
    level = next
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
