import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { GitOperation } from '../records.js'

const MOST_LIST = 16 * 1024 * 1024

const has = (gitdir: string, name: string): boolean =>
  statSync(join(gitdir, name), { throwIfNoEntry: false }) !== undefined

/** The operation that a checkout is halted in, read from its own git dir. */
export const operationOf = (gitdir: string): GitOperation | undefined => {
  if (has(gitdir, 'rebase-merge')) return 'rebase'
  if (has(gitdir, 'rebase-apply') && !has(gitdir, 'rebase-apply/applying')) return 'rebase'
  if (has(gitdir, 'REVERT_HEAD')) return 'revert'
  if (has(gitdir, 'CHERRY_PICK_HEAD')) return 'cherry-pick'
  const queued = readPlain(join(gitdir, 'sequencer/todo'), MOST_LIST)
  if (queued !== undefined) return /^revert /m.test(queued) ? 'revert' : 'cherry-pick'
  return has(gitdir, 'MERGE_HEAD') ? 'merge' : undefined
}

/** The progress of a halted operation. */
export interface OperationProgress {
  readonly step?: number
  readonly total?: number
  readonly onto?: string
  /** The commit it stopped at, or merges. */
  readonly stoppedAt?: string
}

const number = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,8}\n?$/.test(text) ? Number(text) : undefined

const commit = (text: string | undefined): string | undefined => /^[0-9a-f]{40,64}/.exec(text ?? '')?.[0]

/** Reads the progress of the operation of a checkout. */
export const progressOf = (gitdir: string, operation: GitOperation): OperationProgress => {
  const read = (name: string) => readPlain(join(gitdir, name))
  if (operation === 'merge') return some({ stoppedAt: commit(read('MERGE_HEAD')) })
  if (operation === 'rebase') {
    const merge = has(gitdir, 'rebase-merge')
    const folder = merge ? 'rebase-merge' : 'rebase-apply'
    return some({
      step: number(read(`${folder}/${merge ? 'msgnum' : 'next'}`)),
      total: number(read(`${folder}/${merge ? 'end' : 'last'}`)),
      onto: commit(read(`${folder}/onto`)),
      stoppedAt: commit(read('REBASE_HEAD')) ?? commit(read(`${folder}/stopped-sha`)),
    })
  }
  return some({ stoppedAt: commit(read(operation === 'revert' ? 'REVERT_HEAD' : 'CHERRY_PICK_HEAD')) })
}

const some = (progress: { [field in keyof OperationProgress]: OperationProgress[field] | undefined }) =>
  Object.fromEntries(Object.entries(progress).filter(([, value]) => value !== undefined)) as OperationProgress

const MOST_FOLDERS = 2000

/** The lock files of git in a checkout's git dir and below `refs` of the common one. */
export const lockFiles = (gitdir: string, common: string): string[] => {
  const found: string[] = []
  const folders = [...new Set([gitdir, common]), join(common, 'refs')]
  for (let seen = 0; folders.length > 0 && seen < MOST_FOLDERS; seen++) {
    const folder = folders.shift()!
    let entries
    try {
      entries = readdirSync(folder, { withFileTypes: true })
    } catch {
      continue
    }
    for (const entry of entries) {
      if (entry.isFile() && entry.name.endsWith('.lock')) found.push(join(folder, entry.name))
      else if (entry.isDirectory() && folder.startsWith(join(common, 'refs'))) folders.push(join(folder, entry.name))
    }
  }
  return found
}
