import { createHash } from 'node:crypto'
import { lstat, mkdir, realpath } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { refuse } from '../../refusal.js'
import { writeAtomic } from '../files/files.js'
import type { Mount } from './spec.js'

/** Refuses a source whose real path differs: a process could have replaced it with a link to any path. */
export const real = async (path: string): Promise<string> => {
  const found = await realpath(path).catch(() => undefined)
  if (found === path) return path
  const what = found ? 'a link' : 'nothing'
  return refuse('unprocessable', `expected a folder or file at ${path}, found ${what}: put it back and try again`)
}

export const kindOf = async (path: string): Promise<'folder' | 'file' | undefined> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found || found.isSymbolicLink()) return undefined
  return found.isDirectory() ? 'folder' : 'file'
}

/** Mounts a path read-only at the same place, if it exists. */
export const shownAsIs = async (path: string): Promise<Mount[]> => ((await kindOf(path)) ? [['show', path, path]] : [])

/** The folder in the data folder for files that are shown inside walls. */
export const NOTES = 'wall'

/** Creates a file with this text to show inside walls, read-only; the same text gives the same file. */
export const note = async (data: string, text: string, mode = 0o444): Promise<string> => {
  const path = join(data, NOTES, createHash('sha256').update(text).digest('hex').slice(0, 32))
  if ((await kindOf(path)) === 'file') return path
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeAtomic(path, text, { mode })
  return path
}
