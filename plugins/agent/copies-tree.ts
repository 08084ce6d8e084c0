import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { git, GitFailure, type Identity } from '../../sdk/node/git.js'
import type { WallSpec } from '../../sdk/node/wall.js'
import { pathOf } from './copies-repos.js'

/** One working tree of a private copy; every command on it runs behind this wall. */
export interface Tree {
  readonly repo: string
  readonly branch: string
  readonly workspace: string
  readonly wall: Omit<WallSpec, 'cwd' | 'env'>
  /** Paths from the tree's root that are never committed: other repositories, shared folders, `.sandbox`. */
  readonly foreign: readonly string[]
}

/** Where a tree stands. */
export interface Standing {
  readonly tip: string
  /** HEAD is the copy's own branch. */
  readonly attached: boolean
  readonly clean: boolean
}

/** Who the sandbox commits as. */
export const SANDBOX: Identity = { name: 'Sandbox agent', email: 'agent@sandbox.local' }

const SETTINGS = ['-c', 'rerere.enabled=false', '-c', 'rebase.updateRefs=false', '-c', 'rebase.autoSquash=false', '-c', 'checkout.workers=0']

const inTree = (tree: Tree, args: readonly string[], options: { input?: string; ok?: number[] } = {}) =>
  git(join(tree.workspace, pathOf(tree.repo)), args, { ...options, identity: SANDBOX, wall: tree.wall })

/** Reads where a tree stands in one command. */
export const standing = async (tree: Tree): Promise<Standing> => {
  const scope = ['--', '.', ...tree.foreign.map(path => `:(exclude,top,literal)${path}`)]
  const { text } = await inTree(tree, ['status', '--porcelain=v2', '--branch', '-z', '--no-renames', '--ignore-submodules=dirty', ...scope])
  const lines = text.split('\0').filter(line => line !== '')
  const header = (name: string) => lines.find(line => line.startsWith(`# ${name} `))?.slice(name.length + 3) ?? ''
  return {
    tip: header('branch.oid'),
    attached: header('branch.head') === tree.branch,
    clean: lines.every(line => line.startsWith('# ')),
  }
}

/** Commits what is uncommitted and answers the tip; a tree that is not on its branch is left as it is. */
export const commitTree = async (tree: Tree, message: string): Promise<Standing> => {
  const before = await standing(tree)
  if (before.clean || !before.attached) return before
  await inTree(tree, ['-c', 'advice.addEmbeddedRepo=false', 'add', '-A'])
  // What of the foreign paths is staged, now or by the agent, goes back to how the branch has it.
  await inTree(tree, ['reset', '-q', '--', ...tree.foreign.map(path => `:(top,literal)${path}`)])
  const { code } = await inTree(tree, ['diff', '--cached', '--quiet', '--ignore-submodules=dirty'], { ok: [0, 1] })
  if (code === 0) return standing(tree)
  await inTree(tree, ['commit', '-q', '--no-verify', '-F', '-'], { input: message })
  return standing(tree)
}

/** Moves the commits after `base` onto `onto`; when they do not apply, everything is as before and the answer is false. */
export const rebaseTree = async (tree: Tree, onto: string, base: string): Promise<boolean> => {
  try {
    await inTree(tree, [...SETTINGS, 'rebase', '-q', '--no-autostash', '--no-verify', '--no-fork-point', '--onto', onto, base])
    return true
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    await abortRebase(tree)
    return false
  }
}

/** Undoes a rebase that was left half-way; without one nothing happens. */
export const abortRebase = async (tree: Tree): Promise<void> => {
  await inTree(tree, ['rebase', '--abort'], { ok: [0, 128] })
}

/** Fills an empty working tree from its branch. */
export const fillTree = async (tree: Tree): Promise<void> => {
  await inTree(tree, [...SETTINGS, 'reset', '-q', '--hard'])
}

/** Takes away the locks a killed git left; only while nothing else works in the copy. */
export const dropLocks = async (common: string, entry: string, branch: string): Promise<void> => {
  const locks = [join('worktrees', entry, 'index.lock'), join('worktrees', entry, 'HEAD.lock'), join('refs/heads', `${branch}.lock`)]
  await Promise.all(locks.map(lock => rm(join(common, lock), { force: true })))
}
