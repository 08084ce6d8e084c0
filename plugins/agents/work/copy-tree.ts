import type { Stats } from 'node:fs'
import { mkdir, readlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { outputFields, bytePath } from '../../../sdk/node/byte-names.js'
import { readPlain } from '../../../sdk/node/files/files.js'
import { LARGEST_FILE, LARGEST_SHOWN, largeFiles, otherThanFiles } from '../../../sdk/node/files/large-files.js'
import { copyFormOf } from '../../../sdk/node/wall/gitdir.js'
import type { ScratchRepo } from './scratch-repo.js'
import { excludedPaths } from './excluded-paths.js'
import type { Repository } from './repository.js'

/** Whether a path of the copy is a link to the same path of the main checkout, as for dependency folders. */
const isShown = async (copy: string, main: string, path: string): Promise<boolean> =>
  (await readlink(bytePath(join(copy, path))).catch(() => undefined)) === join(main, path)

/**
 * Whether a path of the copy is another of its repositories, whose pointer in this one the daemon never commits.
 *
 * The git dirs of a copy lie beside each other; a turn that forges this gains nothing, because what it commits then is
 * not what was shown.
 */
const isOther = (copy: string, own: string, path: string): boolean =>
  readPlain(join(copy, path, '.git'))?.startsWith(`gitdir: ${dirname(own)}/`) === true

/** The current files of a private copy. */
export interface CopyTree {
  readonly tree: string
  /** The tree without the files that are too large to be committed: what a commit of all would hold. */
  readonly committed: string
  /** The sizes of uncommitted files that were not read. */
  readonly unread: ReadonlyMap<string, number>
}

/**
 * The tree of a private copy's current files, uncommitted work included.
 *
 * An uncommitted file that is too large to be shown is not read. Placeholder bytes from its stat represent it, which
 * are unique and change with the file.
 *
 * Created in the scratch repository: the copy, its index and its branch do not change.
 */
export const treeOfCopy = async (
  scratch: ScratchRepo,
  { checkout: { repo }, folders, main, own, tip }: Repository,
  copy: string,
): Promise<CopyTree> => {
  if (own === undefined) return { tree: tip, committed: tip, unread: new Map() }
  const index = 'copy'
  if (!(await scratch.takeIndexOf(own, index))) await scratch.git(['read-tree', tip], { index })
  const settings = [
    `core.excludesFile=${join(folders.common, 'info', 'exclude')}`,
    // Files that a sparse checkout leaves out, and that are there, are part of the work.
    ...(copyFormOf(own)?.settings.some(([name]) => name === 'core.sparsecheckout') ? ['core.sparseCheckout=true'] : []),
  ]
  const listed = async (...args: string[]) =>
    outputFields(await scratch.git(['ls-files', '-z', ...args], { index, tree: copy, settings })).filter(
      path => path !== '',
    )
  const candidates = new Set([...(await listed('-m')), ...(await listed('-o', '--exclude-standard'))])
  const others = otherThanFiles(copy, [...candidates])
  const paths: string[] = []
  // A name that ends with a slash is a nested repository.
  for (const path of candidates) {
    if (path.endsWith('/') || others.has(path) || excludedPaths(repo, path) || isOther(copy, own, path)) continue
    if (!(await isShown(copy, main, path))) paths.push(path)
  }
  const large = await largeFiles(copy, paths, LARGEST_SHOWN)
  const stands = await standIns(scratch, large)
  const add = async (tree: string, some: readonly string[]) => {
    await scratch.convert(
      ['update-index', '--add', '--remove', '--replace', '-z', '--stdin'],
      some,
      { index, tree, settings },
      'tree',
    )
  }
  const written = async () => (await scratch.git(['write-tree'], { index })).text.trim()
  const [never, later] = [...large].reduce<[string[], string[]]>(
    (sorted, [path, { size }]) => (sorted[size > LARGEST_FILE ? 0 : 1].push(path), sorted),
    [[], []],
  )
  await add(
    copy,
    paths.filter(path => !large.has(path)),
  )
  await add(stands, later)
  const committed = await written()
  await add(stands, never)
  const tree = never.length > 0 ? await written() : committed
  return { tree, committed, unread: new Map([...large].map(([path, { size }]) => [path, size])) }
}

/** A folder with binary placeholder bytes for each of these files. */
const standIns = async (scratch: ScratchRepo, files: ReadonlyMap<string, Stats>): Promise<string> => {
  const folder = await scratch.place('large')
  for (const [path, { dev, ino, size, mtimeMs, ctimeMs, mode }] of files) {
    await mkdir(bytePath(dirname(join(folder, path))), { recursive: true })
    await writeFile(bytePath(join(folder, path)), `\0${[dev, ino, size, mtimeMs, ctimeMs].join(' ')}`, {
      mode: mode & 0o100 ? 0o755 : 0o644,
    })
  }
  return folder
}
