import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { isWithin, refuse } from '../../../sdk/index.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { listedRows } from './scan.js'
import type { StatusRows } from './status-stream.js'

const MOST_MOVED = 500
const MOST_NAMED = 5
const LENGTH = 22

/** What lies on disk: every write of a file is another time of change, which no program can set. */
const onDisk = async (path: string): Promise<string> => {
  const found = await lstat(path, { bigint: true }).catch(() => undefined)
  return found ? [found.mode, found.ino, found.size, found.mtimeNs, found.ctimeNs].join() : 'none'
}

/** What is in the index and on disk at the paths of changes. */
export const stampsOf = async (opened: OpenRepo, rows: StatusRows): Promise<Map<string, string>> => {
  const paths = [...rows.conflicted, ...rows.staged, ...rows.unstaged].map(({ path }) => path)
  const stamps = [...new Set(paths)].map(async path => {
    const what = [rows.index.get(path) ?? '', await onDisk(join(opened.git.place.dir, path))]
    return [path, createHash('sha256').update(what.join('\0')).digest('base64url').slice(0, LENGTH)] as const
  })
  return new Map(await Promise.all(stamps))
}

/** Refuses a discard of other changes than those that somebody saw. */
export const checkChanges = async (
  opened: OpenRepo,
  asked: readonly string[] | undefined,
  expect: { readonly [path: string]: string },
): Promise<void> => {
  const isAsked = (path: string) => asked === undefined || asked.some(each => isWithin(each.replace(/\/$/, ''), path))
  const now = await stampsOf(opened, await listedRows(opened))
  const paths = [...new Set([...now.keys(), ...Object.keys(expect)])].filter(isAsked)
  const moved = paths.filter(path => now.get(path) !== expect[path]).sort()
  if (moved.length === 0) return
  const named = moved.slice(0, MOST_NAMED).join(', ')
  refuse('conflict', `changes of ${opened.repo} are not what was seen (changed since: ${named}): look again`, {
    fields: { moved: moved.slice(0, MOST_MOVED) },
  })
}
