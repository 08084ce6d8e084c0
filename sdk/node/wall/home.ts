import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { codeOf } from '../files/paths.js'
import type { Env } from '../programs/list-env.js'
import { ownEnv, ownProgram, run } from '../programs/run.js'
import { note } from './sources.js'
import { seedHome } from './seed-home.js'
import type { Trust, WallHome } from './spec.js'
import { toolchainEnv } from '../programs/toolchain-folders.js'

/** Names of the home folders in the data folder, and of the shared caches. */
const HOMES = 'homes'
const CACHES = 'caches'
const PEOPLE = 'people'
const WORK = 'work'
const CONVERSATIONS = 'conversations'
const PROGRAMS = 'programs'

/** The cache folders of tools, below the folder of caches. */
const TOOL_CACHES: { readonly [variable: string]: string } = {
  XDG_CACHE_HOME: '.',
  npm_config_cache: 'npm',
  npm_config_store_dir: 'pnpm',
  YARN_CACHE_FOLDER: 'yarn',
  BUN_INSTALL_CACHE_DIR: 'bun',
  DENO_DIR: 'deno',
  CARGO_HOME: 'cargo',
  GOMODCACHE: 'go-modules',
  GRADLE_USER_HOME: 'gradle',
  NUGET_PACKAGES: 'nuget',
  COMPOSER_CACHE_DIR: 'composer',
  PUB_CACHE: 'pub',
}

const folderOf = (data: string, ...names: readonly string[]): string => join(data, HOMES, ...names)

const homeIn = async (data: string, folder: string, caches: string): Promise<WallHome> => {
  const home = { dir: join(folder, 'home'), tmp: join(folder, 'tmp'), caches }
  await Promise.all(Object.values(home).map(path => mkdir(path, { recursive: true, mode: 0o700 })))
  return { ...home, gitconfig: await identityFile(data) }
}

interface ConversationHome {
  readonly alone?: boolean
  readonly trust?: Trust
}

/**
 * The home folder of a conversation with its `/tmp`; creates it if missing. It has one for each trust.
 *
 * Caches are shared by all conversations of a trust, or with `alone` private: shared caches may contain builds of any
 * folder, and a program in a cache runs in the next build.
 */
export const homeOfConversation = async (
  data: string,
  id: string,
  { alone = false, trust = 'lands' }: ConversationHome = {},
): Promise<WallHome> => {
  const whole = conversationHome(data, id)
  const folder = trust === 'lands' ? whole : join(whole, trust)
  const shared = join(data, trust === 'lands' ? CACHES : `${CACHES}-${trust}`)
  const home = await homeIn(data, folder, alone ? join(folder, 'home/.cache') : shared)
  return trust === 'lands' ? home : { ...home, apart: { conversation: id, trust } }
}

/** The home folder of what people type themselves, in their terminals. */
export const homeOfPeople = (data: string): Promise<WallHome> =>
  homeIn(data, folderOf(data, PEOPLE), join(data, CACHES))

/**
 * The home folder of what runs for no conversation and is typed by nobody: installs, tests, apps, guards, measurements.
 * Their code is that of the workspace, and people who may not land start them: a person's shell, and a conversation
 * whose work lands, find nothing that they wrote, in caches neither.
 */
export const homeOfWork = (data: string): Promise<WallHome> =>
  homeIn(data, folderOf(data, WORK), join(data, `${CACHES}-${WORK}`))

/**
 * The home folder of a connected program with its `/tmp` and caches; creates it if missing. It keeps the program's
 * sign-ins, and no other program sees it.
 */
export const homeOfProgram = (data: string, id: string): Promise<WallHome> => {
  const folder = programHome(data, id)
  return homeIn(data, folder, join(folder, 'home/.cache'))
}

/**
 * The home folder of a connected program for one conversation whose work does not land by itself; creates it if
 * missing.
 *
 * It begins with the program's settings and sign-ins as they are, and again when those change: what a program of such a
 * conversation writes there is found by no other.
 */
export const homeOfProgramApart = async (
  data: string,
  id: string,
  { apart, tmp }: Pick<WallHome, 'apart' | 'tmp'>,
): Promise<WallHome> => {
  const { conversation, trust } = apart!
  const place = join(conversationHome(data, conversation), trust, 'programs', id)
  const dir = await seedHome(join(programHome(data, id), 'home'), place)
  const caches = join(dir, '.cache')
  await mkdir(caches, { recursive: true, mode: 0o700 })
  return { dir, tmp, caches, gitconfig: await identityFile(data), apart: apart! }
}

/**
 * The home folder of a connected program that runs for no conversation, where somebody who may not land could have
 * written what runs; creates it if missing. It begins like that of a conversation apart; its caches stay.
 */
export const homeOfProgramAtWork = async (data: string, id: string): Promise<WallHome> => {
  const own = await homeOfProgram(data, id)
  const place = workHomeOf(data, id)
  const home = { tmp: join(place, 'tmp'), caches: join(place, 'caches') }
  await Promise.all(Object.values(home).map(path => mkdir(path, { recursive: true, mode: 0o700 })))
  return { ...home, dir: await seedHome(own.dir, join(place, 'homes')), gitconfig: own.gitconfig }
}

const workHomeOf = (data: string, id: string): string => folderOf(data, WORK, PROGRAMS, id)

/** Removes the home folders of a connected program. */
export const removeProgramHome = async (data: string, id: string): Promise<void> => {
  for (const folder of [programHome(data, id), workHomeOf(data, id)]) await rm(folder, { recursive: true, force: true })
}

/** A connected program has another id: its home folder goes with it. */
export const renameProgramHome = async (data: string, id: string, to: string): Promise<void> => {
  await rm(workHomeOf(data, id), { recursive: true, force: true })
  await rename(programHome(data, id), programHome(data, to)).catch(error => {
    if (codeOf(error) !== 'ENOENT') throw error
  })
}

/** The folder of programs installed into a connected program's home folder. */
export const programsInHome = (data: string, id: string): string => join(programHome(data, id), 'home/.local/bin')

/** The path of a connected program's home folder and `/tmp`, which may not exist. */
export const programHome = (data: string, id: string): string => folderOf(data, PROGRAMS, id)

/** The path of a conversation's home folder and `/tmp`, which may not exist. */
export const conversationHome = (data: string, id: string): string => folderOf(data, CONVERSATIONS, id)

/** Removes the home folders of deleted conversations. */
export const pruneHomes = async (
  data: string,
  isKept: (id: string) => boolean,
  takeAway: (folder: string) => Promise<void>,
): Promise<void> => {
  const names = await readdir(folderOf(data, CONVERSATIONS)).catch(() => [] as string[])
  for (const name of names) if (!isKept(name)) await takeAway(conversationHome(data, name))
}

/** The variables for the home folder, its `/tmp`, the caches, the toolchains and the git identity. */
export const homeEnv = ({ dir, caches, gitconfig }: WallHome, { PATH = '' }: Env): Env => ({
  ...toolchainEnv(),
  ...Object.fromEntries(Object.entries(TOOL_CACHES).map(([variable, folder]) => [variable, join(caches, folder)])),
  HOME: dir,
  TMPDIR: '/tmp',
  GIT_CONFIG_SYSTEM: gitconfig,
  CARGO_INSTALL_ROOT: join(dir, '.local'),
  PATH: [...PATH.split(':').filter(Boolean), join(dir, '.local/bin')].join(':'),
})

interface Identity {
  readonly stamp: string
  readonly name: string
  readonly email: string
  /** Both as a file of git's settings. */
  readonly text: string
}

let identity: Promise<Identity> | undefined

/** The files with a person's git settings (git-config(1), FILES). */
const personal = (): string[] => [
  join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'git/config'),
  join(homedir(), '.gitconfig'),
]

/** A file with only the name and e-mail of the person's git settings. */
const identityFile = async (data: string): Promise<string> => note(data, (await currentIdentity()).text)

/** The name and e-mail in the git settings of the person on this machine; empty where they have none. */
export const personalIdentity = async (): Promise<{ readonly name: string; readonly email: string }> => {
  const { name, email } = await currentIdentity()
  return { name, email }
}

/** As the settings say it now: they are read again when their files changed. */
const currentIdentity = async (): Promise<Identity> => {
  const stamps = await Promise.all(
    personal().map(path =>
      stat(path).then(
        ({ mtimeMs, size }) => `${mtimeMs} ${size}`,
        () => '',
      ),
    ),
  )
  const stamp = stamps.join('\n')
  if ((await identity)?.stamp !== stamp) identity = readIdentity(stamp)
  return (await identity)!
}

const readIdentity = async (stamp: string): Promise<Identity> => {
  const [name, email] = await Promise.all([personalSetting('user.name'), personalSetting('user.email')])
  const lines = Object.entries({ name, email }).flatMap(([key, value]) =>
    value === '' ? [] : [`\t${key} = ${quoted(value)}`],
  )
  return { stamp, name, email, text: lines.length > 0 ? ['[user]', ...lines, ''].join('\n') : '' }
}

const personalSetting = async (key: string): Promise<string> => {
  const program = await ownProgram('git')
  if (!program) return ''
  const { XDG_CONFIG_HOME } = process.env
  const env = await ownEnv({ HOME: homedir(), ...(XDG_CONFIG_HOME && { XDG_CONFIG_HOME }) })
  const { code, stdout } = await run(program, ['config', '--global', '--get', key], {
    cwd: '/',
    env,
    timeoutMs: 10_000,
  })
  return code === 0 ? stdout.toString().replace(/\n$/, '') : ''
}

/** Quotes a value for a git config file (git-config(1), SYNTAX). */
const quoted = (value: string): string =>
  `"${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\t', '\\t')}"`
