import { cp, lstat, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'

/** For whom a browser uses a copy of a profile: what one of them stores is found by no other, nor in the profile. */
export interface ProfileApart {
  readonly key: 'waits' | 'outside'
  /** When a person signed in last: an older copy is made anew. */
  readonly since?: number
}

/** What a copy begins without: caches, and what marks a profile as used. */
const LEFT_OUT = /cache|^(?:Singleton|lockfile$|Service Worker$|Crashpad$|BrowserMetrics|Sessions$|.*\.(?:tmp|log)$)/i

/** The folder of a copy; made from the profile when there is none, or only one from before the last sign-in. */
export const profileApart = async (
  profile: string,
  copies: string,
  { key, since = 0 }: ProfileApart,
  assertUnused: () => void,
): Promise<string> => {
  const folder = join(copies, key)
  // Beside the folder, which pages and their browser write in.
  const mark = join(copies, `${key}.made`)
  const madeAt = await stat(mark).then(
    ({ mtimeMs }) => mtimeMs,
    () => undefined,
  )
  if (madeAt !== undefined && madeAt >= since) return folder
  assertUnused()
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  const fresh = join(copies, `${key}.new`)
  await rm(fresh, { recursive: true, force: true, maxRetries: 5 })
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  const from = join(profile, 'profile')
  if ((await lstat(from).catch(() => undefined))?.isDirectory())
    await cp(from, join(fresh, 'profile'), { recursive: true, filter: isKept })
  await rename(fresh, folder)
  await writeFile(mark, '', { mode: 0o600 })
  return folder
}

/** Only plain files and folders: a page that took its browser over could have left a link. */
const isKept = async (path: string): Promise<boolean> => {
  if (LEFT_OUT.test(basename(path))) return false
  const found = await lstat(path)
  return found.isFile() || found.isDirectory()
}
