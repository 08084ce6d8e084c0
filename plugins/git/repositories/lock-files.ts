import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { basename, relative } from 'node:path'
import { lockFiles } from '../changes/operation.js'
import type { LockInfo } from '../records.js'
import type { RepoPlace } from './repo-place.js'

const STALE_MS = 60_000
const MOST_PROCESSES = 5000
const MOST_COMMAND = 200

/** A lock file of git with its path. */
export interface FoundLock {
  readonly path: string
  readonly info: LockInfo
}

interface Holder {
  readonly pid: number
  readonly command: string
}

const linkOf = (path: string): string | undefined => {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim()
      .slice(0, MOST_COMMAND)
      .toWellFormed()
  } catch {
    return ''
  }
}

const isGit = (command: string): boolean => basename(command.split(' ')[0] ?? '').startsWith('git')

/** The process that has the file open; otherwise a git process in the checkout. */
const holderOf = (path: string, { dir }: RepoPlace): Holder | undefined => {
  let inside: Holder | undefined
  for (const name of readdirSync('/proc').slice(0, MOST_PROCESSES)) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue
    const pid = Number(name)
    let descriptors: string[] = []
    try {
      descriptors = readdirSync(`/proc/${pid}/fd`)
    } catch {
      // The process has ended, or belongs to another user.
    }
    if (descriptors.some(each => linkOf(`/proc/${pid}/fd/${each}`) === path)) return { pid, command: commandOf(pid) }
    const cwd = linkOf(`/proc/${pid}/cwd`)
    if (!inside && cwd !== undefined && (cwd === dir || cwd.startsWith(`${dir}/`))) {
      const command = commandOf(pid)
      if (isGit(command)) inside = { pid, command }
    }
  }
  return inside
}

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
