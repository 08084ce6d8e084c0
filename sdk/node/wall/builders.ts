import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { ownPath } from '../programs/own-programs.js'
import { contains } from '../files/paths.js'
import { writtenPath } from '../limits/processes.js'
import { needProgram, ownEnv, ownProgram, run, type Env } from '../programs/run.js'
import { declareNoWall } from '../programs/turn-writable.js'
import { libraryFolders, NODE, nodeMounts } from './node-mounts.js'
import type { Mount, Walled, WallKind, WallSpec } from './spec.js'
import { systemMounts } from './system.js'
import { SCRIPT } from './unshare-script.js'

/** Variables that affect the programs that build the wall; set only for the program inside. */
const LOADER = /^(LD_|GLIBC_|GCONV_|LOCPATH$|NLSPATH$|MALLOC_|LIBMOUNT_|PATH$|BASH|ENV$|SHELLOPTS$|PS4$|IFS$|CDPATH$)/

/** Kernel settings that the superuser can change without a capability; read-only inside. */
const SWITCHES = ['sys', 'sysrq-trigger', 'irq', 'bus', 'acpi', 'fs', 'scsi'].flatMap(part => [
  '--ro-bind-try',
  `/proc/${part}`,
  `/proc/${part}`,
])

const BWRAP = [
  '--dev',
  '/dev',
  '--proc',
  '/proc',
  ...SWITCHES,
  '--unshare-pid',
  '--unshare-ipc',
  '--die-with-parent',
  '--cap-drop',
  'ALL',
]

const MACHINE = ['--ro-bind', '/sys', '/sys']

/** No network but an empty loopback, and nothing that tells about the machine. */
const TIGHT = [
  '--unshare-net',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--hostname',
  'extension',
  '--unsetenv',
  'PATH',
]

const ORDINARY = ['--unshare-user', '--uid', '1000', '--gid', '1000']

/** The owner of a network namespace is mapped to the superuser; maps it back to the daemon's user inside. */
const asOneself = (): string[] => [
  '--unshare-user',
  '--uid',
  String(process.getuid?.() ?? 0),
  '--gid',
  String(process.getgid?.() ?? 0),
]

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
    case 'link':
      return ['--symlink', from, to]
  }
}

/**
 * Makes the command that builds a wall of these mounts around a command. Its arguments contain the mark, as the name of
 * a variable to unset.
 */
export type Builder = (
  mounts: readonly Mount[],
  cwd: string,
  env: Env,
  command: readonly string[],
  how: Pick<WallSpec, 'ordinary' | 'terminal' | 'offline'> & {
    readonly mark: string
    readonly inUserNamespace?: boolean
    /** Without a network, without programs of the system, and without what the system tells about the machine. */
    readonly tight?: boolean
  },
) => Omit<Walled, 'enforced'>

/**
 * Keeps variables in the environment, since arguments are visible to others; only those that affect the wall's own
 * programs become arguments.
 */
const split = (env: Env): { outer: Env; loader: [string, string][] } => {
  const all = Object.entries(env)
  return {
    outer: Object.fromEntries(all.filter(([name]) => !LOADER.test(name))),
    loader: all.filter(([name]) => LOADER.test(name)),
  }
}

const withBwrap =
  (program: string, path: string): Builder =>
  (mounts, cwd, env, command, { ordinary, terminal, offline, mark, inUserNamespace = false, tight = false }) => {
    const { outer, loader } = split(env)
    const args = [
      ...BWRAP,
      ...(tight ? TIGHT : MACHINE),
      ...(terminal ? [] : ['--new-session']),
      ...(offline ? ['--unshare-net'] : []),
      ...(ordinary && process.getuid?.() === 0 ? ORDINARY : []),
      ...(inUserNamespace ? asOneself() : []),
      ...mounts.flatMap(bwrapMount),
      ...loader.flatMap(([name, value]) => ['--setenv', name, value]),
      '--unsetenv',
      mark,
      '--chdir',
      cwd,
      '--',
      ...command,
    ]
    return { program, args, env: { ...outer, PATH: path }, cwd: '/' }
  }

/** The mount points that a process sees (proc_pid_mountinfo(5)). */
export const mountPointsOf = (pid: number | 'self'): string[] =>
  readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
    .split('\n')
    .flatMap(line => line.split(' ').slice(4, 5).map(writtenPath))

/** Makes mounts below a shown folder read-only too: bubblewrap does that itself, `mount` does not. */
const withMountsBelow =
  (points: readonly string[]) =>
  (mount: Mount): Mount[] => {
    const [operation, from, to] = mount
    if (operation !== 'show') return [mount]
    const below = points.filter(point => point !== from && contains(from, point))
    return [mount, ...below.map((point): Mount => ['seal', '', join(to, relative(from, point))])]
  }

/** The folders that mounts need in an empty root, relative to it; created by one program. */
const foldersFor = (mounts: readonly Mount[]): string[] => [
  ...new Set(
    mounts.flatMap(([operation, from, to]) => {
      if (operation === 'seal') return []
      const isFolder =
        operation === 'empty' || (operation !== 'link' && operation !== 'hide' && statSync(from).isDirectory())
      return `.${isFolder ? to : dirname(to)}`
    }),
  ),
]

/** Arguments of the script. */
const steps = (mounts: readonly Mount[]): string[] => {
  let waiting: string[] = []
  return mounts.flatMap(([operation, from, to]) => {
    const liesIn = operation !== 'hide' && waiting.some(path => contains(path, to))
    if (liesIn || operation === 'seal') waiting = []
    waiting.push(to)
    return [...(liesIn ? ['made', '', ''] : []), operation, from, to]
  })
}

const unsetting = (name: string): string[] => ['-u', name]

/** The folder of the system's programs, and from there those of their libraries. */
const lastPrograms = (env: string): string => {
  const folder = realpathSync(dirname(env))
  return [folder, ...libraryFolders().map(path => relative(folder, path))].join(':')
}

const withUnshare =
  (setpriv: string, path: string, unset: string): Builder =>
  (mounts, cwd, env, command, { terminal, offline, mark, tight = false }) => {
    const { outer, loader } = split(env)
    const uid = process.getuid?.() ?? 0
    const gid = process.getgid?.() ?? 0
    // The variables of the last programs are not those of the program inside.
    const begin = tight ? ['./env', '-C', cwd, ...['PATH', 'LD_LIBRARY_PATH', 'OLDPWD'].flatMap(unsetting)] : [unset]
    // The script sets PATH itself; until then it needs the system's programs.
    const given = loader.flatMap(([name, value]) => (name === 'PATH' && !tight ? [] : [`${name}=${value}`]))
    const set = [...begin, ...unsetting(mark), ...(tight ? [`PWD=${cwd}`] : []), ...given]
    const folders = foldersFor(mounts)
    const args = [
      '--pdeathsig',
      'KILL',
      '--',
      'unshare',
      ...(uid === 0 ? [] : ['--user', '--map-root-user']),
      '--mount',
      '--pid',
      '--ipc',
      ...(offline || tight ? ['--net'] : []),
      ...(tight ? ['--uts', '--cgroup'] : []),
      '--fork',
      '--kill-child=KILL',
      '--',
      'sh',
      '-c',
      SCRIPT,
      'wall',
      uid === 0 ? 'root' : 'user',
      String(uid),
      String(gid),
      tight ? 'tight' : terminal ? 'exec' : 'setsid',
      tight ? lastPrograms(unset) : (env.PATH ?? ''),
      cwd,
      String(folders.length),
      ...folders,
      ...steps(mounts.flatMap(withMountsBelow(mountPointsOf('self')))),
      '--',
      ...set,
      ...command,
    ]
    return { program: setpriv, args, env: { ...outer, PATH: path }, cwd: '/' }
  }

/** The mark of a test wall, which has no data folder. */
const PROBE = 'SANDBOX_WALL'

/** Whether a wall starts on this machine; being installed is not enough. */
const starts = async (build: Builder): Promise<boolean> => {
  const { program, args, env, cwd } = build(systemMounts(), '/', await ownEnv(), [await needProgram('true')], {
    mark: PROBE,
  })
  const result = await run(program, args, { cwd, env, timeoutMs: 10_000 }).catch(() => undefined)
  return result?.code === 0
}

const builders = new Map<WallKind, Promise<Builder | undefined>>()

/** The builder of this kind of wall; undefined if it does not start here. Cached. */
export const builder = (kind: WallKind): Promise<Builder | undefined> => {
  const known = builders.get(kind)
  if (known) return known
  const probed = (async () => {
    if (kind === 'none') return undefined
    const program = await ownProgram(kind === 'bwrap' ? 'bwrap' : 'setpriv')
    if (!program) return undefined
    const path = await ownPath()
    const build = kind === 'bwrap' ? withBwrap(program, path) : withUnshare(program, path, await needProgram('env'))
    return (await starts(build)) ? build : undefined
  })()
  builders.set(kind, probed)
  return probed
}

let tight: Promise<boolean> | undefined

/**
 * The builder of a tight wall of this kind: with `unshare` only if Node starts behind one, which needs the last
 * programs in one folder and libraries that they find. Cached.
 */
export const tightBuilder = async (kind: WallKind): Promise<Builder | undefined> => {
  const build = await builder(kind)
  if (kind !== 'unshare' || !build) return build
  tight ??= (async () => {
    const mounts: Mount[] = [...nodeMounts(), ['seal', '', '/']]
    const { program, args, env, cwd } = build(mounts, '/', {}, [NODE, '-e', ''], { mark: PROBE, tight: true })
    const result = await run(program, args, { cwd, env, timeoutMs: 10_000 }).catch(() => undefined)
    return result?.code === 0
  })()
  return (await tight) ? build : undefined
}

/** The best wall this machine can build. */
export const wallKind = async (): Promise<WallKind> => {
  for (const kind of ['bwrap', 'unshare'] as const) if (await builder(kind)) return kind
  declareNoWall()
  return 'none'
}
