import { lutimes, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { readPlain, TEMPORARY } from '../../../sdk/node/files/files.js'
import { git, GitFailure, type GitOptions } from '../../../sdk/node/programs/git.js'
import { largeFiles, otherThanFiles } from '../../../sdk/node/files/large-files.js'
import { isGitName } from '../../../sdk/node/files/closed-names.js'
import { contains } from '../../../sdk/node/files/paths.js'
import type { WallSpec } from '../../../sdk/node/wall/wall.js'
import type { LargeFile } from '../contract.js'
import { KEEP_POINTERS } from '../../../sdk/node/repositories/conversion.js'
import { pathOf } from '../../../sdk/node/repositories/main-repository.js'
import { SANDBOX } from '../../../sdk/node/repositories/sandbox-identity.js'
import { ownTip } from './gitdir.js'
import { patternOf } from './repositories.js'

/** One working tree of a private copy; every command on it runs behind this wall. */
export interface Tree {
  readonly repo: string
  readonly branch: string
  readonly workspace: string
  readonly wall: Omit<WallSpec, 'cwd' | 'env'>
  /** Paths from the tree's root that are never committed: other repositories, shared folders, `.sandbox`. */
  readonly foreign: readonly string[]
}

/** The status of a tree. */
export interface TreeStatus {
  readonly tip: string
  /** HEAD is the copy's own branch. */
  readonly attached: boolean
  readonly clean: boolean
  /** Something changed in or beside paths that are foreign to the tree. */
  readonly foreign: boolean
  /** Uncommitted files that are too large to be committed. */
  readonly large: readonly LargeFile[]
  /** What git cannot add, which is no part of the work: names of git folders, repositories without a commit, pipes. */
  readonly left: readonly string[]
  /** Other changes are uncommitted. */
  readonly rest: boolean
  /** Files that git ignores, without those below an ignored folder; only where a tree is committed. */
  readonly ignored: readonly string[]
}

const SETTINGS = [
  'rerere.enabled=false',
  'rebase.updateRefs=false',
  'rebase.autoSquash=false',
  'checkout.workers=0',
].flatMap(setting => ['-c', setting])
// Lists every untracked file, because a folder may contain one that is too large.
const STATUS = [
  'status',
  '--porcelain=v2',
  '--branch',
  '-z',
  '--no-renames',
  '--untracked-files=all',
  '--ignore-submodules=dirty',
]

/** In the settings of a repository: that git may start a program there, or that it also reads settings elsewhere. */
const NAMES_PROGRAM = /filter|driver|include|worktreeConfig/i

/**
 * The wall of git in a tree. It has the network of its conversation only where a filter or a merge driver could need
 * it, so that a turn which starts no program needs no network.
 */
const wallOfGit = ({ wall }: Tree): Tree['wall'] => {
  const { network: _, ...others } = wall
  const settings = wall.copy?.gitdirs.map(({ common }) => readPlain(join(common, 'config'))) ?? [undefined]
  const startsNone = settings.every(text => text !== undefined && !NAMES_PROGRAM.test(text))
  return { ...(startsNone ? { ...others, offline: true } : wall), ownSandbox: true }
}

/** The folders in a git dir of a rebase that has begun. */
const REBASES = ['rebase-merge', 'rebase-apply']

/** Runs git in a tree, behind its wall. */
export const inTree = (
  tree: Tree,
  args: readonly string[],
  options: Pick<GitOptions, 'input' | 'ok' | 'signal' | 'to' | 'priority'> = {},
) =>
  git(join(tree.workspace, pathOf(tree.repo)), args, {
    ...options,
    // Ignores replacement objects (git-replace(1)), which a turn could have made.
    env: { GIT_NO_REPLACE_OBJECTS: '1', ...KEEP_POINTERS },
    identity: SANDBOX,
    wall: wallOfGit(tree),
  })

/** One line of git's status; `name` is its path with a character for each byte, which need not be UTF-8. */
interface StatusLine {
  readonly line: string
  readonly path: string
  readonly name: string
}

/** The path in one line of `status --porcelain=v2`, after its fixed fields. */
const pathIn = (line: string): string =>
  line
    .split(' ')
    .slice({ '1': 8, u: 10 }[line[0] ?? ''] ?? 1)
    .join(' ')
    .replace(/\/$/, '')

/** Git refuses such a name, and with it everything that is added in the same command. */
const isRefused = (path: string): boolean => path.split('/').some(isGitName)

/** Temporary files that a kill left behind are not committed. */
const isLeftover = (path: string): boolean => path.split('/').some(name => name.startsWith(TEMPORARY))

const isForeign = ({ foreign }: Tree, path: string): boolean =>
  isLeftover(path) || isRefused(path) || foreign.some(each => contains(each, path))

/** The untracked repositories of a tree without a commit, which git cannot add: they are no part of its work. */
const withoutCommit = async (tree: Tree, changes: readonly StatusLine[]): Promise<string[]> => {
  const found: string[] = []
  for (const { line, path } of changes) {
    if (!line.startsWith('? ') || !line.endsWith('/') || isForeign(tree, path)) continue
    const head = ['-C', path, 'rev-parse', '--quiet', '--verify', 'HEAD^{commit}']
    if ((await inTree(tree, head, { ok: [0, 1, 128] })).code !== 0) found.push(path)
  }
  return found
}

/** How a status is read: `ignored` also lists what git ignores, but not what is below an ignored folder. */
type StatusHow = Pick<GitOptions, 'priority'> & { readonly ignored?: true }

/** What git says of an index that it cannot read; of one that ends it, it says nothing. */
const BAD_INDEX = /index|signature|malformed name|cache entr|out of memory|^$/i

/** Writes the index of a tree anew if git cannot read it, which would keep every turn from mending it. */
const renewIndex = async (tree: Tree, error: unknown): Promise<void> => {
  const own = tree.wall.copy?.gitdirs.find(({ path }) => path === pathOf(tree.repo))?.own
  if (own === undefined || !(error instanceof GitFailure) || !BAD_INDEX.test(error.stderr.trim())) throw error
  await rm(join(own, 'index'), { force: true, recursive: true })
  await inTree(tree, ['reset', '-q'])
}

/** The lines of git's status of a tree, or of what is at or below a path of it. */
const statusOf = async (tree: Tree, path = '', { ignored, ...how }: StatusHow = {}): Promise<StatusLine[]> => {
  const args = ignored ? [...STATUS, '--ignored=matching'] : STATUS
  const asked = path === '' ? args : [...args, '--', `:(top,literal)${path}`]
  const { stdout } = await inTree(tree, asked, how).catch(async (error: unknown) => {
    await renewIndex(tree, error)
    return inTree(tree, asked, how)
  })
  return stdout
    .toString('latin1')
    .split('\0')
    .filter(bytes => bytes !== '')
    .map(bytes => {
      const line = decoded(bytes)
      return { line, path: pathIn(line), name: pathIn(bytes) }
    })
}

const decoded = (bytes: string): string => Buffer.from(bytes, 'latin1').toString()

/** The value of a header of git's status. */
const headerIn = (lines: readonly StatusLine[], name: string): string =>
  lines.find(({ line }) => line.startsWith(`# ${name} `))?.line.slice(name.length + 3) ?? ''

/** The commit that a tree is on, and the lines of git's status of what changed in it, without foreign paths. */
export const changesInTree = async (
  tree: Tree,
): Promise<{ head: string; changes: { line: string; path: string }[] }> => {
  const lines = await statusOf(tree)
  const changes = lines.filter(({ line }) => !line.startsWith('# ')).map(({ line, path }) => ({ line, path }))
  return {
    head: headerIn(lines, 'branch.oid'),
    changes: changes.filter(({ path }) => !isForeign(tree, path)),
  }
}

/** How many files of a tree at or below a path are uncommitted. */
export const uncommittedIn = async (tree: Tree, path: string): Promise<number> =>
  (await statusOf(tree, path)).filter(each => !each.line.startsWith('# ') && !isForeign(tree, each.path)).length

/** What git's status names of a tree. */
interface TreeChanges {
  readonly status: TreeStatus
  /** The changes to commit: those that git deletes, and all others. */
  readonly gone: readonly string[]
  readonly changed: readonly string[]
  /** The ignored files that may be the new names of those that are gone. */
  readonly ignored: readonly string[]
}

const readChanges = async (tree: Tree, how: StatusHow = {}): Promise<TreeChanges> => {
  const lines = await statusOf(tree, '', how)
  const isIgnored = ({ line }: StatusLine) => line.startsWith('! ')
  const changes = lines.filter(each => !each.line.startsWith('# ') && !isIgnored(each))
  const ignored = lines.filter(each => isIgnored(each) && !each.line.endsWith('/') && !isForeign(tree, each.path))
  const paths = changes.map(({ path }) => path)
  const untracked = new Set(changes.filter(({ line }) => line.startsWith('? ')).map(({ path }) => path))
  const unborn = new Set(await withoutCommit(tree, changes))
  const named = changes.filter(({ path }) => !isForeign(tree, path) && !unborn.has(path))
  // Behind the wall the copy is mounted over the workspace; here its own folder is read.
  const folder = join(tree.wall.copy?.dir ?? tree.workspace, pathOf(tree.repo))
  const others = otherThanFiles(
    folder,
    named.map(({ path }) => path),
  )
  const work = named.filter(({ path }) => !others.has(path))
  const large = await largeFiles(
    folder,
    work.map(({ path }) => path),
  )
  const small = work.filter(({ path }) => !large.has(path))
  const isGone = ({ line }: StatusLine) => line.startsWith('1 ') && line[3] === 'D'
  return {
    status: {
      tip: headerIn(lines, 'branch.oid'),
      attached: headerIn(lines, 'branch.head') === tree.branch,
      clean: work.length === 0,
      large: [...large].map(([path, { size }]) => ({
        path,
        size,
        ...(!untracked.has(path) && { tracked: true as const }),
      })),
      rest: work.length > large.size,
      ignored: ignored.map(({ path }) => path),
      left: paths.filter(path => isRefused(path) || unborn.has(path) || others.has(path)),
      foreign: paths.some(path => isForeign(tree, path) || tree.foreign.some(each => contains(path, each))),
    },
    gone: small.filter(isGone).map(({ name }) => name),
    changed: small.filter(line => !isGone(line)).map(({ name }) => name),
    ignored: ignored.map(({ name }) => name),
  }
}

/** Reads the status of a tree with one command. */
export const treeStatus = async (tree: Tree): Promise<TreeStatus> => (await readChanges(tree)).status

/** Somebody waits for the end of a turn. */
const AT_ONCE = { priority: 'own' } as const

/** Removes and adds files of the index; names are bytes as Latin-1. */
const updateIndex = async (tree: Tree, zero: string, gone: readonly string[], changed: readonly string[]) => {
  // Removed first: a folder may have become a file or a link.
  for (const [how, lines] of [
    [['--index-info'], gone.map(name => `0 ${zero}\t${name}`)],
    [['--add', '--remove', '--replace', '--stdin'], changed],
  ] as const) {
    const input = Buffer.from(lines.map(line => `${line}\0`).join(''), 'latin1')
    if (lines.length > 0) await inTree(tree, ['update-index', '-z', ...how], { input, ...AT_ONCE })
  }
}

/** Of more ignored files none is searched for. */
const MOST_IGNORED = 1000

/**
 * Puts the changes that git's status named into the index, and reads no other file but ignored ones, of which those
 * stay that git takes for the new names of files that are gone: a file that is tracked is work under every name.
 *
 * Returns the ignored files that were added.
 */
const stage = async (tree: Tree, { status, gone, changed, ignored }: TreeChanges): Promise<string[]> => {
  const zero = '0'.repeat(status.tip.length)
  const asked = gone.length > 0 && ignored.length <= MOST_IGNORED ? await smallOf(tree, ignored) : []
  await updateIndex(tree, zero, gone, [...changed, ...asked])
  if (asked.length === 0) return []
  const { stdout } = await inTree(tree, [
    'diff-index',
    '--cached',
    '-M',
    '--diff-filter=R',
    '--name-only',
    '-z',
    'HEAD',
  ])
  const renamed = new Set(stdout.toString('latin1').split('\0'))
  const others = asked.filter(name => !renamed.has(name))
  await updateIndex(tree, zero, others, [])
  return asked.filter(name => renamed.has(name)).map(decoded)
}

/** How many bytes of ignored files are read. */
const MOST_BYTES = 256 * 1024 * 1024

/** The files of a tree that fit into the bytes that are read, smallest first. */
const smallOf = async (tree: Tree, names: readonly string[]): Promise<string[]> => {
  const paths = new Map(names.map(name => [decoded(name), name]))
  const dir = join(tree.wall.copy?.dir ?? tree.workspace, pathOf(tree.repo))
  const files = [...(await largeFiles(dir, [...paths.keys()], -1))].sort(([, one], [, other]) => one.size - other.size)
  let left = MOST_BYTES
  return files.flatMap(([path, { size }]) => ((left -= size) < 0 ? [] : [paths.get(path)!]))
}

/**
 * Commits uncommitted work except files that are too large, and returns the status before, at the commit that is now
 * the newest; does nothing if the tree is not on its branch.
 *
 * @param gitdir The tree's own git dir.
 */
export const commitTree = async (tree: Tree, gitdir: string, message: string): Promise<TreeStatus> => {
  const before = await readChanges(tree, { ...AT_ONCE, ignored: true })
  const { status } = before
  if (!status.rest || !status.attached) return status
  const taken = new Set(await stage(tree, before))
  // Unstages foreign paths, which the agent may have staged.
  if (status.foreign) await inTree(tree, ['reset', '-q', '--', ...tree.foreign.map(path => `:(top,literal)${path}`)])
  // Exit code 1 means that only foreign paths had changed.
  await inTree(tree, ['commit', '-q', '--no-verify', '-F', '-'], { input: message, ok: [0, 1], ...AT_ONCE })
  const tip = ownTip(gitdir, tree.branch) ?? status.tip
  const ignored = status.ignored.filter(path => !taken.has(path))
  return { ...status, tip, rest: false, clean: status.large.length === 0, ignored }
}

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

/**
 * Puts the branch of a tree on the commit that is checked out without a branch, as in submodules that are moved; does
 * nothing if that would take commits from the branch.
 *
 * @param gitdir The tree's own git dir.
 */
export const attachHead = async (tree: Tree, gitdir: string): Promise<void> => {
  const head = readPlain(join(gitdir, 'HEAD'))?.trim() ?? ''
  const tip = ownTip(gitdir, tree.branch)
  if (!COMMIT.test(head) || tip === undefined) return
  const names = await readdir(gitdir)
  if (REBASES.some(name => names.includes(name))) return
  if ((await inTree(tree, ['merge-base', '--is-ancestor', tip, head], { ok: [0, 1, 128] })).code !== 0) return
  const branch = `refs/heads/${tree.branch}`
  await inTree(tree, ['update-ref', '-m', 'checkout: moved to a commit', branch, head, tip])
  await inTree(tree, ['symbolic-ref', 'HEAD', branch])
}

/** Rebases the commits from `base` to `tip` onto `onto`; on a conflict undoes it and returns the conflicting paths. */
export const rebaseTree = async (
  tree: Tree,
  onto: string,
  base: string,
  tip: string,
): Promise<string[] | undefined> => {
  try {
    const how = ['-q', '--no-autostash', '--no-verify', '--no-fork-point']
    await inTree(tree, [...SETTINGS, 'rebase', ...how, '--onto', onto, base])
    return undefined
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    const { text } = await inTree(tree, ['ls-files', '-u', '-z'], { ok: [0, 128] })
    await resetTree(tree, tip)
    return [...new Set(text.split('\0').flatMap(line => line.split('\t').slice(1).join('\t') || []))]
  }
}

/** The step of clocks by which file systems date files, with room to spare. */
const CLOCK_MS = 20

/**
 * Dates the index of a tree after all of its files; only while nothing else works in it.
 *
 * Git reads files again, and stores them anew, that are as young as the index.
 */
export const dateIndex = async (gitdir: string): Promise<void> => {
  await delay(CLOCK_MS)
  const now = new Date()
  await lutimes(join(gitdir, 'index'), now, now)
}

/** Fills an empty working tree from its branch; only while nothing else works in it. */
export const fillTree = async (tree: Tree, gitdir: string): Promise<void> => {
  await inTree(tree, [...SETTINGS, 'reset', '-q', '--hard'])
  await dateIndex(gitdir)
}

/** Moves a clean tree from one commit to another; only what differs between the two is touched. */
export const moveTree = async (tree: Tree, from: string, to: string): Promise<void> => {
  const { code } = await inTree(tree, [...SETTINGS, 'read-tree', '-m', '-u', from, to], { ok: [0, 1, 128] })
  if (code !== 0) await inTree(tree, [...SETTINGS, 'reset', '-q', '--hard', to])
}

/**
 * Resets a tree to its branch at a commit; keeps ignored files, foreign files and new files that are too large to
 * commit.
 */
export const resetTree = async (tree: Tree, commit: string): Promise<void> => {
  // Unfinished operations of an agent (a rebase, a merge, a detached HEAD) would affect the next command.
  await inTree(tree, ['rebase', '--quit'], { ok: [0, 1, 128] })
  await inTree(tree, ['symbolic-ref', 'HEAD', `refs/heads/${tree.branch}`])
  await inTree(tree, [...SETTINGS, 'reset', '-q', '--hard', commit])
  const { large } = await treeStatus(tree)
  const kept = [...tree.foreign, ...large.map(({ path }) => path)]
  await inTree(tree, ['clean', '-q', '-f', '-d', ...kept.flatMap(path => ['-e', patternOf(path)])])
}

/** Deletes the state of an interrupted rebase: git can neither continue nor abort one that had only begun. */
export const dropRebase = async (gitdir: string): Promise<void> => {
  await Promise.all(REBASES.map(name => rm(join(gitdir, name), { force: true, recursive: true })))
}

/** Removes the locks of a killed git; only while nothing else works in the copy. */
export const dropLocks = async (gitdir: string, branch: string): Promise<void> => {
  const names = await readdir(gitdir).catch(() => [] as string[])
  const locks = names.filter(name => name.endsWith('.lock')).map(name => join(gitdir, name))
  await Promise.all(
    [...locks, join(gitdir, 'refs/heads', `${branch}.lock`)].map(lock => rm(lock, { force: true, recursive: true })),
  )
}
