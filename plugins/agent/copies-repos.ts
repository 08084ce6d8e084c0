import { lstatSync } from 'node:fs'
import { lstat, mkdir, readdir, realpath, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../../sdk/node/failpoint.js'
import { readPlain, writeAtomic } from '../../sdk/node/files.js'
import { git } from '../../sdk/node/git.js'
import { contains } from '../../sdk/node/paths.js'

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

const MOST_PACKED = 16 * 1024 * 1024

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

/**
 * Takes away what is no plain file where git keeps one of a copy's own: a pipe there would hold git up for ever, and a
 * link would have it write to wherever it leads.
 */
export const clearPlaces = async (common: string, branch: string, entry?: string): Promise<void> => {
  const own = entry === undefined ? [] : ['index', 'logs/HEAD', 'ORIG_HEAD'].map(name => join('worktrees', entry, name))
  await Promise.all([...own, `refs/heads/${branch}`, `logs/refs/heads/${branch}`].map(async name => {
    const path = join(common, name)
    const found = await lstat(path).catch(() => undefined)
    if (found && !found.isFile()) await rm(path, { recursive: true, force: true })
  }))
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
  await clearPlaces(common, branch)
  await Promise.all([
    changeRefs(common, [`update refs/heads/${branch} ${head}`]),
    writeHead(place, `ref: refs/heads/${branch}`),
  ])
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

/** Takes a branch away, parked or not, in one step; what is gone already is fine. */
export const dropBranch = async (common: string, branch: string): Promise<void> => {
  await clearPlaces(common, branch)
  // Only what is there: git leaves the folders of a ref that it was to delete and did not find.
  const refs = [`refs/heads/${branch}`, parkedOf(branch)].filter(ref => mayBe(common, ref)).map(ref => `delete ${ref}`)
  if (refs.length === 0) return
  const { code } = await changeRefs(common, refs, [0, 1, 128])
  // One of the two that git cannot read must not keep the other.
  if (code !== 0) for (const ref of refs) await changeRefs(common, [ref], [0, 1, 128])
}

/** Whether a ref may be there: as a file of its own, in whatever form, or among those packed, as far as these can be read. */
const mayBe = (common: string, ref: string): boolean => {
  const is = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined
  const packed = join(common, 'packed-refs')
  return is(join(common, ref)) || (is(packed) && (readPlain(packed, MOST_PACKED) ?? ref).includes(ref))
}

const parkedOf = (branch: string): string => `refs/sandbox/parked/${branch.replace(/^agent\//, '')}`

const inRefs = (common: string, args: readonly string[], options: { input?: string; ok?: number[] } = {}) =>
  git(common, args, { env: { GIT_DIR: common }, ...options })

/** Changes refs as these lines say, all or none; a ref is changed itself, not what a turn made it point at. */
const changeRefs = (common: string, lines: readonly string[], ok = [0]) =>
  inRefs(common, ['update-ref', '--stdin'], { input: lines.map(line => `option no-deref\n${line}\n`).join(''), ok })

const commitOf = async (common: string, ref: string): Promise<string | undefined> => {
  const { code, text } = await inRefs(common, ['rev-parse', '--verify', '-q', `${ref}^{commit}`], { ok: [0, 1, 128] })
  return code === 0 ? text.trim() : undefined
}

/** Moves a ref to another name in one step; where there is no such ref nothing happens. */
const moveRef = async (common: string, from: string, to: string): Promise<void> => {
  const commit = await commitOf(common, from)
  if (commit === undefined) return
  await changeRefs(common, [`update ${to} ${commit}`, `delete ${from}`])
}

/** Takes a tree's entry away and puts its branch where no list of branches shows it. */
export const parkTree = async (common: string, copy: string, branch: string): Promise<void> => {
  await dropEntry(common, copy)
  failpoint('agent.copy.detached')
  await clearPlaces(common, branch)
  await moveRef(common, `refs/heads/${branch}`, parkedOf(branch))
}

/** Puts a parked branch back; one that was never parked, or is back already, stays as it is. */
export const unparkBranch = async (common: string, branch: string): Promise<void> => {
  const ref = `refs/heads/${branch}`
  await clearPlaces(common, branch)
  if ((await commitOf(common, ref)) === undefined) await moveRef(common, parkedOf(branch), ref)
}

/** Entries among the worktrees of a repository whose copy lies below a folder. */
export const entriesBelow = async (common: string, folder: string): Promise<{ name: string; copy: string }[]> => {
  const found: { name: string; copy: string }[] = []
  for (const name of await readdir(join(common, 'worktrees')).catch(() => [])) {
    const target = readPlain(join(common, 'worktrees', name, 'gitdir'))
    if (target && contains(folder, dirname(target.trim()))) found.push({ name, copy: dirname(target.trim()) })
  }
  return found
}
