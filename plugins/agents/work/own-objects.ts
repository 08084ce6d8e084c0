import { copyFile, link, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inFolder } from '../../../sdk/node/files/in-folder.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

const LOOSE = /^[0-9a-f]{38}(?:[0-9a-f]{24})?$/
const PACK = /^pack-[0-9a-f]{40,64}\.(?:pack|idx)$/

/** Gives a file a second name, and keeps it only when it is a plain one; git would wait at a pipe for ever. */
const keepPlain = async (from: string, to: string): Promise<boolean> => {
  try {
    await link(from, to)
    if ((await lstat(to)).isFile()) return true
    await rm(to, { force: true })
  } catch (error) {
    // Another file system has no second names for it.
    if (codeOf(error) === 'EXDEV' && (await lstat(from)).isFile()) return copyFile(from, to).then(() => true)
  }
  return false
}

/**
 * Shows the objects that a private copy has of its own in another folder, and answers how many files that are.
 *
 * Only plain files with the names of objects and packs are there, so nothing a turn wrote beside them leads git
 * elsewhere. They are few: what the repository has taken over is none of them.
 */
export const linkObjects = async (gitdir: string, to: string): Promise<number> => {
  let count = 0
  const take = (folder: string, fits: RegExp) =>
    inFolder(join(gitdir, 'objects', folder), async at => {
      const names = (await readdir(at)).filter(name => fits.test(name))
      if (names.length > 0) await mkdir(join(to, folder), { recursive: true })
      for (const name of names) if (await keepPlain(join(at, name), join(to, folder, name))) count++
    })
  await inFolder(join(gitdir, 'objects'), async at => {
    for (const name of await readdir(at)) {
      if (/^[0-9a-f]{2}$/.test(name)) await take(name, LOOSE)
      else if (name === 'pack') await take(name, PACK)
    }
  })
  return count
}
