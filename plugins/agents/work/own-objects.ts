import { copyFile, link, lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { inFolder } from '../../../sdk/node/files/in-folder.js'
import { codeOf } from '../../../sdk/node/files/paths.js'

const LOOSE = /^[0-9a-f]{38}(?:[0-9a-f]{24})?$/
const PACK = /^pack-[0-9a-f]{40,64}\.(?:pack|idx)$/

/** Hard-links a file and keeps the link only if it is a plain file; git would block on a FIFO. */
const keepPlain = async (from: string, to: string): Promise<boolean> => {
  try {
    await link(from, to)
    if ((await lstat(to)).isFile()) return true
    await rm(to, { force: true })
  } catch (error) {
    // Hard links do not work across file systems.
    if (codeOf(error) === 'EXDEV' && (await lstat(from)).isFile()) return copyFile(from, to).then(() => true)
  }
  return false
}

/**
 * Links the objects that only a private copy has into another folder; returns how many files.
 *
 * Links only plain files with names of objects and packs, so that nothing else that a turn wrote there affects git.
 * There are few, since objects imported into the repository are not among them.
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
