import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/** A tree has more files than are looked at. */
export class TooManyFiles extends Error {}

/** The plain files below a folder, as paths from it; links are not followed. */
export const filesBelow = (folder: string, most: number, enters: (name: string) => boolean = () => true): string[] => {
  const found: string[] = []
  const folders = ['']
  for (let at = folders.pop(); at !== undefined; at = folders.pop()) {
    for (const entry of readdirSync(join(folder, at), { withFileTypes: true })) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && enters(entry.name)) folders.push(path)
      if (entry.isFile() && found.push(path) > most) throw new TooManyFiles(`it has more than ${most} files`)
    }
  }
  return found.sort()
}
