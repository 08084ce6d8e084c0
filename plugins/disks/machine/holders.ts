import { readdir, readFile, readlink } from 'node:fs/promises'
import { contains } from '../../../sdk/node/files/paths.js'
import type { DiskUser } from '../contract.js'

const MOST = 50

/**
 * The processes with an open file, their working folder or their root in a folder. It asks the kernel alone, so a
 * server that does not answer does not hold it up.
 */
export const folderHolders = async (folder: string): Promise<DiskUser[]> => {
  const holders: DiskUser[] = []
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const held = await heldBy(name, folder)
    if (held === 0) continue
    const command = await readFile(`/proc/${name}/comm`, 'utf8').catch(() => '')
    holders.push({ pid: Number(name), command: command.trim(), paths: held })
    if (holders.length === MOST) break
  }
  return holders
}

const heldBy = async (pid: string, folder: string): Promise<number> => {
  const open = await readdir(`/proc/${pid}/fd`).catch(() => [] as string[])
  const links = ['cwd', 'root', ...open.map(name => `fd/${name}`)]
  const targets = await Promise.all(links.map(link => readlink(`/proc/${pid}/${link}`).catch(() => '')))
  return new Set(targets.filter(target => contains(folder, target))).size
}

/** The first five of the processes, as the end of a sentence. */
export const namedHolders = (holders: readonly DiskUser[]): string => {
  const named = holders.slice(0, 5).map(({ pid, command }) => `${command} (pid ${pid})`)
  const more = holders.length - named.length
  return named.join(', ') + (more > 0 ? ` and ${more} more` : '')
}
