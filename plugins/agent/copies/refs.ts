import { lstatSync } from 'node:fs'
import { appendFile, lstat, mkdir, open, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import { git } from '../../../sdk/node/programs/git.js'
import { parkedRef } from '../../../sdk/node/repositories/parked-ref.js'
import { ignored } from '../../../sdk/index.js'

const MOST_PACKED = 16 * 1024 * 1024

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

/**
 * Makes room for a branch and its reflog: removes pipes and links, on which git would block or which it would follow,
 * and folders in which nothing is. A folder with refs of others stays, and git then says that it is in the way.
 */
export const clearPlaces = async (common: string, branch: string): Promise<void> => {
  await Promise.all(
    [`refs/heads/${branch}`, `logs/refs/heads/${branch}`].map(async name => {
      const path = join(common, name)
      const found = await lstat(path).catch(() => undefined)
      if (found?.isDirectory()) await removeEmpty(path)
      else if (found && !found.isFile()) await rm(path, { force: true })
    }),
  )
}

const removeEmpty = async (folder: string): Promise<void> => {
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await removeEmpty(join(folder, entry.name))
  await rmdir(folder).catch(ignored('refs of others are in it'))
}

const inRefs = (common: string, args: readonly string[], options: { input?: string; ok?: number[] } = {}) =>
  git(common, args, { env: { GIT_DIR: common }, ...options })

/**
 * Changes refs by these lines of git-update-ref(1), all or none; does not follow symbolic refs, which a turn may have
 * made.
 */
const changeRefs = (common: string, lines: readonly string[], ok = [0]) =>
  inRefs(common, ['update-ref', '--stdin'], { input: lines.map(line => `option no-deref\n${line}\n`).join(''), ok })

const commitOf = async (common: string, ref: string): Promise<string | undefined> => {
  const { code, text } = await inRefs(common, ['rev-parse', '--verify', '-q', `${ref}^{commit}`], { ok: [0, 1, 128] })
  return code === 0 ? text.trim() : undefined
}

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/

/** The commit of a branch, read without git where refs are kept as files; undefined: there is no such branch. */
export const branchTip = (common: string, branch: string): Promise<string | undefined> =>
  refTip(common, `refs/heads/${branch}`)

const refTip = async (common: string, ref: string): Promise<string | undefined> => {
  const packed = packedRefs(common)
  if (packed === undefined) return commitOf(common, ref)
  const commit =
    readPlain(join(common, ref))?.trim()
    ?? packed
      .split('\n')
      .find(line => line.endsWith(` ${ref}`))
      ?.split(' ')[0]
  return commit !== undefined && COMMIT.test(commit) ? commit : undefined
}

/** The text of `packed-refs`, if refs are stored as files and it can be read. */
export const packedRefs = (common: string): string | undefined => {
  if (isThere(join(common, 'reftable'))) return undefined
  const path = join(common, 'packed-refs')
  return isThere(path) ? readPlain(path, MOST_PACKED) : ''
}

/**
 * Changes a ref's file under git's own lock, the file `.lock` beside it.
 */
const locked = async (
  common: string,
  ref: string,
  work: (path: string, lock: string) => Promise<void>,
  content = '',
): Promise<boolean> => {
  const path = join(common, ref)
  const lock = lockOf(common, ref)
  // Only in an existing repository: a deleted one is not created again.
  const file = isThere(common)
    ? await mkdir(dirname(path), { recursive: true })
        .then(() => open(lock, 'wx', 0o644))
        .catch(() => undefined)
    : undefined
  if (!file) return false
  try {
    try {
      await file.writeFile(content)
      if (content) await file.datasync()
    } finally {
      await file.close()
    }
    failpoint('agent.branch.locked')
    await work(path, lock)
    return true
  } catch {
    return false
  } finally {
    await rm(lock, { force: true })
  }
}

const lockOf = (common: string, ref: string): string => `${join(common, ref)}.lock`

/** Removes the lock of a killed daemon or git; only while nothing else works on the branch. */
const unlock = async (common: string, ref: string): Promise<void> => rm(lockOf(common, ref), { force: true })

/**
 * Sets a branch to a commit; writes the file directly, which starts no program, or uses git if that is not possible.
 */
export const putBranch = async (common: string, branch: string, commit: string): Promise<void> => {
  const ref = `refs/heads/${branch}`
  await Promise.all([clearPlaces(common, branch), unlock(common, ref)])
  // A packed ref whose name is a parent folder of this one would conflict with it.
  const free = packedRefs(common)?.includes(` ${dirname(ref)}\n`) === false
  if (free && (await locked(common, ref, (path, lock) => rename(lock, path), `${commit}\n`))) return
  await changeRefs(common, [`update ${ref} ${commit}`])
}

/** A change of a branch that is expected to be at a commit, or not to exist. */
export interface BranchMove {
  readonly from: string | undefined
  readonly to: string
  /** The lines for its reflog. */
  readonly log: string
}

/** Moves a branch from one commit to another; false: it is not at the expected commit. */
export const moveBranch = async (common: string, branch: string, { from, to, log }: BranchMove): Promise<boolean> => {
  const ref = `refs/heads/${branch}`
  await Promise.all([clearPlaces(common, branch), unlock(common, ref)])
  const free = packedRefs(common)?.includes(` ${dirname(ref)}\n`) === false
  let stands = true
  const moved =
    free
    && (await locked(
      common,
      ref,
      async (path, lock) => {
        stands = (await branchTip(common, branch)) === from
        if (!stands) throw new Error('the branch moved')
        await appendLog(join(common, 'logs', ref), log)
        failpoint('agent.import.logged')
        await rename(lock, path)
      },
      `${to}\n`,
    ))
  if (!stands) return false
  if (!moved) await changeRefs(common, [`update ${ref} ${to} ${from ?? '0'.repeat(to.length)}`])
  return true
}

const appendLog = async (path: string, log: string): Promise<void> => {
  // Lines that a killed daemon wrote already are not repeated.
  if (isThere(path) && (readPlain(path, MOST_PACKED) ?? '').endsWith(log)) return
  await mkdir(dirname(path), { recursive: true })
  await appendFile(path, log)
}

/**
 * Deletes a branch, parked or not, if it is at one of these commits; succeeds if it does not exist. One that somebody
 * else moved, or that is another's, stays.
 */
export const dropBranch = async (common: string, branch: string, own: readonly string[]): Promise<void> => {
  await clearPlaces(common, branch)
  const packed = packedRefs(common)
  const left: string[] = []
  for (const ref of [`refs/heads/${branch}`, parkedRef(branch)]) {
    // A kill can leave only the lock of a branch, which would prevent its creation.
    await unlock(common, ref)
    const inPack = packed?.includes(ref) ?? true
    // Only existing refs: git leaves empty folders when it deletes a missing ref.
    if (!inPack && !isThere(join(common, ref))) continue
    const tip = await refTip(common, ref)
    if (tip !== undefined && !own.includes(tip)) continue
    if (inPack || !(await locked(common, ref, path => forget(common, ref, path)))) left.push(ref)
  }
  // One at a time: a ref that git cannot read must not prevent the deletion of the other.
  for (const ref of left) await changeRefs(common, [`delete ${ref}`], [0, 1, 128])
}

const forget = async (common: string, ref: string, path: string): Promise<void> => {
  await rm(path, { force: true })
  await rm(join(common, 'logs', ref), { force: true })
}

/** Renames a ref in one step; does nothing if there is no such ref. */
const moveRef = async (common: string, from: string, to: string): Promise<void> => {
  const commit = await commitOf(common, from)
  if (commit === undefined) return
  await changeRefs(common, [`update ${to} ${commit}`, `delete ${from}`])
}

/** Moves a branch that is at one of these commits to a ref that lists of branches do not show. */
export const parkBranch = async (common: string, branch: string, own: readonly string[]): Promise<void> => {
  await clearPlaces(common, branch)
  const tip = await branchTip(common, branch)
  if (tip === undefined || own.includes(tip)) await moveRef(common, `refs/heads/${branch}`, parkedRef(branch))
}

/** Puts a parked branch back; a branch that was never parked, or is back already, stays as it is. */
export const unparkBranch = async (common: string, branch: string): Promise<void> => {
  const ref = `refs/heads/${branch}`
  await clearPlaces(common, branch)
  if ((await commitOf(common, ref)) === undefined) await moveRef(common, parkedRef(branch), ref)
}
