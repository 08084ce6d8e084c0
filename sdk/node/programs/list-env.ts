import { declarations, isTurnWritable, realOf } from './turn-writable.js'

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

let judged = { key: '', path: '' }

/**
 * The daemon's PATH without folders that turns can write, without those that npm adds, which lie in projects, and
 * without relative ones.
 */
const pathForTurns = (path: string): string => {
  const key = `${declarations()}:${path}`
  if (judged.key !== key) judged = { key, path: path.split(':').filter(isForTurns).join(':') }
  return judged.path
}

const isForTurns = (folder: string): boolean =>
  folder.startsWith('/')
  && !folder.endsWith('/node_modules/.bin')
  && !isTurnWritable(folder)
  && !isTurnWritable(realOf(folder))

/** The environment of a child behind a wall: a fixed list of the daemon's variables, and `extra`. */
export const listEnv = (extra: { readonly [name: string]: string | undefined } = {}): Env => {
  const env: { [name: string]: string } = { PATH: '/usr/local/bin:/usr/bin:/bin' }
  for (const name of INHERITED) if (process.env[name] !== undefined) env[name] = process.env[name]
  env.PATH = pathForTurns(env.PATH!)
  for (const [name, value] of Object.entries(extra)) {
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}
