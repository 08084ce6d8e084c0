import { lstatSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { type MachineProcess, processesIn, processHolding } from '../../../sdk/node/programs/holding.js'
import { lockFiles } from '../changes/operation.js'
import type { LockInfo } from '../records.js'
import type { RepoPlace } from './repo-place.js'

const STALE_MS = 60_000

/** A lock file of git with its path. */
export interface FoundLock {
  readonly path: string
  readonly info: LockInfo
}

const isGit = (command: string): boolean => basename(command.split(' ')[0] ?? '').startsWith('git')

/** The process that has the file open; otherwise a git process in the checkout. */
const holderOf = (path: string, { dir }: RepoPlace): MachineProcess | undefined =>
  processHolding(path) ?? processesIn(dir).find(({ command }) => isGit(command))

/** The oldest lock file of a checkout, and who holds it. */
export const lockOf = (place: RepoPlace): FoundLock | undefined => {
  const found = lockFiles(place.gitdir, place.common).flatMap(path => {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    return stat ? [{ path, age: Math.max(0, Math.round(Date.now() - stat.mtimeMs)) }] : []
  })
  const oldest = found.sort((one, other) => other.age - one.age)[0]
  if (!oldest) return undefined
  const holder = holderOf(oldest.path, place)
  const within = oldest.path.startsWith(`${place.gitdir}/`) ? place.gitdir : place.common
  return {
    path: oldest.path,
    info: {
      file: relative(within, oldest.path),
      ageMs: oldest.age,
      ...(holder && { pid: holder.pid, ...(holder.command !== '' && { command: holder.command }) }),
      stale: oldest.age > STALE_MS && !holder,
    },
  }
}
