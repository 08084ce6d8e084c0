import { access } from 'node:fs/promises'
import { join } from 'node:path'

/** Where Chromium keeps cookies, the newer place first. */
const PLACES = ['profile/Default/Network/Cookies', 'profile/Default/Cookies']

/** The hosts of which the folder of a browser has cookies; none where it has no cookies that can be read. */
export const cookieHosts = async (folder: string): Promise<string[]> => {
  const { DatabaseSync } = await import('node:sqlite')
  for (const place of PLACES) {
    const path = join(folder, place)
    if (
      !(await access(path).then(
        () => true,
        () => false,
      ))
    )
      continue
    try {
      const database = new DatabaseSync(path, { readOnly: true })
      try {
        const rows = database.prepare('select distinct host_key as host from cookies limit 1000').all()
        return rows.map(({ host }) => String(host).replace(/^\./, '')).sort()
      } finally {
        database.close()
      }
    } catch {
      // A browser writes to it, or it is of another form.
      return []
    }
  }
  return []
}
