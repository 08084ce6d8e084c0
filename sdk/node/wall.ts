import { createHash } from 'node:crypto'
import { lstat, mkdir, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { accessTo, type ReachFolder } from '../reach.js'
import { refuse } from '../refusal.js'
import { readPlain, writeAtomic } from './files.js'
import { packageFolder } from './package.js'
import { codeOf, contains } from './paths.js'
import { listEnv, ownProgram, run, type Env, type RunOptions, type RunResult } from './run.js'
import { SCRIPT } from './wall-script.js'

/** What this machine can build a wall of. */
export type WallKind = 'bwrap' | 'unshare' | 'none'

/** One repository of a private copy, as the wall needs to know it. */
export interface WallGitdir {
  /** The repository's path from the workspace root; empty for the root. */
  readonly path: string
  /** The real path of the main repository's common git dir. */
  readonly common: string
  /** The name of the copy's entry in `<common>/worktrees`. */
  readonly worktree: string
  /** Such as `agent/c-1`. */
  readonly branch: string
  /** Patterns git ignores in the copy, beside the repository's own and `/.sandbox/`. */
  readonly exclude?: readonly string[]
}

/** What a process behind the wall is to see. Paths are real and absolute. */
export interface WallSpec {
  readonly workspace: string
  /** The daemon's data folder: empty inside. */
  readonly data: string
  /** The working folder, as seen inside. */
  readonly cwd: string
  readonly env: Env
  /** The private copy that takes the workspace's place. */
  readonly copy?: { readonly dir: string; readonly gitdirs: readonly WallGitdir[] }
  /** Only these folders of the workspace are there, and no git dir of a repository that is not wholly workable; left out: all of it. */
  readonly only?: readonly ReachFolder[]
  /** Seen inside, not writable there; what does not exist is left out. */
  readonly readOnly?: readonly string[]
  /** The copy keeps its own `.sandbox/`, writable, not the workspace's: for git, which may have it in its tree. */
  readonly ownSandbox?: boolean
  /** Parts of the workspace's `.sandbox/` that stay writable; what does not exist is left out. */
  readonly writable?: readonly string[]
  /** Folders shown read-only at another place, such as the dependencies of the main checkout. */
  readonly shown?: readonly { readonly from: string; readonly to: string }[]
  /** Git dirs below the data folder that stay where they are. */
  readonly exposed?: readonly string[]
  /** The program is started in a terminal made for it, and is to rule it: it can type nothing where others read. */
  readonly terminal?: boolean
  /** Sockets, files and folders that must not be reached; what does not exist is left out. */
  readonly hide?: readonly string[]
  /** The superuser is an ordinary user inside, who may make namespaces of their own: for a program with a wall of its own. Only bubblewrap can. */
  readonly ordinary?: boolean
}

/** The command to start instead, in this folder with exactly this environment. */
export interface Walled {
  readonly program: string
  readonly args: string[]
  readonly env: Env
  readonly cwd: string
  /** False where this machine has no wall: the program then runs with the rights of the daemon's user. */
  readonly enforced: boolean
}

/** One mount: `empty` folder, `hide` a file, `bind` writable, `show` read-only, `seal` what is mounted already. */
type Mount = readonly [operation: 'empty' | 'hide' | 'bind' | 'show' | 'seal', from: string, to: string]

/** Sockets through which a process of the same user starts programs outside the wall. */
const DOORS = [
  '/run/user', '/run/dbus', '/run/systemd/private', '/run/docker.sock', '/run/podman', '/run/containerd', '/run/crio',
  '/run/screen', '/run/libvirt', '/run/snapd.socket',
]

/** Where programs live that are run outside the wall too: the superuser could replace them without a capability. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc', '/boot', '/opt']

/** The daemon's own program: what is written there runs as the next daemon. A workspace in it, or around it, stays writable. */
const PROGRAM = packageFolder(import.meta.dirname)

/** Variables that change what the programs which build the wall load or do; they are set for the program alone. */
const LOADER = /^(LD_|GLIBC_|GCONV_|LOCPATH$|NLSPATH$|MALLOC_|LIBMOUNT_|BASH|ENV$|SHELLOPTS$|PS4$|IFS$|CDPATH$)/

/** The kernel's own switches: the superuser turns them without a capability, so they are read-only inside. */
const SWITCHES = ['sys', 'sysrq-trigger', 'irq', 'bus', 'acpi', 'fs', 'scsi']
  .flatMap(part => ['--ro-bind-try', `/proc/${part}`, `/proc/${part}`])

const BWRAP = [
  '--bind', '/', '/', '--dev', '/dev', '--proc', '/proc', ...SWITCHES, '--ro-bind', '/sys', '/sys', '--unshare-pid',
  '--unshare-ipc', '--die-with-parent', '--cap-drop', 'ALL',
]

const ORDINARY = ['--unshare-user', '--uid', '1000', '--gid', '1000']

const bwrapMount = ([operation, from, to]: Mount): string[] => {
  switch (operation) {
    case 'empty':
      return ['--tmpfs', to]
    case 'hide':
      return ['--ro-bind', '/dev/null', to]
    case 'bind':
      return ['--bind', from, to]
    case 'show':
      return ['--ro-bind', from, to]
    case 'seal':
      return ['--remount-ro', to]
  }
}

type Builder = (
  mounts: readonly Mount[], cwd: string, env: Env, command: readonly string[], how: Pick<WallSpec, 'ordinary' | 'terminal'>,
) => Omit<Walled, 'enforced'>

/** Secrets ride in the environment, never in an argument: only what would change the wall's own programs is moved. */
const split = (env: Env): { outer: Env; loader: [string, string][] } => {
  const all = Object.entries(env)
  return {
    outer: Object.fromEntries(all.filter(([name]) => !LOADER.test(name))),
    loader: all.filter(([name]) => LOADER.test(name)),
  }
}

const withBwrap = (program: string): Builder => (mounts, cwd, env, command, { ordinary, terminal }) => {
  const { outer, loader } = split(env)
  const args = [
    ...BWRAP, ...(terminal ? [] : ['--new-session']), ...(ordinary && process.getuid?.() === 0 ? ORDINARY : []),
    ...mounts.flatMap(bwrapMount), ...loader.flatMap(([name, value]) => ['--setenv', name, value]),
    '--chdir', cwd, '--', ...command,
  ]
  return { program, args, env: outer, cwd: '/' }
}

const withUnshare = (setpriv: string): Builder => (mounts, cwd, env, command, { terminal }) => {
  const { outer, loader } = split(env)
  const uid = process.getuid?.() ?? 0
  const gid = process.getgid?.() ?? 0
  const set = loader.length > 0 ? ['env', ...loader.map(([name, value]) => `${name}=${value}`)] : []
  const args = [
    '--pdeathsig', 'KILL', '--', 'unshare', ...(uid === 0 ? [] : ['--user', '--map-root-user']),
    '--mount', '--pid', '--ipc', '--fork', '--kill-child=KILL', '--',
    'sh', '-c', SCRIPT, 'wall', uid === 0 ? 'root' : 'user', String(uid), String(gid),
    terminal ? 'exec' : 'setsid', env.PATH ?? '', cwd, ...mounts.flat(), '--', ...set, ...command,
  ]
  // The script's own programs must not come from a folder a caller's PATH names.
  return { program: setpriv, args, env: { ...outer, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, cwd: '/' }
}

/** Whether a wall really starts here, not only whether its program is installed. */
const starts = async (build: Builder): Promise<boolean> => {
  const { program, args, env, cwd } = build([], '/', listEnv(), ['true'], {})
  const result = await run(program, args, { cwd, env, timeoutMs: 10_000 }).catch(() => undefined)
  return result?.code === 0
}

const builders = new Map<WallKind, Promise<Builder | undefined>>()

/** What builds a wall of this kind, or undefined where it does not start; asked once. */
const builder = (kind: WallKind): Promise<Builder | undefined> => {
  const known = builders.get(kind)
  if (known) return known
  const probed = (async () => {
    if (kind === 'none') return undefined
    const program = await ownProgram(kind === 'bwrap' ? 'bwrap' : 'setpriv')
    if (!program) return undefined
    const build = kind === 'bwrap' ? withBwrap(program) : withUnshare(program)
    return (await starts(build)) ? build : undefined
  })()
  builders.set(kind, probed)
  return probed
}

/** The best wall this machine can build. */
export const wallKind = async (): Promise<WallKind> => {
  for (const kind of ['bwrap', 'unshare'] as const) if (await builder(kind)) return kind
  return 'none'
}

/** A source must be what its name says: through a link left in its place a process could choose what it is shown. */
const real = async (path: string): Promise<string> => {
  const found = await realpath(path).catch(() => undefined)
  if (found === path) return path
  const what = found ? 'a link' : 'nothing'
  return refuse('unprocessable', `expected a folder or file at ${path}, found ${what}: put it back and try again`)
}

const kindOf = async (path: string): Promise<'folder' | 'file' | undefined> => {
  const found = await lstat(path).catch(() => undefined)
  if (!found || found.isSymbolicLink()) return undefined
  return found.isDirectory() ? 'folder' : 'file'
}

const hidden = async (path: string): Promise<Mount[]> => {
  const kind = await kindOf(path)
  return kind ? [[kind === 'folder' ? 'empty' : 'hide', '', path]] : []
}

const shownAsIs = async (path: string): Promise<Mount[]> => ((await kindOf(path)) ? [['show', path, path]] : [])

/** Where in the data folder the files lie that are shown inside walls. */
export const NOTES = 'wall'

/** A file of the daemon's own to show inside; same text, same file. */
const note = async (data: string, text: string): Promise<string> => {
  const path = join(data, NOTES, createHash('sha256').update(text).digest('hex').slice(0, 32))
  if ((await kindOf(path)) === 'file') return path
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await writeAtomic(path, text, { mode: 0o444 })
  return path
}

/**
 * A copy's git dir, at a path of its own in the data folder's place.
 *
 * Writable are the objects, the copy's own entry, and the folders its branch and log lie in: git moves a branch by
 * renaming a lock file beside it, so the folder `refs/heads/agent` is writable and with it the branches of other
 * conversations; every tip is therefore compared with the recorded one before it lands.
 */
const gitdir = async (spec: WallSpec, copy: string, repository: WallGitdir, index: number): Promise<Mount[]> => {
  const { path, common, worktree, branch } = repository
  const at = join(spec.data, 'git', String(index))
  const entry = join('worktrees', worktree)
  const branches = join('refs/heads', dirname(branch))
  const log = join('logs', branches)
  // One that is gone is not made up again by what is made below it.
  await real(common)
  for (const part of ['objects', 'info']) if (await kindOf(join(common, part))) await real(join(common, part))
  for (const part of ['objects/info', branches, log]) await mkdir(join(common, part), { recursive: true })
  const part = async (operation: 'bind' | 'show', name: string): Promise<Mount> =>
    [operation, await real(join(common, name)), join(at, name)]
  const own = contains(spec.workspace, common) || contains(spec.data, common) ? [] : await shownAsIs(common)
  await real(join(copy, path))
  const excludes = join(common, 'info/exclude')
  await mkdir(dirname(excludes), { recursive: true })
  // Something to mount over has to be there, and no pipe: building the wall would wait at it for ever.
  const held = await lstat(excludes).catch(() => undefined)
  if (held && !held.isFile() && !held.isSymbolicLink()) await rm(excludes, { recursive: true, force: true })
  await writeFile(excludes, '', { flag: 'wx' }).catch(error => (codeOf(error) === 'EEXIST' ? undefined : Promise.reject(error)))
  const ignored = [readPlain(await real(excludes)) ?? '', '/.sandbox/', ...(repository.exclude ?? []), ''].join('\n')
  return [
    ...own,
    ['show', await real(common), at],
    await part('bind', 'objects'),
    await part('show', 'objects/info'),
    await part('bind', entry),
    await part('show', join(entry, 'commondir')),
    await part('show', join(entry, 'gitdir')),
    await part('bind', branches),
    await part('bind', log),
    ['show', await note(spec.data, ignored), join(at, 'info/exclude')],
    ['show', await note(spec.data, `gitdir: ${join(at, entry)}\n`), join(spec.workspace, path, '.git')],
  ]
}

const mountsOf = async (spec: WallSpec): Promise<Mount[]> => {
  const { workspace, data, copy } = spec
  if (contains(workspace, data)) throw new Error('the data folder must lie outside the workspace')
  const mounts: Mount[] = []
  if (process.getuid?.() === 0) for (const path of SYSTEM) mounts.push(...(await shownAsIs(path)))
  for (const path of [process.execPath, PROGRAM]) mounts.push(...(await shownAsIs(await realpath(path))))
  const doors = [...DOORS, `/tmp/tmux-${process.getuid?.() ?? 0}`, ...(spec.hide ?? [])]
  for (const path of doors) if (!contains(data, path)) mounts.push(...(await hidden(path)))
  mounts.push(['empty', '', data])
  for (const path of spec.exposed ?? []) mounts.push(['bind', await real(path), path])
  const access = (path: string) => (spec.only && contains(workspace, path) ? accessTo(spec.only, relative(workspace, path) || '.') : 'work')
  const gitdirs = copy?.gitdirs ?? []
  const workable = gitdirs.filter(({ path }) => access(join(workspace, path)) === 'work')
  if (spec.only) mounts.push(...(await someFolders(spec, spec.only, gitdirs.filter(each => !workable.includes(each)))))
  else mounts.push(['bind', await real(copy ? copy.dir : workspace), workspace])
  for (const [index, each] of workable.entries()) mounts.push(...(await gitdir(spec, copy?.dir ?? '', each, index)))

  if (!spec.only && (!copy || !spec.ownSandbox)) mounts.push(...(await sharedSandbox(spec)))
  for (const { from, to } of spec.shown ?? []) if (access(to)) mounts.push(['show', await real(from), to])
  for (const path of (spec.readOnly ?? []).filter(access)) {
    const source = copy && contains(workspace, path) ? join(copy.dir, relative(workspace, path)) : path
    if (await kindOf(source)) mounts.push(['show', await real(source), path])
  }
  if (spec.only) mounts.push(['seal', '', workspace])
  mounts.push(['seal', '', data])
  return mounts
}

/** Some folders of the workspace in an empty one, those around others first. A repository that is not one of them keeps its history to itself, wherever that lies. */
const someFolders = async ({ workspace, data, copy }: WallSpec, only: readonly ReachFolder[], closed: readonly WallGitdir[]): Promise<Mount[]> => {
  const mounts: Mount[] = []
  for (const { common } of closed) if (!contains(workspace, common) && !contains(data, common)) mounts.push(...(await hidden(common)))
  mounts.push(['empty', '', workspace])
  for (const { path, access } of only.toSorted((one, other) => one.path.length - other.path.length)) {
    const from = join(copy ? copy.dir : workspace, path)
    if (await kindOf(from)) mounts.push([access === 'work' ? 'bind' : 'show', await real(from), join(workspace, path)])
  }
  return mounts
}

/** The workspace's `.sandbox/`, read-only; made where it is missing, or a turn could make it and fill it. */
const sharedSandbox = async ({ workspace, copy, writable }: WallSpec): Promise<Mount[]> => {
  const sandbox = join(workspace, '.sandbox')
  await mkdir(sandbox, { recursive: true }).catch(() => {})
  if (copy) await mkdir(join(copy.dir, '.sandbox'), { recursive: true }).catch(() => {})
  const mountable = !copy || (await kindOf(join(copy.dir, '.sandbox'))) === 'folder'
  if (!mountable || (await kindOf(sandbox)) !== 'folder') return []
  const mounts: Mount[] = [['show', sandbox, sandbox]]
  for (const path of writable ?? []) {
    if (contains(sandbox, path) && (await kindOf(path))) mounts.push(['bind', await real(path), path])
  }
  return mounts
}

/**
 * The command that runs a program behind the wall of the operating system.
 *
 * Inside, the machine is as the user sees it, but the data folder is empty, other processes and the sockets of services
 * that start programs are absent, `.sandbox/` is read-only, and there are no capabilities. Start it with the answered
 * environment and nothing else. `kind` is for tests.
 */
export const walled = async (
  spec: WallSpec, program: string, args: readonly string[], kind?: WallKind,
): Promise<Walled> => {
  const build = await builder(kind ?? (await wallKind()))
  if (build) return { ...build(await mountsOf(spec), spec.cwd, spec.env, [program, ...args], spec), enforced: true }
  const { copy, cwd, workspace } = spec
  const place = copy && contains(workspace, cwd) ? join(copy.dir, relative(workspace, cwd)) : cwd
  return { program, args: [...args], env: spec.env, cwd: place, enforced: false }
}

/** Runs a program behind the wall to its end. */
export const runWalled = async (
  spec: WallSpec, program: string, args: readonly string[], options: Omit<RunOptions, 'cwd' | 'env'> = {},
  kind?: WallKind,
): Promise<RunResult> => {
  const command = await walled(spec, program, args, kind)
  return run(command.program, command.args, { ...options, cwd: command.cwd, env: command.env, walled: command.enforced })
}
