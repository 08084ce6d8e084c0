import { lstat, mkdir, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../../sdk/node/failpoint.js'
import { readPlain, sweepOld, writeAtomic } from '../../sdk/node/files.js'
import { git } from '../../sdk/node/git.js'
import { contains } from '../../sdk/node/paths.js'
import { clearPlaces, dropBranch, parkBranch, putBranch } from './copies-refs.js'

/** A repository of the workspace: `root`, or its path from the workspace root. */
export interface Repository {
  readonly repo: string
  /** The main checkout. */
  readonly dir: string
  /** The real path of its own git dir, and of the one its worktrees share. */
  readonly gitdir: string
  readonly common: string
  /** The commit the main checkout stands on. */
  readonly head: string
}

/** Whether there is anything at a path, a broken link too. */
export const exists = (path: string): Promise<boolean> => lstat(path).then(() => true, () => false)

/** A pattern of an excludes file that matches this path and no other. */
export const patternOf = (path: string): string => `/${path.replace(/[\\*?[]/g, '\\$&').replace(/ $/, '\\ ')}`

/** A workspace path seen from a repository, when it lies below it. */
export const below = (repo: string, path: string): string | undefined => {
  const root = pathOf(repo)
  if (root === '') return path
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : undefined
}

/** A repository's path from the workspace root; empty for the root. */
export const pathOf = (repo: string): string => (repo === 'root' ? '' : repo)

/**
 * The commit after which a branch's own work begins, seen from where the main line is now.
 *
 * Work that was landed and then committed on the main line, in whatever commits, is not replayed: it would only
 * conflict with itself. Comparing trees reads no working file, so no program of the repository runs.
 */
export const workBegins = async (
  main: Repository, copy: { base: string; landedTip?: string }, tip: string,
): Promise<string> => {
  const { base, landedTip } = copy
  if (!landedTip || landedTip === base) return base
  const { code } = await git(main.dir, ['merge-base', '--is-ancestor', landedTip, tip], { ok: [0, 1, 128] })
  if (code !== 0) return base
  const changed = async (from: string, to: string) => {
    const { text } = await git(main.dir, ['diff-tree', '-r', '-z', '--name-only', from, to])
    return text.split('\0').filter(path => path !== '')
  }
  const [landed, apart] = await Promise.all([changed(base, landedTip), changed(landedTip, main.head)])
  const differing = new Set(apart)
  return landed.some(path => differing.has(path)) ? base : landedTip
}

/** The name of a copy's entry among the worktrees of a repository. */
export const entryOf = async (common: string, copy: string): Promise<string | undefined> => {
  const folder = join(common, 'worktrees')
  for (const name of await readdir(folder).catch(() => [])) {
    const target = readPlain(join(folder, name, 'gitdir'))
    if (target && dirname(target.trim()) === copy) return name
  }
  return undefined
}

/** One repository's tree in a copy: where its git dir is, and its entry among the worktrees there. */
export interface TreeEntry {
  repo: string
  common: string
  entry: string
}

/** Whether the trees of a copy are all there and lead where they should. */
export const whole = async (dir: string, repos: readonly TreeEntry[]): Promise<boolean> => {
  const each = repos.map(async ({ repo, common, entry }) => {
    const copy = join(dir, pathOf(repo))
    const pointer = join(copy, '.git')
    const place = join(common, 'worktrees', entry)
    const file = await lstat(pointer).catch(() => undefined)
    if (readPlain(join(place, 'gitdir'))?.trim() !== pointer || !readPlain(join(place, 'HEAD'))) return false
    if ((await realpath(copy).catch(() => undefined)) !== copy) return false
    // The pointer lies in the agent's reach: it is put right rather than trusted.
    if (!file?.isFile() || readPlain(pointer)?.trim() !== `gitdir: ${place}`) {
      if (file && !file.isFile()) await rm(pointer, { recursive: true })
      await writeAtomic(pointer, `gitdir: ${place}\n`, { mode: 0o644 })
    }
    return true
  })
  return (await Promise.all(each)).every(Boolean)
}

/** Git reads where every tree of a repository stands before it adds one: a pipe among them would hold up all others. */
const clearHeads = async (common: string): Promise<void> => {
  const folder = join(common, 'worktrees')
  await Promise.all((await readdir(folder).catch(() => [])).map(async name => {
    const head = join(folder, name, 'HEAD')
    const found = await lstat(head).catch(() => undefined)
    if (found && !found.isFile()) await rm(head, { recursive: true, force: true })
  }))
}

/**
 * Adds an empty tree on a branch, or on none; with `rebuild` a branch that exists is kept.
 *
 * Without a checkout git only writes its own files, and hooks are off: no program of the repository runs.
 */
export const addTree = async (
  source: Repository, copy: string, branch?: string, rebuild = false,
): Promise<{ kept: boolean; entry: string }> => {
  const { dir, common, head } = source
  await clearHeads(common)
  if (branch) await clearPlaces(common, branch)
  const ref = `refs/heads/${branch}^{commit}`
  const kept = rebuild && (await git(dir, ['rev-parse', '--verify', '-q', ref], { ok: [0, 1, 128] })).code === 0
  const old = await entryOf(common, copy)
  if (old) await rm(join(common, 'worktrees', old), { recursive: true, force: true })
  if (branch && !kept) await dropBranch(common, branch)
  await mkdir(dirname(copy), { recursive: true })
  const fresh = branch ? ['--no-track', '-b', branch, copy, head] : ['--detach', copy, head]
  const what = branch && kept ? [copy, branch] : fresh
  await git(dir, ['worktree', 'add', '-f', '--no-checkout', ...what])
  failpoint('agent.copy.registered')
  const entry = await entryOf(common, copy)
  if (!entry) throw new Error(`git added no worktree for ${copy}`)
  // Behind the wall a shared turn sees no copies, and its `git worktree prune` would take their entries away.
  await writeAtomic(join(common, 'worktrees', entry, 'locked'), 'a private copy of the sandbox\n', { mode: 0o644 })
  return { kept, entry }
}

/** Where a tree's HEAD points: a branch, or a commit of its own. */
const writeHead = (place: string, target: string): Promise<void> =>
  writeAtomic(join(place, 'HEAD'), `${target}\n`, { mode: 0o644 })

/** Gives a tree that was moved to another folder its place and a new branch; files and index stay as they are. */
export const attachTree = async (source: Repository, entry: string, copy: string, branch: string): Promise<void> => {
  const { common, head } = source
  const place = join(common, 'worktrees', entry)
  await writeAtomic(join(place, 'gitdir'), `${join(copy, '.git')}\n`, { mode: 0o644 })
  failpoint('agent.spare.pointed')
  await Promise.all([putBranch(common, branch, head), writeHead(place, `ref: refs/heads/${branch}`)])
}

/** Puts a tree that is on no branch on another commit; files and index stay as they are. */
export const detachTree = ({ common }: Repository, entry: string, commit: string): Promise<void> =>
  writeHead(join(common, 'worktrees', entry), commit)

/** Takes a tree's entry away; what is gone already is fine. */
export const dropEntry = async (common: string, copy: string, known?: string): Promise<void> => {
  const entry = known ?? (await entryOf(common, copy))
  if (entry) await rm(join(common, 'worktrees', entry), { recursive: true, force: true })
  await rmdir(join(common, 'worktrees')).catch(() => {})
}

/** Takes a tree's entry away and puts its branch where no list of branches shows it. */
export const parkTree = async (common: string, copy: string, branch: string): Promise<void> => {
  await dropEntry(common, copy)
  failpoint('agent.copy.detached')
  await parkBranch(common, branch)
}

/** Entries among the worktrees of a repository whose copy lies below a folder. */
export const entriesBelow = async (common: string, folder: string): Promise<{ name: string; place: string; copy: string }[]> => {
  const found: { name: string; place: string; copy: string }[] = []
  for (const name of await readdir(join(common, 'worktrees')).catch(() => [])) {
    const place = join(common, 'worktrees', name)
    const target = readPlain(join(place, 'gitdir'))
    if (target && contains(folder, dirname(target.trim()))) found.push({ name, place, copy: dirname(target.trim()) })
  }
  return found
}

/**
 * Removes what a git that was killed had half-written of objects: it lies there until git itself collects it, after two weeks.
 *
 * What is being written now is younger.
 */
export const sweepObjects = async (common: string, before: number): Promise<void> => {
  const objects = join(common, 'objects')
  if (!(await lstat(objects).catch(() => undefined))?.isDirectory()) return
  const folders = (await readdir(objects, { withFileTypes: true }))
    .filter(entry => entry.isDirectory() && (entry.name === 'pack' || /^[0-9a-f]{2}$/.test(entry.name)))
  await Promise.all(folders.map(({ name }) => sweepOld(join(objects, name), file => file.startsWith('tmp_'), before)))
}
