import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { setTimeout as pause } from 'node:timers/promises'
import { refuse, type Context, type Host } from '../../../sdk/index.js'
import { writeFailure } from '../../../sdk/node/files/disk.js'
import { GitFailure, type GitAnswer, type Identity } from '../../../sdk/node/programs/git.js'
import { record } from '../../../sdk/node/record/record.js'
import { operationOf } from '../changes/operation.js'
import type { Scans } from '../changes/scans.js'
import type { Objects } from '../objects/objects.js'
import type { GitCode, GitResult } from '../records.js'
import { lockOf } from '../repositories/lock-files.js'
import { verdictOf, type WriteHow } from '../repositories/repo-git.js'
import type { RepoLocks } from '../repositories/repo-locks.js'
import type { OpenRepo, Repositories } from '../repositories/repositories.js'
import type { RefsWatch } from '../watch/refs-watch.js'
import { identityFor } from './identity.js'
import type { RunningWrites } from './running-writes.js'

type WriteHost = Pick<Host, 'call' | 'serves' | 'log' | 'place' | 'signal'>

/** The dependencies of every write. */
export interface WriteDeps {
  readonly host: WriteHost
  readonly repositories: Repositories
  readonly objects: Objects
  readonly scans: Scans
  readonly locks: RepoLocks
  readonly refs: RefsWatch
  readonly running: RunningWrites
}

/** The options of a write. */
export interface WriteOrder {
  readonly repo: string
  /** One word for the lock and the journal, such as `commit`. */
  readonly verb: string
  /** The commit that HEAD must have when the lock is acquired. */
  readonly expectHead?: string | undefined
  /** Refuse while the repository is halted in an operation. */
  readonly whole?: boolean
  /** The operation is aborted if the daemon ends meanwhile. */
  readonly aborts?: boolean
  /** Ends the wait for the repository instead of the caller's disconnect, if earlier steps are already done. */
  readonly signal?: AbortSignal
}

/** The outcome of a write; no code: it was done. */
export interface GitVerdict {
  readonly code?: GitCode
  readonly reason?: string
  readonly conflicts?: readonly string[]
  readonly point?: string | undefined
}

/** A write that holds its repository. */
export interface Writing {
  readonly opened: OpenRepo
  readonly context: Context
  /** HEAD when the write began; undefined before the first commit. */
  readonly head: string | undefined
  readonly identity: Identity
  /** Runs git, waits while a lock file blocks it, and refuses where the disk is full. */
  run(args: readonly string[], how?: Omit<WriteHow, 'identity'>): Promise<GitAnswer>
  /** Saves a point of the workspace; undefined if the group history is not served. */
  savePoint(label: string): Promise<string | undefined>
  /** The answer of a write with its outcome. */
  result(answer: GitVerdict): Promise<GitResult>
  /** Adds an entry to the activity record. */
  note(type: string, extra?: object): Promise<void>
}

const LOCKED = /(?:unable to (?:create|lock)|cannot lock ref|could not lock)[^\n]*(?:File exists|\.lock)/i
const FULL = /No space left on device|Out of diskspace|Disk quota exceeded/
/** Whether git failed because of what surrounds the repository, not because of what it was asked. */
const isOutside = (said: string): boolean => FULL.test(said) || LOCKED.test(said)
const PATIENCE_MS = 10_000
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000

/** Runs a write of a caller while holding the repository's lock, then publishes the change. */
export const writing = async <T>(
  deps: WriteDeps,
  order: WriteOrder,
  context: Context,
  work: (write: Writing) => Promise<T>,
): Promise<T> => {
  const { host, repositories, objects, locks, refs, running } = deps
  const { repo, verb } = order
  const opened = await repositories.open(repo, context.caller)
  const { git } = opened
  const { gitdir, common } = git.place
  const by = `${verb} by ${context.caller.actor}`
  return locks.with(common, by, order.signal ?? context.signal, async () => {
    await checkWritable(repo, gitdir)
    const operation = operationOf(gitdir)
    if (operation && order.whole)
      refuse('conflict', `${repo} is in the middle of a ${operation}: continue or abort it first`, {
        fields: { operation },
      })
    const head = await objects.head(git)
    checkHead(repo, head, order.expectHead)
    const identity = await identityFor(git, context.caller)
    const write: Writing = {
      opened,
      context,
      head,
      identity,
      run: (args, how = {}) => patiently(opened, () => git.write(args, { ...how, identity })),
      savePoint: async label => {
        if (!(await host.serves('history.snapshot'))) return undefined
        return (await host.call('history.snapshot', { trigger: 'user', label, by: context.caller.actor })).id
      },
      result: async ({ code, reason, conflicts, point }) => {
        const now = await objects.head(git)
        return {
          ok: code === undefined,
          ...(code !== undefined && { code }),
          ...(reason !== undefined && { reason }),
          ...(conflicts && conflicts.length > 0 && { conflicts: conflicts.slice(0, 200) }),
          ...(now !== undefined && { head: now }),
          ...(point !== undefined && { point }),
        }
      },
      note: (type, extra = {}) =>
        record(host, { type: `git.${type}`, outcome: 'ok', extra: { repo, ...extra } }, context),
    }
    const end = await running.begin({ repo, verb, ...(head && { head }), aborts: order.aborts === true })
    try {
      return await work(write)
    } finally {
      await end()
      refs.moved(repo)
    }
  })
}

/** Refuses a repository whose HEAD is not where somebody saw it. */
export const checkHead = (repo: string, head: string | undefined, expected: string | undefined): void => {
  if (expected === undefined || head?.startsWith(expected)) return
  refuse('conflict', `HEAD of ${repo} is ${head ?? 'before the first commit'}, expected ${expected}: look again`, {
    fields: { ...(head !== undefined && { head }) },
  })
}

/** Refuses a branch or tag that is not where somebody saw it. */
export const checkSeen = (name: string, found: string, expected: string | undefined): void => {
  if (expected === undefined || found.startsWith(expected)) return
  refuse('conflict', `${name} is at ${found}, expected ${expected}: look again`, { fields: { sha: found } })
}

const checkWritable = async (repo: string, gitdir: string): Promise<void> => {
  await access(gitdir, constants.W_OK).catch((cause: NodeJS.ErrnoException) => {
    const why =
      cause.code === 'EROFS' ? 'its file system is read-only' : `its git folder is not writable (${cause.code})`
    refuse('unprocessable', `${repo} cannot be changed: ${why}`, { cause })
  })
}

/** Repeats git while a lock file of another program blocks it, for up to 10 s; refuses where the disk is full. */
const patiently = async (opened: OpenRepo, run: () => Promise<GitAnswer>): Promise<GitAnswer> => {
  const until = performance.now() + PATIENCE_MS
  for (let wait = FIRST_PAUSE_MS; ; wait = Math.min(2 * wait, LONGEST_PAUSE_MS)) {
    let said: string
    try {
      const answer = await run()
      if (answer.code === 0 || !isOutside(answer.stderr)) return answer
      said = answer.stderr
    } catch (error) {
      if (!(error instanceof GitFailure) || !isOutside(error.stderr)) throw error
      said = error.stderr
    }
    if (FULL.test(said)) throw writeFailure(Object.assign(new Error(said), { code: 'ENOSPC' }))
    if (performance.now() + wait > until) {
      const lock = lockOf(opened.git.place)?.info
      const file = lock?.file ?? 'a lock file'
      const holder = lock?.pid === undefined ? '' : `, held by process ${lock.pid}`
      return refuse('conflict', `${file} of ${opened.repo} is in the way${holder}: ${verdictOf(said)}`, {
        fields: { ...(lock && { lock }) },
      })
    }
    await pause(wait)
  }
}

/** The output of git, or its failure as a refusal with git's message. */
export const orConflict = async (run: Promise<GitAnswer>): Promise<GitAnswer> => {
  try {
    return await run
  } catch (error) {
    if (error instanceof GitFailure) return refuse('conflict', verdictOf(error.stderr))
    throw error
  }
}

/** The paths that are unmerged. */
export const unmergedPaths = async ({ git, sees }: OpenRepo): Promise<string[]> => {
  const { text } = await git.look(['ls-files', '-u', '-z'])
  const paths = text.split('\0').flatMap(line => line.split('\t').slice(1).join('\t') || [])
  return [...new Set(paths)].filter(sees)
}
