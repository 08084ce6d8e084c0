import { constants } from 'node:fs'
import { chmod, copyFile, mkdir, open, readlink, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { outputFields, bytePath } from '../../../sdk/node/byte-names.js'
import { LARGEST_FILE } from '../../../sdk/node/files/large-files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import { emptyTree, type ScratchRepo } from '../work/scratch-repo.js'
import { Folder, splitPath, stampOf, type Obstacle } from './folder.js'
import { pairsBetween, treeEntriesOf, type TreeChange, type TreeFile, type Pair } from '../work/tree-diff.js'

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
  readonly #leftOut: ReadonlySet<string>

  private constructor(
    found: ReadonlyMap<string, Found>,
    start: ReadonlyMap<string, TreeFile>,
    committed: ReadonlyMap<string, Pair>,
    edited: ReadonlyMap<string, Pair>,
    leftOut: ReadonlySet<string>,
  ) {
    this.#leftOut = leftOut
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
    const absent = touched.filter(path => found.get(path)!.kind === 'absent' && !found.get(path)!.obstacle)
    const leftOut = await leftOutOf(scratch, main, absent)
    const isFiltered = await fillIndexes(scratch, base, found, leftOut)
    const committed = base === from ? new Map<string, Pair>() : await pairsBetween(scratch, from, { tree: base })
    const edited = await pairsBetween(scratch, base, { index: 'main' })
    // Without a filter the file of the person is not what git compared.
    if (isFiltered) for (const path of await unchanged(scratch, main, edited)) edited.delete(path)
    return new MainState(found, start, committed, edited, leftOut)
  }

  /** Whether a sparse checkout leaves a path of HEAD out of the working tree. */
  isLeftOut(path: string): boolean {
    return this.#leftOut.has(path)
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
  const place = bytePath(target)
  await mkdir(bytePath(dirname(target)), { recursive: true })
  if (stat.isSymbolicLink()) {
    await symlink(await readlink(folder.at(name), { encoding: 'buffer' }), place)
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
    await copyFile(process.platform === 'linux' ? `/proc/self/fd/${handle.fd}` : folder.at(name), place)
    await chmod(place, stat.mode & 0o100n ? 0o755 : 0o644)
    // A file that changed while it was copied does not match its copy.
    const after = stampOf(await handle.stat({ bigint: true }))
    return { kind: 'file', stamp: after === stamp ? stamp : 'moving' }
  } finally {
    await handle.close()
  }
}

const PERSON = 'person'
/** The most paths that are arguments of one command. */
const MOST_ARGUMENTS = 500

/** Asks git about paths of the person's index and working tree; the answer may name others. */
const askPerson = async (
  scratch: ScratchRepo,
  main: string,
  flags: readonly string[],
  paths: readonly string[],
): Promise<string[]> => {
  // The arguments of a program are text.
  const asked = paths.length <= MOST_ARGUMENTS && paths.every(path => path.isWellFormed())
  const some = asked ? ['--', ...paths] : []
  const settings = ['core.sparseCheckout=true']
  const how = { index: PERSON, tree: main, settings, ok: [0, 128] }
  return outputFields(await scratch.git(['ls-files', '-z', ...flags, ...some], how))
}

/** The paths that a sparse checkout leaves out, of those that are absent. */
const leftOutOf = async (scratch: ScratchRepo, main: string, absent: readonly string[]): Promise<Set<string>> => {
  if (scratch.conversion.sparse === undefined || absent.length === 0) return new Set()
  if (!(await scratch.takePersonIndex(PERSON))) return new Set()
  const answer = await askPerson(scratch, main, ['-t'], absent)
  const skipped = new Set(answer.flatMap(line => (line.startsWith('S ') ? [line.slice(2)] : [])))
  return new Set(absent.filter(path => skipped.has(path)))
}

/**
 * The edited paths that the person's git takes for unchanged since it wrote them: conversions need not give back what
 * was committed.
 */
const unchanged = async (scratch: ScratchRepo, main: string, edited: ReadonlyMap<string, Pair>): Promise<string[]> => {
  const paths = [...edited].flatMap(([path, { before, after }]) => (before && after ? [path] : []))
  if (paths.length === 0 || !(await scratch.takePersonIndex(PERSON))) return []
  const modified = new Set(await askPerson(scratch, main, ['-m'], paths))
  const alike = paths.filter(path => !modified.has(path))
  if (alike.length === 0) return []
  // Git compares none of these: people mark files so that they edit for themselves (git-update-index(1)).
  const assumed = new Set(
    (await askPerson(scratch, main, ['-v'], alike)).flatMap(line => (/^[a-zS] /.test(line) ? [line.slice(2)] : [])),
  )
  const same = alike.filter(path => !assumed.has(path))
  const entries = await treeEntriesOf(scratch, PERSON, new Set(same))
  return same.filter(path => {
    const [entry, before] = [entries.get(path), edited.get(path)!.before!]
    return entry?.id === before.id && entry.mode === before.mode
  })
}

/** Returns whether every filter of the files could run. */
const fillIndexes = async (
  scratch: ScratchRepo,
  base: string,
  found: ReadonlyMap<string, Found>,
  leftOut: ReadonlySet<string>,
): Promise<boolean> => {
  await scratch.readTree(base, 'head')
  await copyFile(scratch.index('head'), scratch.index('main'))
  const paths = [...found.keys()]
  const held = paths.filter(path => ['file', 'link'].includes(found.get(path)!.kind))
  const gone = paths.filter(path => !['file', 'link'].includes(found.get(path)!.kind) && !leftOut.has(path))
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
  let isFiltered = true
  for (const [tree, some] of passes) {
    const how = { index: 'main', tree: join(scratch.folder, tree) }
    const allRan = await scratch.convert(['update-index', '--add', '--replace', '-z', '--stdin'], some, how)
    isFiltered = isFiltered && allRan
  }
  return isFiltered
}
