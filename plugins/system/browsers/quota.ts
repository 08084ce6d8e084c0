import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { folderExceeds } from '../../../sdk/node/files/folder-exceeds.js'
import { ignored } from '../../../sdk/index.js'

/** How much a browser may keep on the disk, in bytes. */
export interface DiskQuota {
  /** What all its pages together may store. One page gets at most three quarters of it, then a quota error. */
  readonly pages: number
  /** The limit of its folder, which also holds data that does not count as storage of a page. */
  readonly folder: number
}

const MEBIBYTE = 1024 * 1024

/** The quota of each browser. */
export const BROWSER_QUOTA: DiskQuota = { pages: 512 * MEBIBYTE, folder: 1024 * MEBIBYTE }

const PAUSE_MS = 5000

const SIGN_INS = ['Cookies', 'Network', 'Login Data', 'Preferences', 'Secure Preferences']
const STAGES = [
  { kept: [...SIGN_INS, 'Local Storage', 'IndexedDB', 'WebStorage'], lost: 'files that the browser recreates' },
  { kept: SIGN_INS, lost: 'the stored data of pages, except cookies' },
  { kept: [], lost: 'everything, including sign-ins' },
]

/** Resolves with true once a folder exceeds its quota, or with false when its browser has ended. */
export const quotaExceeded = async (
  folder: string,
  most: number,
  ended: Promise<void>,
  pause = PAUSE_MS,
): Promise<boolean> => {
  const over = new AbortController()
  const stop = () => over.abort()
  void ended.then(stop, stop)
  while (!over.signal.aborted) {
    await delay(pause, undefined, { signal: over.signal, ref: false }).catch(ignored('the wait was cut short'))
    if (!over.signal.aborted && (await folderExceeds(folder, most))) return true
  }
  return false
}

/**
 * Trims the folder of a browser that is not running to its quota, losing as little as possible; returns what was lost.
 */
export const fit = async (folder: string, most: number): Promise<string | undefined> => {
  let lost: string | undefined
  for (const stage of STAGES) {
    if (!(await folderExceeds(folder, most))) return lost
    await keepOnly(folder, stage.kept)
    lost = stage.lost
  }
  return lost
}

const keepOnly = async (folder: string, kept: readonly string[]): Promise<void> => {
  const profile = join(folder, 'profile')
  await removeBut(folder, ['profile'])
  await removeBut(profile, kept.length > 0 ? ['Default', 'Local State'] : [])
  // A journal belongs to the file beside it.
  await removeBut(join(profile, 'Default'), [...kept, ...kept.map(name => `${name}-journal`)])
}

const removeBut = async (folder: string, kept: readonly string[]): Promise<void> => {
  const names = await readdir(folder).catch(() => [])
  for (const name of names)
    if (!kept.includes(name)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })
}
