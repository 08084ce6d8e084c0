import { lstat, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { readPlain } from '../files/files.js'
import { git, GitFailure } from '../programs/git.js'
import { pathOf, type MainRepository } from './main-repository.js'
import { stateStamp } from './state-stamp.js'

const MOST_BYTES = 1024 * 1024
const MOST_MODULES = 500
const MOST_KNOWN = 200

/** A submodule as `.gitmodules` names it. */
interface NamedModule {
  readonly name: string
  readonly path: string
}

/** What `.gitmodules` of a checkout said when it was read last, by checkout. */
const known = new Map<string, { readonly stamp: string; readonly modules: readonly NamedModule[] }>()

/** A path below a folder in git's normal form, which leads neither out of it nor into a git dir. */
const isInside = (path: string): boolean =>
  path !== ''
  && !path.includes('\0')
  && path.split('/').every(part => part !== '' && part !== '.' && part !== '..' && part.toLowerCase() !== '.git')

/**
 * The submodules that `.gitmodules` of a checkout names, as git reads that file.
 *
 * The file can come from anywhere, so it is only a hint where to look: nothing in it is run, fetched or followed.
 */
const namedIn = async (checkout: string): Promise<readonly NamedModule[]> => {
  const file = join(checkout, '.gitmodules')
  const now = stateStamp(file)
  if (!now) return []
  const before = known.get(checkout)
  if (before?.stamp === now.stamp) return before.modules
  const modules = await read(readPlain(file, MOST_BYTES))
  if (known.size >= MOST_KNOWN) known.delete(known.keys().next().value!)
  if (!now.racy) known.set(checkout, { stamp: now.stamp, modules })
  return modules
}

const orUndefined = (error: unknown): undefined => {
  if (!(error instanceof GitFailure)) throw error
}

const read = async (text: string | undefined): Promise<readonly NamedModule[]> => {
  if (text === undefined) return []
  const args = ['config', '--file', '-', '--null', '--get-regexp', String.raw`^submodule\..*\.path$`]
  const answer = await git('/', args, { input: text, ok: [0, 1] }).catch(orUndefined)
  const entries = answer?.text.split('\0') ?? []
  const modules = entries.flatMap(entry => {
    const [, name = '', path = ''] = /^submodule\.([^\n]*)\.path\n(.*)$/s.exec(entry) ?? []
    return isInside(path) && isInside(name) ? [{ name, path }] : []
  })
  return modules.slice(0, MOST_MODULES)
}

/** Whether a folder has a `.git` that is no link, and is reached without one. */
const isCheckout = async (folder: string): Promise<boolean> => {
  if ((await realpath(folder).catch(() => undefined)) !== folder) return false
  const found = await lstat(join(folder, '.git')).catch(() => undefined)
  return found !== undefined && !found.isSymbolicLink()
}

/**
 * The checkouts of submodules of these repositories that are not among them, parents first: they may lie in folders
 * that are not searched for repositories, such as `vendor`. Paths are from the root of the workspace.
 */
export const submoduleCheckouts = async (workspace: string, repositories: readonly string[]): Promise<string[]> => {
  const root = await realpath(workspace).catch(() => workspace)
  const all = new Set(repositories)
  // A set is walked in the order of its entries, those that are added on the way too.
  for (const repository of all) {
    for (const { path } of await namedIn(join(root, repository))) {
      const whole = repository === '' ? path : `${repository}/${path}`
      if (!all.has(whole) && all.size < MOST_MODULES && (await isCheckout(join(root, whole)))) all.add(whole)
    }
  }
  return [...all].slice(new Set(repositories).size)
}

/** A git dir that git made for a submodule, not reached through a link. */
const isGitdir = async (gitdir: string): Promise<boolean> => {
  if ((await realpath(gitdir).catch(() => undefined)) !== gitdir) return false
  const [head, objects] = await Promise.all(
    ['HEAD', 'objects'].map(name => lstat(join(gitdir, name)).catch(() => undefined)),
  )
  return head?.isFile() === true && objects?.isDirectory() === true
}

/** Commits that were found, by parent, its commit, path and git dir: none of them changes, and each takes two gits. */
const recorded = new Map<string, string>()

/** The commit that a repository has recorded for a submodule, if its git dir has that commit. */
const recordedIn = async (parent: MainRepository, path: string, gitdir: string): Promise<string | undefined> => {
  const key = [parent.gitdir, parent.head, path, gitdir].join('\0')
  const found = recorded.get(key) ?? (await readRecorded(parent, path, gitdir))
  if (found === undefined) return undefined
  recorded.delete(key)
  recorded.set(key, found)
  if (recorded.size > MOST_MODULES) recorded.delete(recorded.keys().next().value!)
  return found
}

const readRecorded = async (parent: MainRepository, path: string, gitdir: string): Promise<string | undefined> => {
  const env = { GIT_NO_REPLACE_OBJECTS: '1' }
  const asked = ['rev-parse', '--quiet', '--verify', `${parent.head}:${path}`]
  const pointer = await git(parent.dir, asked, { env, ok: [0, 1, 128] })
  const head = pointer.code === 0 ? pointer.text.trim() : ''
  if (!/^[0-9a-f]{40,64}$/.test(head)) return undefined
  const kind = await git(gitdir, ['cat-file', '-t', head], { env: { ...env, GIT_DIR: gitdir }, ok: [0, 1, 128] })
  return kind.text.trim() === 'commit' ? head : undefined
}

/** `.gitmodules` of the commit that a repository is on, for one without a checkout. */
const committedModules = async ({ gitdir, head }: MainRepository): Promise<readonly NamedModule[]> => {
  const answer = await git(gitdir, ['cat-file', 'blob', `${head}:.gitmodules`], {
    env: { GIT_DIR: gitdir },
    ok: [0, 128],
    maxBytes: MOST_BYTES,
  }).catch(orUndefined)
  return answer?.code === 0 ? read(answer.text) : []
}

/**
 * The submodules of these repositories that are not checked out but whose git dirs are there, at the commits that
 * their parents have recorded, and the submodules of those; parents first.
 */
export const absentSubmodules = async (
  workspace: string,
  repositories: readonly MainRepository[],
): Promise<MainRepository[]> => {
  const all = [...repositories]
  const taken = new Set(all.map(({ repo }) => repo))
  // The list grows on the way by the submodules found, whose own are looked for then.
  for (const parent of all) {
    const modules = parent.module === undefined ? await namedIn(parent.dir) : await committedModules(parent)
    for (const { name, path } of modules) {
      const repo = parent.repo === 'root' ? path : `${pathOf(parent.repo)}/${path}`
      const gitdir = join(parent.gitdir, 'modules', name)
      if (taken.has(repo) || all.length >= MOST_MODULES || !(await isGitdir(gitdir))) continue
      if (parent.module === undefined && (await lstat(join(parent.dir, path, '.git')).catch(() => undefined))) continue
      const head = await recordedIn(parent, path, gitdir)
      if (head === undefined) continue
      taken.add(repo)
      all.push({ repo, dir: gitdir, gitdir, common: gitdir, head, module: relative(workspace, gitdir) })
    }
  }
  return all.slice(repositories.length)
}
