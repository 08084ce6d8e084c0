/** Variables by name, complete: a program sees these and no others. */
export interface Env {
  readonly [name: string]: string
}

const INHERITED = [
  'PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'LANG', 'LANGUAGE', 'LC_ALL', 'LC_CTYPE', 'TERM', 'COLORTERM', 'TZ',
  'TMPDIR',
] as const

/** The folders of a PATH a daemon may trust: not those npm adds, which lie in projects, nor relative ones. */
export const trusted = (path: string): string[] =>
  path.split(':').filter(folder => folder.startsWith('/') && !folder.endsWith('/node_modules/.bin'))

/** The environment of a child: a fixed list of the daemon's own variables and what is added, nothing else. */
export const listEnv = (extra: { readonly [name: string]: string | undefined } = {}): Env => {
  const env: { [name: string]: string } = { PATH: '/usr/local/bin:/usr/bin:/bin' }
  for (const name of INHERITED) if (process.env[name] !== undefined) env[name] = process.env[name]
  env.PATH = trusted(env.PATH!).join(':')
  for (const [name, value] of Object.entries(extra)) {
    if (value === undefined) delete env[name]
    else env[name] = value
  }
  return env
}
