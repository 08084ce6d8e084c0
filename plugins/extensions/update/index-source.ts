import { randomUUID } from 'node:crypto'
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { inside } from '../../../sdk/node/files/paths.js'
import { isPrivateAddress } from '../../../sdk/node/models/outgoing.js'

/** The index of extensions in the root of a repository. */
export const REGISTRY_FILE = 'registry.json'
/** The most bytes of an index. */
export const MOST_INDEX_BYTES = 5 * 1024 * 1024
/** How long an index may take. */
export const INDEX_WITHIN_MS = 20_000

/** Whether an address is that of git: it ends with `.git`, is for ssh, or is a folder of the workspace. */
export const isRepository = async ({ place }: Pick<Host, 'place'>, address: string): Promise<boolean> => {
  if (/\.git\/?$/.test(address) || /^(?:ssh:|[\w.-]+@[\w.-]+:)/i.test(address)) return true
  if (hasScheme(address)) return false
  const path = await inside(place.workspace, address).catch(() => undefined)
  return path !== undefined && ((await stat(path).catch(() => undefined))?.isDirectory() ?? false)
}

/** Whether a text is an address with a scheme, and no path of the workspace. */
export const hasScheme = (address: string): boolean => /^[a-z][a-z0-9+.-]*:/i.test(address)

/** Whether an index is asked for at this address: https, or http on this machine. */
export const isIndexAddress = (address: string): boolean => {
  const url = URL.parse(address)
  return url !== null && isPrivateAddress(url)
}

/** A name in the daemon's own folder for a repository that an index is read from. */
export const indexScratch = async ({ place }: Pick<Host, 'place'>): Promise<string> => {
  const folder = join(place.folder, 'staging')
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return join(folder, `registry-${randomUUID()}`)
}
