import { mkdir, readdir, readlink, realpath } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { accessTo, isWithin, type ReachFolder } from '../../reach.js'
import { packageFolder } from '../programs/package.js'
import { toolchainFolders } from '../programs/toolchain-folders.js'
import { contains } from '../files/paths.js'
import { gitdir } from './gitdir.js'
import { copiesAt, laterFolder, treeIn } from './later-places.js'
import { linkedHistory } from './linked-history.js'
import { mountAround, pinned } from './pins.js'
import { kindOf, real } from './sources.js'
import type { Mount, WallSpec } from './spec.js'
import { settingsCopy } from './settings-copy.js'
import { systemMounts } from './system.js'
import { ignored } from '../../ignored.js'

/** Sockets through which a process could start programs outside the wall. */
const DOORS = [
  '/run/user',
  '/run/dbus',
  '/run/systemd/private',
  '/run/docker.sock',
  '/run/podman',
  '/run/containerd',
  '/run/crio',
  '/run/screen',
  '/run/libvirt',
  '/run/snapd.socket',
  `/tmp/tmux-${process.getuid?.() ?? 0}`,
]

/** The daemon's own program. A workspace inside or around it is mounted over it. */
const PROGRAM = packageFolder(import.meta.dirname)
const PROGRAM_PARTS = ['dist', 'node_modules', 'package.json']

/** The mounts of a wall, in order; later ones cover earlier ones. The root is otherwise empty and read-only. */
export const mountsOf = async (spec: WallSpec): Promise<Mount[]> => {
  const { workspace, data } = spec
  if (contains(workspace, data)) throw new Error('the data folder must lie outside the workspace')
  const machine = [...(await ofMachine(spec)), ...(await ofHome(spec))]
  if (spec.later) return pinned([...machine, ...(await ofLater(spec)), ['seal', '', '/']])
  const writable = await ofTree(spec)
  const tree = spec.sealed ? writable.map(readOnly) : writable
  const hidden = await hiddenIn([...machine, ...tree], closedIn(spec))
  return pinned([
    ...machine,
    ...tree,
    ...hidden,
    ...(spec.only ? [['seal', '', workspace] as const] : []),
    ['seal', '', '/'],
  ])
}

/** Closed paths inside the workspace. */
const closedIn = ({ workspace, hide = [] }: WallSpec): string[] =>
  [...DOORS, ...hide].filter(path => contains(workspace, path))

/** The folder of private copies that are mounted while a program runs, and what else such a program sees. */
const ofLater = async ({ data, shown: folders = [], readOnly: paths = [] }: WallSpec): Promise<Mount[]> => {
  const mounts: Mount[] = [['show', await laterFolder(data), copiesAt(data), 'private copies']]
  for (const { from, to } of folders) mounts.push(['show', await real(from), to])
  for (const path of paths) mounts.push(...(await shown('show', path, 'needed by the program')))
  return mounts
}

/**
 * The mounts of a private copy below a folder: the copy is `tree` there, its git dirs are in `git`. Undefined: a mount
 * of it would lie elsewhere.
 */
export const copyMounts = async (spec: WallSpec, at: string): Promise<Mount[] | undefined> => {
  const tree = await ofTree({ ...spec, gitdirsAt: join(at, 'git') })
  const mounts = await pinned([...tree, ...(await hiddenIn(tree, closedIn(spec)))])
  const placed = mounts.flatMap((mount): Mount[] =>
    contains(at, mount[2]) ? [mount] : movedTo(mount, spec.workspace, treeIn(at)),
  )
  return placed.length === mounts.length ? placed : undefined
}

/** The same mount in another folder; none if it does not lie in `from`. */
const movedTo = ([operation, source, to, why]: Mount, from: string, folder: string): Mount[] => {
  if (!contains(from, to)) return []
  const place = join(folder, relative(from, to))
  return [why === undefined ? [operation, source, place] : [operation, source, place, why]]
}

const readOnly = ([operation, from, to, why]: Mount): Mount => {
  const kept = operation === 'bind' ? 'show' : operation
  return why === undefined ? [kept, from, to] : [kept, from, to, why]
}

/** The system, `/tmp`, toolchains, the daemon's program, the deployment's grants, and network disks. */
const ofMachine = async ({ home, grants, disks, hide = [], data, sealed }: WallSpec): Promise<Mount[]> => {
  // Before everything that may lie below it on this machine.
  const temporary: Mount = home
    ? ['bind', await real(home.tmp), '/tmp', 'temporary files']
    : ['empty', '', '/tmp', 'temporary files']
  const mounts: Mount[] = [
    ...systemMounts(await settingsCopy(data, [...(grants?.read ?? []), ...(grants?.write ?? [])])),
    temporary,
    ...toolchainFolders().map((at): Mount => ['show', at, at, 'toolchain']),
  ]
  for (const path of [...PROGRAM_PARTS.map(part => join(PROGRAM, part)), process.execPath]) {
    const at = await realpath(path).catch(() => path)
    if (mountAround(mounts, at)?.[0] !== 'show') mounts.push(...(await shown('show', at, 'the sandbox itself')))
  }
  const closed = [...DOORS, ...hide, data]
  for (const path of grants?.read ?? []) mounts.push(...(await shownWithout(path, closed, 'wall.read')))
  for (const path of grants?.write ?? []) mounts.push(...(await shown('bind', path, 'wall.write')))
  const { read = [], write = [] } = (await disks?.()) ?? {}
  for (const path of read) mounts.push(['show', path, path, 'network disk'])
  for (const path of write) mounts.push([sealed ? 'show' : 'bind', path, path, 'network disk'])
  return [...mounts, ...(await hiddenIn(mounts, closed))]
}

/** Mounts a path at the same place, if it exists. */
const shown = async (operation: 'show' | 'bind', path: string, why: string): Promise<Mount[]> =>
  (await kindOf(path)) ? [[operation, path, path, why]] : []

/**
 * Shows a folder without some paths in it: an empty folder with all that is beside them.
 *
 * A mount that covers such a path would be gone once somebody moves it or puts another in its place.
 */
const shownWithout = async (path: string, closed: readonly string[], why: string): Promise<Mount[]> => {
  const inside = closed.filter(each => contains(path, each))
  if (inside.includes(path)) return []
  const isThere = await Promise.all(inside.map(kindOf))
  if (!isThere.some(Boolean) || (await kindOf(path)) !== 'folder') return shown('show', path, why)
  const mounts: Mount[] = [['empty', '', path, why]]
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const at = join(path, entry.name)
    if (!entry.isSymbolicLink()) mounts.push(...(await shownWithout(at, inside, why)))
    else mounts.push(['link', await readlink(at), at, why])
  }
  return [...mounts, ['seal', '', path]]
}

const ofHome = async ({ home, exposed = [] }: WallSpec): Promise<Mount[]> => {
  const mounts: Mount[] = []
  if (home) {
    mounts.push(
      ['bind', await real(home.caches), home.caches, 'caches'],
      ['bind', await real(home.dir), home.dir, 'home folder'],
    )
    mounts.push(['show', await real(home.gitconfig), home.gitconfig, 'name and e-mail for git'])
  }
  for (const path of exposed) mounts.push(['bind', await real(path), path, 'kept by the sandbox'])
  return mounts
}

/** The workspace, or the private copy in its place. */
const ofTree = async (spec: WallSpec): Promise<Mount[]> => {
  const { workspace, copy } = spec
  const mounts: Mount[] = []
  const access = (path: string) =>
    spec.only && contains(workspace, path) ? accessTo(spec.only, relative(workspace, path) || '.') : 'work'
  const workable = (copy?.gitdirs ?? []).filter(({ path }) => access(join(workspace, path)) === 'work')
  if (spec.only) mounts.push(...(await someFolders(spec, spec.only)))
  else if (copy && !holdsAll(copy)) mounts.push(...(await aroundRepositories(spec, '.', 'work')))
  else mounts.push(['bind', await real(copy ? copy.dir : workspace), workspace, copy ? 'private copy' : 'workspace'])
  if (!copy && !spec.only) mounts.push(...(await linkedHistory(spec)))
  for (const [index, each] of workable.entries()) mounts.push(...(await gitdir(spec, copy?.dir ?? '', each, index)))
  if (!spec.only && (!copy || !spec.ownSandbox)) mounts.push(...(await sharedSandbox(spec)))
  if (spec.only) mounts.push(...(await writableIn(spec)))
  for (const { from, to } of spec.shown ?? [])
    if (access(to)) mounts.push(['show', await real(from), to, 'dependencies'])
  for (const path of (spec.readOnly ?? []).filter(access)) {
    const source = copy && contains(workspace, path) ? join(copy.dir, relative(workspace, path)) : path
    if (await kindOf(source)) mounts.push(['show', await real(source), path])
  }
  const { alsoAt } = copy ?? {}
  return alsoAt === undefined ? mounts : [...mounts, ...mounts.flatMap(mount => movedTo(mount, workspace, alsoAt))]
}

type Copied = Pick<WallSpec, 'workspace' | 'copy'>

const AROUND = 'outside every repository'

/**
 * Whether a private copy replaces the whole workspace: the workspace itself is a repository, or no repository is shown.
 */
export const holdsAll = ({ gitdirs }: NonNullable<WallSpec['copy']>): boolean =>
  gitdirs.length === 0 || gitdirs.some(({ path }) => path === '')

/**
 * A folder around repositories of a private copy: the workspace's folder, read-only, with the copy's repositories
 * mounted inside. Files beside them are read-only because they could not land and would be lost with the copy.
 */
const aroundRepositories = async (
  { workspace, copy }: Copied,
  folder: string,
  access: 'read' | 'work',
): Promise<Mount[]> => {
  const { dir, gitdirs } = copy!
  const at = join(workspace, folder)
  const inside = gitdirs
    .map(({ path }) => path)
    .filter(path => isWithin(folder, path))
    .toSorted((one, other) => one.length - other.length)
  const places = await Promise.all(inside.map(path => kindOf(join(workspace, path))))
  const mounts: Mount[] = []
  // A repository cannot be mounted if the workspace has no such folder; then the workspace's other files are left out.
  if (!places.every(kind => kind === 'folder')) mounts.push(['empty', '', at, AROUND])
  else if (await kindOf(at)) mounts.push(['show', await real(at), at, AROUND])
  for (const path of inside)
    mounts.push([
      access === 'work' ? 'bind' : 'show',
      await real(join(dir, path)),
      join(workspace, path),
      'private copy',
    ])
  return mounts
}

/** Mounts that cover those of the paths that are visible and exist. */
const hiddenIn = async (mounts: readonly Mount[], paths: readonly string[]): Promise<Mount[]> => {
  const found = await Promise.all(
    paths.map(async (path): Promise<Mount[]> => {
      const [operation, from = '', to = ''] = mountAround(mounts, path) ?? []
      if (operation !== 'show' && operation !== 'bind') return []
      const kind = await kindOf(join(from, relative(to, path)))
      return kind ? [[kind === 'folder' ? 'empty' : 'hide', '', path, 'closed']] : []
    }),
  )
  return found.flat()
}

/**
 * Some folders of the workspace in an empty one, outer folders first. Git dirs of other repositories are not mounted.
 */
const someFolders = async ({ workspace, copy }: WallSpec, only: readonly ReachFolder[]): Promise<Mount[]> => {
  const mounts: Mount[] = [['empty', '', workspace, 'workspace']]
  for (const { path, access } of only.toSorted((one, other) => one.path.length - other.path.length)) {
    if (copy && !holdsAll(copy) && !copy.gitdirs.some(repository => isWithin(repository.path, path))) {
      mounts.push(...(await aroundRepositories({ workspace, copy }, path, access)))
      continue
    }
    const from = join(copy ? copy.dir : workspace, path)
    if (await kindOf(from))
      mounts.push([access === 'work' ? 'bind' : 'show', await real(from), join(workspace, path), 'area'])
  }
  return mounts
}

/** The workspace's `.sandbox/`, read-only; created if missing, since a turn could create and fill it. */
const sharedSandbox = async ({ workspace, copy, writable }: WallSpec): Promise<Mount[]> => {
  const sandbox = join(workspace, '.sandbox')
  await mkdir(sandbox, { recursive: true }).catch(ignored('what is there is looked at next'))
  if (copy)
    await mkdir(join(copy.dir, '.sandbox'), { recursive: true }).catch(ignored('what is there is looked at next'))
  const mountable = !copy || (await kindOf(join(copy.dir, '.sandbox'))) === 'folder'
  if (!mountable || (await kindOf(sandbox)) !== 'folder') return []
  return [['show', sandbox, sandbox, 'configuration of the sandbox'], ...(await writableIn({ workspace, writable }))]
}

/** The parts of the workspace's `.sandbox/` that stay writable. */
const writableIn = async ({ workspace, writable = [] }: Pick<WallSpec, 'workspace' | 'writable'>): Promise<Mount[]> => {
  const mounts: Mount[] = []
  for (const path of writable)
    if (contains(join(workspace, '.sandbox'), path) && (await kindOf(path)))
      mounts.push(['bind', await real(path), path])
  return mounts
}
