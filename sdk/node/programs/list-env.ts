import { homedir } from 'node:os'
import { isInToolchain } from './toolchain-folders.js'
import { declarations, isTemporaryInside, isTurnWritable, realOf } from './turn-writable.js'

/** The complete environment of a program. */
export interface Env {
  readonly [name: string]: string
}

const INHERITED = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'LC_ALL',
  'LC_CTYPE',
  'TERM',
  'COLORTERM',
  'TZ',
  'TMPDIR',
] as const

const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'

interface Judged {
  readonly key: string
  readonly folders: readonly string[]
  /** Those that a turn finds, as PATH. */
  readonly path: string
}

let judged: Judged | undefined

const judgedNow = (): Judged => {
  const { PATH = DEFAULT_PATH } = process.env
  const key = `${declarations()}:${homedir()}:${PATH}`
  if (judged?.key === key) return judged
  const folders = PATH.split(':').filter(isInstalled)
  // By their real paths: behind a wall a link of the machine need not be there, as that of fnm to the Node of a shell.
  const inside = new Set(folders.filter(isKeptInside).map(realOf))
  return (judged = { key, folders, path: [...inside].join(':') })
}

/**
 * The folders of the daemon's PATH without those that turns can write, those that npm adds, which lie in projects, and
 * relative ones.
 */
export const installedFolders = (): readonly string[] => judgedNow().folders

const isInstalled = (folder: string): boolean =>
  folder.startsWith('/')
  && !folder.endsWith('/node_modules/.bin')
  && [folder, realOf(folder)].every(path => !isTurnWritable(path))

/** Whether a folder is the machine's behind a wall too, where a turn could fill one of temporary files. */
const isKeptInside = (folder: string): boolean =>
  [folder, realOf(folder)].every(path => !isTemporaryInside(path) || isInToolchain(path))

/** The environment of a child behind a wall: a fixed list of the daemon's variables, and `extra`. */
export const listEnv = (extra: { readonly [name: string]: string | undefined } = {}): Env => {
  const env: { [name: string]: string } = {}
  for (const name of INHERITED) if (process.env[name] !== undefined) env[name] = process.env[name]
  env.PATH = judgedNow().path
  for (const [name, value] of Object.entries(extra)) {
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}
