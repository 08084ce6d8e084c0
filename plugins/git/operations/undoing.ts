import { currentBranch } from '../branches/current-branch.js'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import { operationOf } from '../changes/operation.js'
import { workingStatus } from '../changes/scan.js'
import type { Objects } from '../objects/objects.js'
import { treeChanges } from '../objects/tree-changes.js'
import type { OpenRepo } from '../repositories/repositories.js'
import type { LeavingCommit, UndoableAction } from './contract.js'

const MOST_LOG = 64 * 1024 * 1024
const MOST_COMMITS = 50
const MOST_FILES = 200
const ZERO = /^0+$/

/** The action that can be undone, or why there is none. */
export type Undoable = UndoableAction | 'mid-operation' | 'detached' | 'no-history' | 'created'

const kindOf = (message: string): UndoableAction['kind'] => {
  if (/^commit \(amend\)/.test(message)) return 'amend'
  if (/^commit \(merge\)|^merge /.test(message)) return 'merge'
  if (/^commit \(cherry-pick\)|^cherry-pick/.test(message)) return 'cherry-pick'
  if (/^commit/.test(message)) return 'commit'
  if (/^rebase/.test(message)) return 'rebase'
  if (/^revert/i.test(message)) return 'revert'
  if (/^reset:/.test(message)) return 'reset'
  return /^pull/.test(message) ? 'pull' : 'other'
}

/** The moves of a HEAD without a branch that can be undone: others are checkouts. */
const OF_DETACHED = /^(?:sandbox: land|commit|reset:)/

/** The last entry of a reflog. */
const lastEntry = (log: string): { from: string; to: string; message: string } | undefined => {
  const lines = readPlain(log, MOST_LOG)?.trimEnd().split('\n')
  const [, from, to, message = ''] = /^([0-9a-f]+) ([0-9a-f]+) [^\t]*\t?(.*)$/.exec(lines?.at(-1) ?? '') ?? []
  return from === undefined || to === undefined ? undefined : { from, to, message }
}

const leaving = async ({ git }: OpenRepo, from: string, to: string): Promise<LeavingCommit[]> => {
  const args = ['log', '-z', '--no-mailmap', '--encoding=UTF-8', `--max-count=${MOST_COMMITS}`, '--format=%H%n%h%n%s']
  const { text } = await git.read([...args, to, `^${from}`, '--'])
  return text
    .split('\0')
    .filter(Boolean)
    .map(record => {
      const [sha = '', short = '', ...subject] = record.split('\n')
      return { sha, short, subject: subject.join(' ') }
    })
}

const isPushed = async ({ git }: OpenRepo, branch: string, from: string, to: string): Promise<boolean> => {
  const { text } = await git.read(['for-each-ref', '--format=%(upstream)', `refs/heads/${branch}`])
  const upstream = text.trim()
  if (upstream === '') return false
  const args = ['rev-list', '--max-count=1', to, `^${from}`]
  const { text: all, code } = await git.read(args, { ok: [0, 128] })
  if (code !== 0 || all.trim() === '') return false
  const own = (await git.read(['rev-list', '--count', to, `^${from}`], { ok: [0, 128] })).text.trim()
  const missing = (
    await git.read(['rev-list', '--count', to, `^${from}`, `^${upstream}`], { ok: [0, 128] })
  ).text.trim()
  return own !== missing
}

/** The effect of undoing the last move of the branch. */
export const undoableIn = async (objects: Objects, opened: OpenRepo): Promise<Undoable> => {
  const { git, sees } = opened
  if (operationOf(git.place.gitdir)) return 'mid-operation'
  const branch = await currentBranch(git)
  const { common, gitdir } = git.place
  const head = await objects.head(git)
  const entry = lastEntry(branch === undefined ? join(gitdir, 'logs/HEAD') : join(common, 'logs/refs/heads', branch))
  if (branch === undefined && !OF_DETACHED.test(entry?.message ?? '')) return 'detached'
  if (head === undefined || !entry || entry.to !== head) return 'no-history'
  if (ZERO.test(entry.from)) return 'created'
  const previous = await objects.read(git, `${entry.from}^{commit}`, 0)
  if (typeof previous === 'string') return 'no-history'
  const [files, commits, rows] = await Promise.all([
    treeChanges(opened, head, entry.from),
    leaving(opened, entry.from, head),
    workingStatus(opened, MOST_FILES),
  ])
  const kind = kindOf(entry.message)
  const lost = [...rows.staged, ...rows.unstaged].filter(
    ({ status }, at) => at < rows.staged.length || status !== 'added',
  )
  return {
    kind,
    description: opened.only ? kind : entry.message.slice(0, 500),
    branch: branch ?? 'HEAD',
    sha: head,
    previousSha: entry.from,
    changesWorkingTree: files.length > 0,
    commits: opened.only ? [] : commits,
    pushed: branch !== undefined && (await isPushed(opened, branch, entry.from, head)),
    files: files.slice(0, MOST_FILES),
    wouldLose: [...new Set(lost.map(({ path }) => path).filter(sees))].slice(0, MOST_FILES),
    recommended: kind === 'commit' || kind === 'amend' ? 'soft' : 'hard',
  }
}
