import { createHash } from 'node:crypto'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { posix, join } from 'node:path'
import { plainBytes, plainText } from '../../../sdk/node/files/real-folders.js'

/** The most files and bytes that an extension may have. */
export const MOST_FILES = 20_000
export const MOST_BYTES = 200 * 1024 * 1024
const MOST_FRAGMENT = 64 * 1024

/** The files of an extension, without what git keeps. */
export interface ExtensionFolder {
  /** By their paths, with a mark that changes with the content. */
  readonly files: ReadonlyMap<string, FileMark>
  readonly bytes: number
  /** Why it cannot be used, as a sentence. */
  readonly wrong?: string
}

/** A file as it was when its content was read. */
export interface FileMark {
  readonly stamp: string
  readonly size: number
  readonly hash: string
}

/** How a folder is read: files that `before` has with the same stamp are not read again, none without `hashed`. */
export interface FolderReading {
  readonly before?: ExtensionFolder
  readonly hashed: boolean
}

/** Reads what lies in an extension's folder. */
export const readExtensionFolder = async (
  root: string,
  { before, hashed }: FolderReading,
): Promise<ExtensionFolder> => {
  const files = new Map<string, FileMark>()
  const left = [''] as string[]
  let bytes = 0
  for (let folder = left.pop(); folder !== undefined; folder = left.pop()) {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])) {
      const path = posix.join(folder, entry.name)
      // Of an author's folder, what its tests and types come from is no part of the extension.
      if (path === '.git' || (hashed && entry.name === 'node_modules')) continue
      if (entry.isDirectory()) left.push(path)
      else if (entry.isSymbolicLink()) {
        const target = await readlink(join(root, path)).catch(() => '')
        if (leaves(path, target)) return { files, bytes, wrong: `${path} is a link that leaves the extension's folder` }
        files.set(path, { stamp: target, size: 0, hash: `link ${target}` })
      } else if (entry.isFile()) {
        const { ino, size, mtimeNs } = await lstat(join(root, path), { bigint: true })
        const stamp = `${ino} ${size} ${mtimeNs}`
        const known = before?.files.get(path)
        bytes += Number(size)
        if (bytes > MOST_BYTES) return { files, bytes, wrong: `it has more than ${MOST_BYTES} bytes` }
        files.set(
          path,
          known?.stamp === stamp ? known : await marked(join(root, path), { stamp, size: Number(size), hashed }),
        )
      }
      if (files.size > MOST_FILES) return { files, bytes, wrong: `it has more than ${MOST_FILES} files` }
    }
  }
  return { files, bytes }
}

const marked = async (
  path: string,
  { stamp, size, hashed }: { stamp: string; size: number; hashed: boolean },
): Promise<FileMark> => {
  const content = hashed ? await plainBytes(path, MOST_BYTES) : undefined
  return { stamp, size, hash: content ? createHash('sha256').update(content).digest('hex') : '' }
}

/** Whether a link in a folder leads out of it, by its text. */
const leaves = (path: string, target: string): boolean =>
  target === '' || target.startsWith('/') || posix.join(posix.dirname(path), target).startsWith('..')

/** The hash of all files of a folder. */
export const folderHash = ({ files }: Pick<ExtensionFolder, 'files'>): string => {
  const hash = createHash('sha256')
  for (const [path, mark] of [...files].sort(([one], [other]) => (one < other ? -1 : 1)))
    hash.update(`${path}\0${mark.hash}\n`)
  return hash.digest('hex')
}

/** Whether something lies below a folder of the extension. */
export const hasBelow = ({ files }: Pick<ExtensionFolder, 'files'>, folder: string): boolean => {
  const prefix = folder === '' || folder === '.' ? '' : `${folder.replace(/\/$/, '')}/`
  return [...files.keys()].some(path => path.startsWith(prefix))
}

/** What is wrong with lines for the image: only `RUN` and `ENV` are allowed. */
export const wrongFragment = async (root: string, path: string): Promise<string | undefined> => {
  const text = await plainText(join(root, path), MOST_FRAGMENT)
  if (text === undefined) return undefined
  let goesOn = false
  for (const line of text.split('\n')) {
    const bare = line.trim()
    const bad = !goesOn && bare !== '' && !bare.startsWith('#') && !/^(RUN|ENV)\s/i.test(bare)
    if (bad) return `${path} has the line ${JSON.stringify(bare.slice(0, 60))}: expected RUN and ENV lines alone`
    goesOn = bare.endsWith('\\')
  }
  return undefined
}
