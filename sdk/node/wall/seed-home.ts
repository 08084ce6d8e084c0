import { createHash, randomUUID } from 'node:crypto'
import { copyFile, lstat, mkdir, readdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { ignored } from '../../ignored.js'

/** What a home starts without: caches, programs and the record of other conversations. */
const LEFT_OUT = /^(?:\.cache|\.npm|\.local|node_modules|caches?|logs?|te?mp|sessions?|projects|history|.*\.lock)$/i
/** Of `.local`, what programs keep by the XDG base directory specification. */
const LOCAL = ['share', 'state']
const LARGEST = 1024 * 1024
const MOST = 2000
const DEEPEST = 6

interface Seed {
  readonly path: string
  readonly stamp: string
}

/** The settings and sign-ins in a home: its small plain files. */
const seedsIn = async (home: string): Promise<Seed[]> => {
  const found: Seed[] = []
  const walk = async (below: string, names: readonly string[], depth: number): Promise<void> => {
    for (const name of names) {
      if (found.length >= MOST) return
      const path = join(below, name)
      const stat = await lstat(join(home, path)).catch(() => undefined)
      if (stat?.isDirectory() && depth < DEEPEST) {
        const inside = await readdir(join(home, path)).catch(() => [] as string[])
        await walk(path, inside.filter(each => !LEFT_OUT.test(each)).toSorted(), depth + 1)
      }
      if (stat?.isFile() && stat.size <= LARGEST)
        found.push({ path, stamp: `${path}\0${stat.size} ${stat.mtimeMs} ${stat.ino}` })
    }
  }
  const top = await readdir(home).catch(() => [] as string[])
  await walk('', top.filter(name => !LEFT_OUT.test(name)).toSorted(), 0)
  await walk(
    '.local',
    LOCAL.filter(() => top.includes('.local')),
    1,
  )
  return found
}

/**
 * A copy of a home's settings and sign-ins in a folder of its own below `place`; another one once those have changed.
 *
 * It is complete before a program sees it: the daemon never writes where a program could have placed a link.
 */
export const seedHome = async (home: string, place: string): Promise<string> => {
  const seeds = await seedsIn(home)
  const digest = createHash('sha256')
    .update(seeds.map(({ stamp }) => stamp).join('\0'))
    .digest('hex')
  const made = join(place, digest.slice(0, 16))
  if ((await lstat(made).catch(() => undefined))?.isDirectory()) return made
  const fresh = join(place, `.new-${randomUUID()}`)
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  for (const { path } of seeds) {
    const to = join(fresh, path)
    await mkdir(join(to, '..'), { recursive: true, mode: 0o700 })
    await copyFile(join(home, path), to).catch(ignored('a file that is gone or closed is not needed'))
  }
  await rename(fresh, made).catch(async error => {
    // Another program of the conversation was faster.
    if (!(await lstat(made).catch(() => undefined))?.isDirectory()) throw error
  })
  return made
}
