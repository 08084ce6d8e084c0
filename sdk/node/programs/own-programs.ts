import type { Stats } from 'node:fs'
import { access, constants, lstat, readFile, readlink, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { refuse } from '../../refusal.js'
import type { Env } from './list-env.js'
import { contains } from '../files/paths.js'
import { declarations, isTurnWritable, realOf } from './turn-writable.js'

/** Debian packages whose name differs from the program's. */
const PACKAGES: { readonly [program: string]: string } = {
  bwrap: 'bubblewrap',
  unshare: 'util-linux',
  setpriv: 'util-linux',
  prlimit: 'util-linux',
  nsenter: 'util-linux',
  ip: 'iproute2',
  rg: 'ripgrep',
  xz: 'xz-utils',
  bsdtar: 'libarchive-tools',
  node: 'nodejs',
  sh: 'dash',
  pdftotext: 'poppler-utils',
  'secret-tool': 'libsecret-tools',
  certutil: 'libnss3-tools',
  fusermount3: 'fuse3',
  'mount.cifs': 'cifs-utils',
  'mount.davfs': 'davfs2',
  'mount.nfs': 'nfs-common',
  showmount: 'nfs-common',
  ssh: 'openssh-client',
  'ssh-add': 'openssh-client',
  'ssh-agent': 'openssh-client',
  swanctl: 'strongswan-swanctl',
  umount: 'mount',
  wg: 'wireguard-tools',
  'wg-quick': 'wireguard-tools',
}

/** The Debian package that has a program. */
export const debianPackage = (program: string): string => PACKAGES[program] ?? program

/** System folders of programs; searched before those of PATH. */
const SYSTEM = [
  '/usr/local/bin',
  '/usr/bin',
  '/bin',
  '/usr/sbin',
  '/sbin',
  '/run/current-system/sw/bin',
  '/nix/var/nix/profiles/default/bin',
  '/opt/homebrew/bin',
]

/** Group-writable for its builders, but its sticky bit protects existing entries. */
const NIX_STORE = '/nix/store'
/** The administrators' group on macOS, which may write to Homebrew's folders. */
const ADMIN = 80
const WRITABLE_BY_OTHERS = 0o022
const WRITABLE_BY_ALL = 0o002
/** In such a folder only the owner of an entry can rename or remove it. */
const STICKY = 0o1000
const MOST_LINKS = 40

const TURNS = 'where turns can write'
const OTHERS = 'where others than the superuser can write'

/** The superuser's uid; in a user namespace that does not map it, the overflow uid that system files then show. */
const superuser = (async () => {
  const map = await readFile('/proc/self/uid_map', 'utf8').catch(() => '0 ')
  return map.split('\n').some(line => line.trim().startsWith('0 '))
    ? 0
    : Number(await readFile('/proc/sys/kernel/overflowuid', 'utf8'))
})()

/** How strictly a program is checked. */
export interface TrustOptions {
  /** The path was configured by a person: it may lie in the home folder and belong to any user. */
  readonly named?: boolean
}

const isOurs = async ({ uid }: Stats): Promise<boolean> => uid === (await superuser) || uid === process.getuid?.()

/** Whether others can add entries to a folder, such as `/tmp`, but change none of ours. */
const isSticky = ({ mode }: Stats): boolean => (mode & WRITABLE_BY_OTHERS) !== 0 && (mode & STICKY) !== 0

/** Whether only the superuser and the daemon's user can change a path. */
const isGuarded = async (path: string, found: Stats, { named }: TrustOptions): Promise<boolean> => {
  const { gid, mode } = found
  if (named) return (mode & WRITABLE_BY_ALL) === 0
  if (!(await isOurs(found))) return false
  if ((mode & WRITABLE_BY_OTHERS) === 0 || path === NIX_STORE) return true
  return process.platform === 'darwin' && gid === ADMIN && (mode & WRITABLE_BY_ALL) === 0
}

const inHome = (path: string): boolean =>
  [homedir(), realOf(homedir())].some(home => home !== '/' && contains(home, path))

/**
 * Why the daemon does not start a program, or any from a folder, as the end of a sentence; undefined if it does.
 *
 * Every folder of the path, through every link, must belong to the superuser or the daemon's user and be writable by no
 * one else, or keep an entry of ours as `/tmp` does; none may lie in the home folder or where turns can write.
 *
 * @throws If the path does not exist.
 */
export const distrust = async (path: string, options: TrustOptions = {}): Promise<string | undefined> => {
  let parts = path.split('/').filter(Boolean)
  let at = '/'
  let among = false
  for (let links = 0; ;) {
    if (isTurnWritable(at) || (!options.named && inHome(at))) return TURNS
    const found = await lstat(at)
    if (among && !(await isOurs(found))) return OTHERS
    among = false
    if (found.isSymbolicLink()) {
      if (++links > MOST_LINKS) return OTHERS
      const target = await readlink(at)
      parts = [...target.split('/').filter(Boolean), ...parts]
      at = target.startsWith('/') ? '/' : dirname(at)
      continue
    }
    const next = parts.shift()
    among = next !== undefined && next !== '..' && isSticky(found) && (await isOurs(found))
    if (!among && !(await isGuarded(at, found, options))) return OTHERS
    if (next === undefined) return undefined
    at = join(at, next)
  }
}

interface Search {
  readonly path: string | undefined
  readonly declared: number
  readonly found: Map<string, Promise<string | undefined>>
  readonly folders: Promise<string[]>
}

let search: Search | undefined

/** The search cache, valid while PATH and the folders that turns can write are unchanged. */
const searchNow = (): Search => {
  const [path, declared] = [process.env.PATH, declarations()]
  if (search?.path !== path || search?.declared !== declared)
    search = { path, declared, found: new Map(), folders: trustedFolders(path ?? '') }
  return search!
}

/** The folders of programs, those of the system first; without those that npm adds, which lie in projects. */
const candidates = (path: string): string[] => [
  ...new Set([
    ...SYSTEM,
    ...path.split(':').filter(folder => folder.startsWith('/') && !folder.endsWith('/node_modules/.bin')),
  ]),
]

const trustedFolders = async (path: string): Promise<string[]> => {
  const each = await Promise.all(
    candidates(path).map(async folder => {
      const wrong = await distrust(folder).catch(() => 'nothing is there')
      return wrong === undefined ? [await realpath(folder)] : []
    }),
  )
  return [...new Set(each.flat())]
}

const isExecutable = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  )

/** Whether a path is a program that the daemon may start. */
export const isOwnProgram = async (path: string, options?: TrustOptions): Promise<boolean> =>
  (await isExecutable(path)) && (await distrust(path, options).catch(() => 'nothing is there')) === undefined

/**
 * The absolute path of a program that the daemon itself runs, from folders that no turn can write, those of the system
 * first. Cached while the daemon runs; undefined if there is none.
 */
export const ownProgram = (name: string): Promise<string | undefined> => {
  const { found, folders } = searchNow()
  const known = found.get(name)
  if (known) return known
  const looked = (async () => {
    for (const folder of await folders) if (await isOwnProgram(`${folder}/${name}`)) return `${folder}/${name}`
    // Not cached: it may be installed later.
    found.delete(name)
    return undefined
  })()
  found.set(name, looked)
  return looked
}

/** As `ownProgram`; refuses a missing program with how to install it. */
export const needProgram = async (name: string): Promise<string> => (await ownProgram(name)) ?? missingProgram(name)

/**
 * Refuses with the program's name and how to install it; names a found program that is not trusted.
 *
 * @param others Other names and possible paths of it.
 */
export const missingProgram = async (program: string, others: readonly string[] = []): Promise<never> => {
  const name = program.split('/').at(-1) ?? program
  const how = `install it (Debian: apt-get install ${debianPackage(name)})`
  const folders = candidates(process.env.PATH ?? '')
  for (const path of [name, ...others].flatMap(each =>
    each.startsWith('/') ? [each] : folders.map(folder => `${folder}/${each}`),
  )) {
    const wrong = (await isExecutable(path)) ? await distrust(path).catch(() => undefined) : undefined
    if (wrong) return refuse('missing-program', `expected the program ${name} and found ${path}, ${wrong}: ${how}`)
  }
  return refuse('missing-program', `expected the program ${name} and found none: ${how}`)
}

const KEPT = ['USER', 'LOGNAME', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TZ'] as const

/**
 * The environment of a program that the daemon starts outside a wall: PATH and SHELL that no turn can write, and no
 * home folder, since a turn could have written its settings.
 */
export const ownEnv = async (extra: Env = {}): Promise<Env> => {
  const kept = Object.fromEntries(
    KEPT.flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]])),
  )
  return { ...kept, PATH: await ownPath(), HOME: '/nonexistent', SHELL: '/bin/sh', ...extra }
}

/** The PATH of programs outside a wall: folders that no turn can write. */
export const ownPath = async (): Promise<string> => (await searchNow().folders).join(':')
