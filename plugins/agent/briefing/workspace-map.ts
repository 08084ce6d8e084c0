import { readdir } from 'node:fs/promises'
import { Refusal } from '../../../sdk/index.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { NOT_SEARCHED } from '../../../sdk/node/repositories/folders-with-git.js'
import { inTreeFolder, type Rooted } from '../tools/tree.js'

const MOST_CHARACTERS = 6_000
const MOST_FOLDERS = 300

/** The folders in a folder, as far as the turn sees them; none where it cannot be read. */
const foldersIn = async (tree: Rooted, path: string): Promise<string[]> => {
  try {
    return await inTreeFolder(tree, path, async (at, shows) =>
      (await readdir(at, { withFileTypes: true }))
        .filter(entry => entry.isDirectory() && shows(entry.name) && isMapped(entry.name))
        .map(({ name }) => name)
        .sort(),
    )
  } catch (error) {
    if (error instanceof Refusal || codeOf(error) !== undefined) return []
    throw error
  }
}

/** Whether a folder is worth naming: not one that programs fill, nor one with a name that breaks the lines. */
const isMapped = (name: string): boolean =>
  !NOT_SEARCHED.has(name) && !name.startsWith('.') && !/[\x00-\x1f\x7f]/.test(name)

/** The repositories and two levels of folders, at most 6,000 characters; undefined: there is no folder. */
export const workspaceMap = async (tree: Rooted, repositories: readonly string[]): Promise<string | undefined> => {
  const top = await foldersIn(tree, '.')
  const rows: string[] = []
  for (const name of top.slice(0, MOST_FOLDERS)) {
    const below = await foldersIn(tree, name)
    rows.push(below.length > 0 ? `${name}/: ${below.join(', ')}` : `${name}/`)
  }
  const nested = repositories.filter(repo => repo !== 'root')
  if (rows.length === 0 && nested.length === 0) return undefined
  return fitted([...(nested.length > 0 ? [`Repositories: ${repositories.join(', ')}`] : []), ...rows], top.length)
}

/** As many rows as fit, and how many folders they leave out. */
const fitted = (rows: readonly string[], folders: number): string => {
  const [shown, room] = [[] as string[], MOST_CHARACTERS - 40]
  let length = 0
  for (const row of rows) {
    const fits =
      row.length + 1 > room - length ? `${row.slice(0, Math.max(0, room - length - 2)).toWellFormed()}…` : row
    if (length + fits.length > room || fits === '…') break
    shown.push(fits)
    length += fits.length + 1
    if (fits !== row) break
  }
  const left = rows.length - shown.length + Math.max(0, folders - MOST_FOLDERS)
  return left > 0 ? [...shown, `[${left} more folders]`].join('\n') : shown.join('\n')
}
