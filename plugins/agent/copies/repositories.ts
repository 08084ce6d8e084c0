import { lstat, mkdir, readdir, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { readPlain, sweepOld, writeAtomic } from '../../../sdk/node/files/files.js'
import { refuse } from '../../../sdk/index.js'
import { git, GitFailure } from '../../../sdk/node/programs/git.js'
import { pathOf, type MainRepository } from '../../../sdk/node/repositories/main-repository.js'
import { followRefs, createGitdir, writeOwnRef } from './gitdir.js'
import type { TreeForm } from './form.js'
import { branchTip, clearPlaces, dropBranch, putBranch } from './refs.js'

/** Whether there is anything at a path, a broken link too. */
export const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** A pattern of an excludes file that matches this path and no other. */
export const patternOf = (path: string): string => `/${path.replace(/[\\*?[]/g, '\\$&').replace(/ $/, '\\ ')}`

/**
 * The commit after which a branch's own work begins, given the current main line.
 *
 * Work that was landed and then committed on the main line, in any commits, is not replayed: it would conflict with
 * itself. On a main line that has taken commits of the branch, as they are, it begins there. Comparing trees reads no
 * working file, so no program of the repository runs.
 *
 * @param holds Whether the branch contains a commit; checked in the copy, because the repository may lack its newest
 *   commits.
 */
export const workBegins = async (
  main: MainRepository,
  copy: { base: string; landedTip?: string },
  holds: (commit: string) => Promise<boolean>,
): Promise<string> => {
  const { base, landedTip } = copy
  const ahead = ['merge-base', '--is-ancestor', base, main.head]
  if ((await holds(main.head)) && (await git(main.dir, ahead, { ok: [0, 1, 128] })).code === 0) return main.head
  if (!landedTip || landedTip === base || !(await holds(landedTip))) return base
  const changed = async (from: string, to: string) => {
    const { text } = await git(main.dir, ['diff-tree', '-r', '-z', '--name-only', from, to])
    return text.split('\0').filter(path => path !== '')
  }
  const [landed, apart] = await Promise.all([changed(base, landedTip), changed(landedTip, main.head)])
  const differing = new Set(apart)
  return landed.some(path => differing.has(path)) ? base : landedTip
}

/** One repository's tree in a copy: the repository's git dir, and the copy's own. */
export interface TreeEntry {
  repo: string
  common: string
  gitdir: string
}

/** Whether all trees of a copy exist and point to their git dirs. */
export const isWhole = async (dir: string, repos: readonly TreeEntry[]): Promise<boolean> => {
  const each = repos.map(async ({ repo, common, gitdir }) => {
    const copy = join(dir, pathOf(repo))
    const pointer = join(copy, '.git')
    const file = await lstat(pointer).catch(() => undefined)
    if (
      !readPlain(join(gitdir, 'HEAD'))
      || !(await isFolder(join(gitdir, 'objects')))
      || !(await isFolder(join(common, 'objects')))
    )
      return false
    if ((await realpath(copy).catch(() => undefined)) !== copy) return false
    // The agent can change the pointer, so it is corrected instead of trusted.
    if (!file?.isFile() || readPlain(pointer)?.trim() !== `gitdir: ${gitdir}`) {
      if (file && !file.isFile()) await rm(pointer, { recursive: true })
      await point(copy, gitdir)
    }
    return true
  })
  return (await Promise.all(each)).every(Boolean)
}

const isFolder = (path: string): Promise<boolean> =>
  lstat(path).then(
    found => found.isDirectory(),
    () => false,
  )

const MOST_BESIDE = 100

/** The files of a copy outside of these repositories, without `.sandbox`, which is the sandbox's. */
export const besideRepositories = async (dir: string, repos: readonly string[], folder = ''): Promise<string[]> => {
  if (repos.includes(folder)) return []
  const found: string[] = []
  for (const entry of await readdir(join(dir, folder), { withFileTypes: true }).catch(() => [])) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (path === '.sandbox' || repos.includes(path)) continue
    found.push(...(entry.isDirectory() ? await besideRepositories(dir, repos, path) : [path]))
    if (found.length >= MOST_BESIDE) break
  }
  return found
}

/** Writes the file `.git` that points a tree to its git dir. */
export const point = (copy: string, gitdir: string): Promise<void> =>
  writeAtomic(join(copy, '.git'), `gitdir: ${gitdir}\n`, { mode: 0o644 })

/** The branch of a new tree. */
export interface OwnBranch {
  readonly name: string
  /** The commits at which a branch of this name is that of the conversation. */
  readonly own: readonly string[]
  /** A branch that exists is kept. */
  readonly rebuild?: true
}

/**
 * Adds an empty tree on a branch, or on none, with a git dir of its own; returns whether the branch was there and was
 * kept.
 *
 * Only writes files: no program of the repository runs.
 */
export const addTree = async (
  source: MainRepository,
  copy: string,
  gitdir: string,
  form: TreeForm,
  branch?: OwnBranch,
): Promise<boolean> => {
  const { common, head } = source
  if (branch) await clearPlaces(common, branch.name)
  const kept = branch?.rebuild ? await branchTip(common, branch.name) : undefined
  if (branch && kept === undefined) await beginBranch(source, branch)
  await mkdir(copy, { recursive: true })
  await createGitdir(gitdir, common, { commit: kept ?? head, ...(branch && { branch: branch.name }) }, form)
  await point(copy, gitdir)
  failpoint('agent.copy.registered')
  return kept !== undefined
}

/** Puts a branch of a conversation on the head of its repository; refuses a name that others have taken meanwhile. */
const beginBranch = async ({ repo, common, head }: MainRepository, { name, own }: OwnBranch): Promise<void> => {
  await dropBranch(common, name, own)
  const there = await branchTip(common, name)
  if (there !== undefined)
    refuse('conflict', `${repo} has a branch ${name} that this conversation did not make: rename it, then try again`)
  await putBranch(common, name, head).catch(error => {
    if (!(error instanceof GitFailure)) throw error
    refuse('conflict', `${repo} has no room for the branch ${name}: ${error.message}`)
  })
}

/** Where a tree's HEAD points: a branch, or a commit of its own. */
const writeHead = (gitdir: string, target: string): Promise<void> =>
  writeAtomic(join(gitdir, 'HEAD'), `${target}\n`, { mode: 0o644 })

/** Gives a tree without a branch a new one, in the copy and in the repository; files and index stay. */
export const attachTree = async ({ common, head }: MainRepository, gitdir: string, branch: string): Promise<void> => {
  await Promise.all([
    putBranch(common, branch, head),
    writeOwnRef(gitdir, branch, head),
    followRefs(gitdir, common, branch),
  ])
  failpoint('agent.warm.pointed')
  await writeHead(gitdir, `ref: refs/heads/${branch}`)
}

/** Moves the HEAD of a tree without a branch to another commit; files and index stay. */
export const detachTree = (gitdir: string, commit: string): Promise<void> => writeHead(gitdir, commit)

/**
 * Removes half-written objects of a killed git, which git itself removes only after two weeks.
 *
 * Objects that are being written now are newer than `before`.
 */
export const sweepObjects = async (gitdir: string, before: number): Promise<void> => {
  const objects = join(gitdir, 'objects')
  if (!(await lstat(objects).catch(() => undefined))?.isDirectory()) return
  const folders = (await readdir(objects, { withFileTypes: true })).filter(
    entry => entry.isDirectory() && (entry.name === 'pack' || /^[0-9a-f]{2}$/.test(entry.name)),
  )
  await Promise.all(folders.map(({ name }) => sweepOld(join(objects, name), file => file.startsWith('tmp_'), before)))
  for (const name of await readdir(objects)) {
    const found = name.startsWith('tmp_objdir-incoming-')
      ? await lstat(join(objects, name)).catch(() => undefined)
      : undefined
    if (found?.isDirectory() && found.mtimeMs < before) await rm(join(objects, name), { recursive: true, force: true })
  }
}
