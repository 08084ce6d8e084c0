import { createHash, randomUUID } from 'node:crypto'
import type { Stats } from 'node:fs'
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { copyItself, inFolder } from '../files/in-folder.js'

/** What a home starts without: caches, programs and the record of other conversations. */
const LEFT_OUT = /^(?:\.cache|\.npm|\.local|node_modules|caches?|logs?|te?mp|sessions?|projects|history|.*\.lock)$/i
/** Of `.local`, what programs keep by the XDG base directory specification. */
const LOCAL = ['share', 'state']
const LARGEST = 1024 * 1024
const MOST = 2000
const DEEPEST = 6

type Visit = (file: { readonly path: string; readonly at: string; readonly stats: Stats }) => Promise<void>

/**
 * Visits the settings and sign-ins in a home: its small plain files. Programs write there meanwhile, so each folder is
 * opened and no link is followed.
 */
const visitSeeds = async (home: string, visit: Visit): Promise<void> => {
  let left = MOST
  const walk = async (folder: string, below: string, names: readonly string[], depth: number): Promise<void> => {
    for (const name of names) {
      const [path, at] = [join(below, name), join(folder, name)]
      const stats = await lstat(at).catch(() => undefined)
      if (stats?.isDirectory() && depth < DEEPEST) await inFolder(at, async inside => seeds(inside, path, depth + 1))
      if (!stats?.isFile() || stats.size > LARGEST) continue
      if (left-- <= 0) return
      await visit({ path, at, stats })
    }
  }
  const seeds = async (folder: string, below: string, depth: number): Promise<void> => {
    const names = await readdir(folder).catch(() => [] as string[])
    await walk(folder, below, names.filter(name => !LEFT_OUT.test(name)).toSorted(), depth)
  }
  await inFolder(home, async at => {
    await seeds(at, '', 0)
    await inFolder(join(at, '.local'), local => walk(local, '.local', LOCAL, 1))
  })
}

/**
 * A copy of a home's settings and sign-ins in a folder of its own below `place`; another one once those have changed.
 *
 * It is complete before a program sees it: the daemon never writes where a program could have placed a link.
 */
export const seedHome = async (home: string, place: string): Promise<string> => {
  const stamps: string[] = []
  await visitSeeds(home, async ({ path, stats: { size, mtimeMs, ino } }) => {
    stamps.push(`${path}\0${size} ${mtimeMs} ${ino}`)
  })
  const digest = createHash('sha256').update(stamps.join('\0')).digest('hex')
  const made = join(place, digest.slice(0, 16))
  if ((await lstat(made).catch(() => undefined))?.isDirectory()) return made
  const fresh = join(place, `.new-${randomUUID()}`)
  try {
    await mkdir(fresh, { recursive: true, mode: 0o700 })
    await visitSeeds(home, async ({ path, at }) => {
      await mkdir(dirname(join(fresh, path)), { recursive: true, mode: 0o700 })
      await copyItself(at, join(fresh, path), { flush: true })
    })
    await rename(fresh, made)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    // Another program of the conversation was faster.
    if (!(await lstat(made).catch(() => undefined))?.isDirectory()) throw error
  }
  return made
}
