import { lstat, readdir, realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { refuse } from '../../sdk/index.js'
import { contains } from '../../sdk/node/files/paths.js'
import { SKILL_FILE } from './packs.js'

const MOST_PACKS = 100
const MOST_FILES = 500
const MOST_BYTES = 20 * 1024 * 1024
const MOST_DEPTH = 16
const NOT_SEARCHED = new Set(['.git', 'node_modules'])

/** A file of a skill that is to be imported; the path is from the skill's folder. */
export interface PackFileFound {
  readonly path: readonly string[]
  /** The path of its bytes. */
  readonly at: string
  readonly size: number
  readonly executable: boolean
}

/** A folder with a `SKILL.md` that is to be imported. */
export interface FoundPack {
  readonly name: string
  readonly files: readonly PackFileFound[]
  readonly bytes: number
}

/** Finds every skill in a folder and below; refuses links that leave a skill, and more than may be imported. */
export const findPacks = async (root: string, nameOfRoot: string): Promise<FoundPack[]> => {
  const packs: FoundPack[] = []
  const look = async (folder: string, name: string, depth: number): Promise<void> => {
    const entries = await readdir(folder, { withFileTypes: true })
    if (entries.some(entry => entry.name === SKILL_FILE && entry.isFile())) {
      if (packs.length === MOST_PACKS) refuse('too-large', `expected at most ${MOST_PACKS} skills, found more`)
      packs.push(await packIn(folder, name))
    } else if (depth < MOST_DEPTH)
      for (const entry of entries)
        if (entry.isDirectory() && !NOT_SEARCHED.has(entry.name))
          await look(join(folder, entry.name), entry.name, depth + 1)
  }
  await look(root, nameOfRoot, 0)
  return packs
}

const packIn = async (root: string, name: string): Promise<FoundPack> => {
  const real = await realpath(root)
  const files: PackFileFound[] = []
  let bytes = 0
  const look = async (folder: string, path: readonly string[]): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const here = [...path, entry.name]
      const at = entry.isSymbolicLink() ? await linked(join(folder, entry.name), real, here) : join(folder, entry.name)
      const { size, mode } = await lstat(at)
      if (entry.isDirectory()) {
        if (here.length > MOST_DEPTH)
          refuse('unprocessable', `${shown(name, here)} lies deeper than ${MOST_DEPTH} folders`)
        if (!NOT_SEARCHED.has(entry.name)) await look(at, here)
        continue
      }
      if (!entry.isFile() && !entry.isSymbolicLink())
        refuse('unprocessable', `${shown(name, here)} is neither a file nor a folder`)
      bytes += size
      files.push({ path: here, at, size, executable: (mode & 0o100) !== 0 })
      if (files.length > MOST_FILES || bytes > MOST_BYTES)
        refuse('too-large', `skill ${name}: expected at most ${MOST_FILES} files of 20 MiB in all, found more`)
    }
  }
  await look(real, [])
  return { name, files, bytes }
}

/** The plain file that a link in a skill leads to. */
const linked = async (path: string, root: string, here: readonly string[]): Promise<string> => {
  const target = await realpath(path).catch(() => undefined)
  if (target === undefined || !contains(root, target))
    return refuse('unprocessable', `${shown(basename(root), here)} is a link that leaves the skill`)
  if (!(await lstat(target)).isFile())
    refuse('unprocessable', `${shown(basename(root), here)} is a link to a folder: expected one to a file`)
  return target
}

const shown = (name: string, path: readonly string[]): string => JSON.stringify([name, ...path].join('/'))
