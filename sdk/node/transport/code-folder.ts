import { createHash } from 'node:crypto'
import { lstat, mkdir, readdir, readlink, realpath, rename, rm } from 'node:fs/promises'
import { posix, join } from 'node:path'
import { refuse } from '../../refusal.js'
import { flushFolders, flushTree } from '../files/files.js'
import { contains } from '../files/paths.js'
import { plainBytes } from '../files/real-folders.js'

/** The most files and bytes that code from elsewhere may have. */
export const MOST_FILES = 20_000
export const MOST_BYTES = 200 * 1024 * 1024

/** The files of code from elsewhere, without `.git`. */
export interface CodeFolder {
  /** By their paths, with a mark that changes with the content. */
  readonly files: ReadonlyMap<string, FileMark>
  readonly bytes: number
  /** Why it cannot be used. */
  readonly wrong?: string
}

/** A file as it was when its content was read. */
export interface FileMark {
  readonly stamp: string
  readonly size: number
  readonly hash: string
}

/** How a folder is read: files with the same stamp in `before` are not read again; without `hashed` none is. */
export interface FolderReading {
  readonly before?: CodeFolder
  /** Names that are left out, wherever they are. */
  readonly without?: ReadonlySet<string>
  readonly hashed: boolean
}

/** Reads the folder of an extension or a plugin. */
export const readCodeFolder = async (root: string, { before, without, hashed }: FolderReading): Promise<CodeFolder> => {
  const files = new Map<string, FileMark>()
  const left = [''] as string[]
  let bytes = 0
  for (let folder = left.pop(); folder !== undefined; folder = left.pop()) {
    for (const entry of await readdir(join(root, folder), { withFileTypes: true }).catch(() => [])) {
      const path = posix.join(folder, entry.name)
      if (path === '.git' || without?.has(entry.name)) continue
      if (entry.isDirectory()) left.push(path)
      else if (entry.isSymbolicLink()) {
        const target = await readlink(join(root, path)).catch(() => '')
        if (leavesFolder(path, target)) return { files, bytes, wrong: `${path} is a link that leaves its folder` }
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

/** Whether a link in a folder leads out of it, or may: a name before `..` can be another link. */
export const leavesFolder = (path: string, target: string): boolean => {
  const names = target.split('/').filter(name => name !== '' && name !== '.')
  const down = names.findIndex(name => name !== '..')
  const turnsBack = down >= 0 && names.includes('..', down)
  return (
    target === '' || target.startsWith('/') || turnsBack || posix.join(posix.dirname(path), target).startsWith('..')
  )
}

/** The hash of all files of a folder. */
export const folderHash = ({ files }: Pick<CodeFolder, 'files'>): string => {
  const hash = createHash('sha256')
  for (const [path, mark] of [...files].sort(([one], [other]) => (one < other ? -1 : 1)))
    hash.update(`${path}\0${mark.hash}\n`)
  return hash.digest('hex')
}

/** Whether a folder of it has any files. */
export const hasBelow = ({ files }: Pick<CodeFolder, 'files'>, folder: string): boolean => {
  const prefix = folder === '' || folder === '.' ? '' : `${folder.replace(/\/$/, '')}/`
  return [...files.keys()].some(path => path.startsWith(prefix))
}

/** Refuses a path that is no folder of a repository; `field` names it. */
export const assertRepositoryPath = (path: string, field: string): void => {
  if (path === '') return
  const bad = /[\\\0]/.test(path) || path.split('/').some(part => part === '' || part === '.' || part === '..')
  if (bad || !contains('/x', join('/x', path)) || path === '.git' || path.startsWith('.git/'))
    refuse('invalid', `${field}: expected a folder of the repository, found ${JSON.stringify(path.slice(0, 100))}`)
}

/**
 * A folder of a repository in its checkout.
 *
 * @throws A `Refusal` where a link is on the way to it, which may lead anywhere.
 */
export const folderOfCheckout = async (root: string, path: string): Promise<string> => {
  const folder = join(root, path)
  const real = await realpath(folder).catch(() => undefined)
  if (real !== undefined && real !== join(await realpath(root), path))
    refuse('unprocessable', `${path} is a link, or behind one: expected a folder of the repository itself`)
  return folder
}

/** Moves a whole folder to its final path in one step; what an interrupted removal left there is removed. */
export const placeCode = async (folder: string, to: string): Promise<void> => {
  await mkdir(join(to, '..'), { recursive: true, mode: 0o700 })
  await flushTree(folder)
  await rm(to, { recursive: true, force: true })
  await rename(folder, to)
  await flushFolders(to)
}
