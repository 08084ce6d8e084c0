import { chmod, copyFile, constants, lstat, mkdir, open, readlink, symlink, unlink } from 'node:fs/promises'
import { refuse } from '../../../sdk/index.js'
import { bytePath, shownName } from '../../../sdk/node/byte-names.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { Folder, splitPath, stampOf } from './folder.js'

const PARALLEL = 8

/** Runs work for every item. After a failure starts no more, and throws it once the running ones have ended. */
const each = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  const left = items.values()
  const failures: unknown[] = []
  await Promise.all(
    Array.from({ length: PARALLEL }, async () => {
      for (const item of left) {
        if (failures.length > 0) return
        await work(item).catch(error => failures.push(error))
      }
    }),
  )
  if (failures.length > 0) throw failures[0]
}

/** Runs work in the folder of a path; refuses if it cannot be entered. */
export const inParent = async <T>(
  main: string,
  path: string,
  work: (folder: Folder, name: string) => Promise<T>,
): Promise<T> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return refuseMoved(path)
  try {
    return await work(folder, name)
  } finally {
    await folder.close()
  }
}

/** Runs work for every folder of the paths, each opened once; undefined: it cannot be entered. */
export const perFolder = <T extends { readonly path: string }>(
  main: string,
  items: readonly T[],
  work: (folder: Folder | undefined, items: readonly T[], dir: string) => Promise<void>,
): Promise<void> =>
  each([...Map.groupBy(items, ({ path }) => folderOf(path))], async ([dir, some]) => {
    const { folder } = await Folder.reach(main, segmentsIn(dir))
    try {
      await work(folder, some, dir)
    } finally {
      await folder?.close()
    }
  })

/** The parent folder of a path. */
export const folderOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))
/** The segments of a folder's path. */
export const segmentsIn = (dir: string): string[] => (dir === '' ? [] : dir.split('/'))

/** Refuses a landing because the tree changed meanwhile. */
export const refuseMoved = (path: string): never =>
  refuse('conflict', `${shownName(path)} changed while the work was landing, so nothing was written: land again`)

/** Creates a folder and its parents. */
export const makeFolders = async (main: string, dir: string): Promise<void> => {
  const { folder } = await Folder.reach(main, segmentsIn(dir))
  if (folder) return folder.close()
  await makeFolders(main, folderOf(dir))
  await makeFolder(main, dir)
}

/** Creates a folder in an existing one. */
export const makeFolder = (main: string, path: string): Promise<void> =>
  inParent(main, path, async (folder, name) => {
    await mkdir(folder.at(name)).catch(error => {
      if (codeOf(error) !== 'EEXIST') throw error
    })
    // Makes the folder durable: losing it in a power cut would lose the files moved into it.
    await folder.flush()
  })

/** Creates a file or link and flushes its content to the disk. */
export const placeFile = async (
  folder: Folder,
  name: string,
  source: string,
  permissions: number | undefined,
): Promise<void> => {
  const target = folder.at(name)
  const from = bytePath(source)
  const stat = await lstat(from)
  if (stat.isSymbolicLink()) return symlink(await readlink(from, { encoding: 'buffer' }), target)
  await copyFile(from, target, constants.COPYFILE_EXCL)
  await chmod(target, permissions ?? stat.mode & 0o777)
  const handle = await open(target, 'r')
  await handle.datasync().finally(() => handle.close())
}

/** Flushes the directory entries of paths and of their parent folders to the disk. */
export const flushNames = (main: string, paths: readonly string[]): Promise<void> => {
  const names = new Set<string>()
  for (const path of paths) for (let at = path; at !== ''; at = folderOf(at)) names.add(at)
  return perFolder(
    main,
    [...names].map(path => ({ path })),
    async folder => folder?.flush(),
  )
}

/** The stamp of a path. */
export const stampAt = async (main: string, path: string): Promise<string> => {
  const { segments, name } = splitPath(path)
  const { folder } = await Folder.reach(main, segments)
  if (!folder) return 'absent'
  return folder
    .stat(name)
    .then(stampOf)
    .finally(() => folder.close())
}

/** Removes a file or link. */
export const removeFile = (main: string, path: string): Promise<void> =>
  inParent(main, path, (folder, name) => unlink(folder.at(name)))
