import { homedir } from 'node:os'
import { join } from 'node:path'
import { readPlain } from '../files/files.js'
import { GitFailure } from '../programs/git.js'
import { needProgram, ownEnv, run } from '../programs/run.js'
import type { MainRepository } from './main-repository.js'
import { stateStamp } from './state-stamp.js'

/** How a person's git converts the files of a checkout between the working tree and the repository. */
export interface Conversion {
  /** Settings of line ends, modes and sparse checkouts, by name; none of them names a program. */
  readonly forms: ReadonlyMap<string, string>
  /** The settings of filters, by name: each may name a program, which runs behind a wall alone. */
  readonly filters: ReadonlyMap<string, string>
  /** The attributes that the machine and the person give to the files of all repositories. */
  readonly attributes: string
  /** The file with the names that the person ignores in all repositories, which need not exist. */
  readonly ignores: string
  /** The patterns of a sparse checkout. */
  readonly sparse?: string
}

/** Large files that are not on this machine stay pointers (git-lfs-config(5)). */
export const KEEP_POINTERS = { GIT_LFS_SKIP_DOWNLOAD_ERRORS: '1' }

/** The git dirs of a checkout. */
export type CheckoutDirs = Pick<MainRepository, 'gitdir' | 'common'>

const FORM =
  /^core\.(?:autocrlf|eol|filemode|symlinks|checkroundtripencoding|sparsecheckout|sparsecheckoutcone)$|^index\.sparse$/
const FILTER = /^filter\..+\.(?:clean|smudge|process|required)$/s
const TIMEOUT_MS = 10_000
const MOST_KNOWN = 100
const SYSTEM = '/etc'

/** The scopes of settings that no turn can write. */
const PERSON = new Set(['system', 'global'])

interface Setting {
  readonly scope: string
  readonly name: string
  readonly value: string
}

interface Known {
  readonly stamps: string
  readonly conversion: Conversion
}

const known = new Map<string, Known>()

const personFolders = (): { home: string; config: string } => {
  const home = process.env.HOME ?? homedir()
  return { home, config: process.env.XDG_CONFIG_HOME || join(home, '.config') }
}

/** The files that hold git's settings, without those that they include. */
const settingFiles = ({ gitdir, common }: CheckoutDirs): string[] => {
  const { home, config } = personFolders()
  return [
    join(SYSTEM, 'gitconfig'),
    join(config, 'git/config'),
    join(home, '.gitconfig'),
    join(common, 'config'),
    join(gitdir, 'config.worktree'),
  ]
}

/** The state of files; undefined: they may change and look the same, or include other files. */
const stampsOf = (settings: readonly string[], others: readonly string[]): string | undefined => {
  const stamps = [...settings, ...others].map(stateStamp)
  if (stamps.some(stamp => stamp?.racy)) return undefined
  if (settings.some((path, at) => stamps[at] && /\binclude/i.test(readPlain(path) ?? 'include'))) return undefined
  return JSON.stringify(stamps.map(stamp => stamp?.stamp ?? ''))
}

/**
 * Reads the settings as the person's own git has them, those of the machine and the person included.
 *
 * Git only prints them, so no program starts; only the listed settings are used, since a turn in the shared tree can
 * write the repository's.
 */
const settingsOf = async ({ gitdir, common }: CheckoutDirs): Promise<Setting[]> => {
  const { home, config } = personFolders()
  const env = await ownEnv({
    HOME: home,
    XDG_CONFIG_HOME: config,
    GIT_DIR: gitdir,
    ...(common !== gitdir && { GIT_COMMON_DIR: common }),
    LC_ALL: 'C.UTF-8',
  })
  const args = ['config', '--list', '-z', '--show-scope']
  const { code, stdout } = await run(await needProgram('git'), args, { cwd: gitdir, env, timeoutMs: TIMEOUT_MS })
  if (code !== 0) return []
  const fields = stdout.toString().split('\0')
  return Array.from({ length: Math.floor(fields.length / 2) }, (_, at) => {
    const entry = fields[2 * at + 1]!
    const end = entry.indexOf('\n')
    // A name without a value is true (git-config(1)).
    const [name, value] = end < 0 ? [entry, 'true'] : [entry.slice(0, end), entry.slice(end + 1)]
    return { scope: fields[2 * at]!, name, value }
  })
}

/** Whether a value of git's settings is true (git-config(1)). */
export const isOn = (value: string | undefined): boolean => /^(?:true|yes|on|[1-9]\d*)$/i.test(value ?? '')

const expanded = (path: string): string => (path.startsWith('~/') ? join(personFolders().home, path.slice(2)) : path)

/** The conversion of a checkout's files, as the person's git does it now. */
export const conversionOf = async (dirs: CheckoutDirs): Promise<Conversion> => {
  const files = settingFiles(dirs)
  const { config } = personFolders()
  const patterns = join(dirs.gitdir, 'info/sparse-checkout')
  const shared = [join(SYSTEM, 'gitattributes'), join(config, 'git/attributes')]
  const stamps = stampsOf(files, [patterns, ...shared])
  const key = `${dirs.gitdir}\0${personFolders().home}`
  const before = known.get(key)
  if (before && before.stamps === stamps) return before.conversion
  const settings = await settingsOf(dirs)
  const all = new Map(settings.map(({ name, value }) => [name, value]))
  // A repository's could name any file, whose text a turn would then read.
  const own = settings.findLast(({ scope, name }) => PERSON.has(scope) && name === 'core.attributesfile')?.value
  const ignores = settings.findLast(({ scope, name }) => PERSON.has(scope) && name === 'core.excludesfile')?.value
  const forms = new Map([...all].filter(([name]) => FORM.test(name)))
  const sparse = isOn(forms.get('core.sparsecheckout')) ? readPlain(patterns) : undefined
  if (sparse === undefined) for (const name of ['core.sparsecheckout', 'index.sparse']) forms.delete(name)
  const conversion: Conversion = {
    forms,
    filters: new Map([...all].filter(([name]) => FILTER.test(name))),
    attributes: [shared[0]!, own === undefined ? shared[1]! : expanded(own)]
      .map(path => readPlain(path) ?? '')
      .filter(text => text !== '')
      .join('\n'),
    ignores: ignores === undefined ? join(config, 'git/ignore') : expanded(ignores),
    ...(sparse !== undefined && { sparse }),
  }
  if (stamps !== undefined && own === undefined) {
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(key, { stamps, conversion })
  }
  return conversion
}

/** The name of a filter in the name of one of its settings. */
export const filterIn = (setting: string): string => setting.slice('filter.'.length, setting.lastIndexOf('.'))

const FAILED = /^fatal: (.*): (?:clean|smudge) filter '?(.+?)'? failed$/m

/** The filter that ended git, because it is required and failed, and the path that it failed at. */
export const failedFilter = (error: unknown): { readonly path: string; readonly filter: string } | undefined => {
  const [, path, filter] = (error instanceof GitFailure && FAILED.exec(error.stderr)) || []
  return path === undefined || filter === undefined ? undefined : { path, filter }
}

/** What a shell and git say of a program that is not there. */
const MISSING = /: (?:command )?not found$|is not a git command|cannot run .*: No such file or directory$/m

/** Whether a filter failed because its program is not there. */
export const isMissingProgram = ({ stderr }: Pick<GitFailure, 'stderr'>): boolean => MISSING.test(stderr)

/** Settings that switch a filter off: its files then have the form of the repository. */
export const withoutFilter = (filter: string): [name: string, value: string][] =>
  ['clean', 'smudge', 'process', 'required'].map(part => [
    `filter.${filter}.${part}`,
    part === 'required' ? 'false' : '',
  ])

/** The arguments of git for some settings. */
export const settingArgs = (settings: Iterable<readonly [name: string, value: string]>): string[] =>
  [...settings].flatMap(([name, value]) => ['-c', `${name}=${value}`])
