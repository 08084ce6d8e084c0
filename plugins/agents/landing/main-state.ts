import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, open, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { LARGEST_FILE } from '../../../sdk/node/files/large-files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { emptyTree, type ScratchRepo } from '../work/scratch-repo.js'
import { Folder, splitPath, stampOf, type Obstacle } from './folder.js'
import { pairsBetween, type TreeChange, type TreeFile, type Pair } from '../work/tree-diff.js'

/** One path of the person's working tree. */
interface Found {
  readonly kind: 'file' | 'link' | 'folder' | 'special' | 'absent'
  readonly stamp: string
  readonly obstacle?: Obstacle
}

const ABSENT: Found = { kind: 'absent', stamp: 'absent' }

/** Whether a file contains git attributes. */
export const isAttributes = (path: string): boolean => path === '.gitattributes' || path.endsWith('/.gitattributes')

/**
 * The parts of the person's working tree and its HEAD that some changes touch.
 *
 * First copies the touched files to the scratch repository, so that exactly these contents are compared; converts them
 * there with only the attributes of HEAD.
 */
export class MainState {
  readonly #found: ReadonlyMap<string, Found>
  readonly #start: ReadonlyMap<string, TreeFile>
  readonly #committed: ReadonlyMap<string, Pair>
  readonly #edited: ReadonlyMap<string, Pair>

  private constructor(
    found: ReadonlyMap<string, Found>,
    start: ReadonlyMap<string, TreeFile>,
    committed: ReadonlyMap<string, Pair>,
    edited: ReadonlyMap<string, Pair>,
  ) {
    this.#found = found
    this.#start = start
    this.#committed = committed
    this.#edited = edited
  }

  /**
   * Reads the paths that the changes since `from` touch; creates the indexes `head` and `main` in the scratch
   * repository.
   */
  static async read(
    scratch: ScratchRepo,
    main: string,
    head: string | undefined,
    from: string,
    changes: readonly TreeChange[],
  ): Promise<MainState> {
    const touched = [
      ...new Set(changes.flatMap(({ path, from: source }) => (source === undefined ? [path] : [path, source]))),
    ]
    const start = new Map(
      changes.flatMap(({ path, from: source, before }) => (before ? [[source ?? path, before] as const] : [])),
    )
    const base = head ?? emptyTree(from)
    const found = await copyTouched(scratch, main, touched)
    await fillIndexes(scratch, base, found)
    const committed = base === from ? new Map<string, Pair>() : await pairsBetween(scratch, from, { tree: base })
    return new MainState(found, start, committed, await pairsBetween(scratch, base, { index: 'main' }))
  }

  /** The file of HEAD at a path. */
  committed(path: string): TreeFile | undefined {
    const moved = this.#committed.get(path)
    return moved ? moved.after : this.#start.get(path)
  }

  /** The file of the working tree at a path. */
  present(path: string): TreeFile | undefined {
    const edited = this.#edited.get(path)
    return edited ? edited.after : this.committed(path)
  }

  /** The obstacle on the way to a path. */
  obstacle(path: string): Obstacle | undefined {
    return this.#found.get(path)?.obstacle
  }

  /** The kind of entry at a path of the working tree. */
  kind(path: string): Found['kind'] {
    return this.#found.get(path)?.kind ?? 'absent'
  }

  /** The stamp of a path, to detect changes since it was read. */
  stamp(path: string): string {
    return this.#found.get(path)?.stamp ?? 'absent'
  }
}

/** The path of a touched file's copy in the scratch repository. */
export const copyOf = (scratch: ScratchRepo, path: string): string =>
  join(scratch.folder, isAttributes(path) ? 'attributes' : 'tree', path)

const copyTouched = async (
  scratch: ScratchRepo,
  main: string,
  touched: readonly string[],
): Promise<Map<string, Found>> => {
  await scratch.place('tree')
  await scratch.place('attributes')
  const byFolder = Map.groupBy(touched, path => splitPath(path).segments.join('/'))
  const found = new Map<string, Found>()
  for (const [dir, paths] of byFolder) {
    const { folder, obstacle } = await Folder.reach(main, dir === '' ? [] : dir.split('/'))
    for (const path of paths)
      found.set(path, obstacle ? { ...ABSENT, obstacle } : folder ? await copyOne(scratch, folder, path) : ABSENT)
    await folder?.close()
  }
  return found
}

const copyOne = async (scratch: ScratchRepo, folder: Folder, path: string): Promise<Found> => {
  const { name } = splitPath(path)
  const stat = await folder.stat(name).catch(error => {
    if (codeOf(error) === 'ENAMETOOLONG') return undefined
    throw error
  })
  if (!stat) return ABSENT
  const stamp = stampOf(stat)
  const target = copyOf(scratch, path)
  if (stat.isDirectory()) return { kind: 'folder', stamp }
  if (!stat.isFile() && !stat.isSymbolicLink()) return { kind: 'special', stamp }
  // Not read: it would delay every comparison, and files of this size are never committed, so cannot be merged.
  if (stat.isFile() && stat.size > LARGEST_FILE) return { kind: 'special', stamp }
  await mkdir(dirname(target), { recursive: true })
  if (stat.isSymbolicLink()) {
    await symlink(await readlink(folder.at(name)), target)
    return { kind: 'link', stamp }
  }
  const handle = await open(folder.at(name), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    error => {
      if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ELOOP' || codeOf(error) === 'EACCES') return undefined
      throw error
    },
  )
  if (!handle) return { kind: 'special', stamp }
  try {
    await copyFile(process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : folder.at(name), target)
    await chmod(target, stat.mode & 0o100n ? 0o755 : 0o644)
    // A file that changed while it was copied does not match its copy.
    const after = stampOf(await handle.stat({ bigint: true }))
    return { kind: 'file', stamp: after === stamp ? stamp : 'moving' }
  } finally {
    await handle.close()
  }
}

const fillIndexes = async (scratch: ScratchRepo, base: string, found: ReadonlyMap<string, Found>): Promise<void> => {
  await scratch.readTree(base, 'head')
  await copyFile(scratch.index('head'), scratch.index('main'))
  const paths = [...found.keys()]
  const held = paths.filter(path => ['file', 'link'].includes(found.get(path)!.kind))
  const gone = paths.filter(path => !['file', 'link'].includes(found.get(path)!.kind))
  const zero = '0'.repeat(base.length)
  if (gone.length > 0) {
    await scratch.git(['update-index', '-z', '--index-info'], {
      index: 'main',
      input: gone.map(path => `0 ${zero}\t${path}\0`).join(''),
    })
  }
  // Attribute files come last, since those of the working tree must not affect other files.
  const passes = [
    ['tree', held.filter(path => !isAttributes(path))],
    ['attributes', held.filter(isAttributes)],
  ] as const
  for (const [tree, some] of passes) {
    if (some.length === 0) continue
    const input = some.map(path => `${path}\0`).join('')
    await scratch.git(['update-index', '--add', '--replace', '-z', '--stdin'], {
      index: 'main',
      tree: join(scratch.folder, tree),
      input,
    })
  }
}
