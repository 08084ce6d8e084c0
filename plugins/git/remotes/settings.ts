import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { RepoGit } from '../repositories/repo-git.js'

/** A remote as the repository's settings have it. */
export interface ConfiguredRemote {
  readonly name: string
  readonly url: string
  readonly pushUrl?: string
}

type Settings = readonly (readonly [key: string, value: string])[]

const MOST_KEPT = 500
/** What git answered, while the file of the settings has the same text. */
const kept = new Map<string, { readonly file: string; readonly settings: Settings }>()

/** The settings of a repository whose names match a pattern. Asks git only if the file changed since it was asked. */
export const gitSettings = async (git: RepoGit, pattern: string): Promise<Settings> => {
  const path = join(git.place.common, 'config')
  const key = `${path}\0${pattern}`
  const file = readPlain(path)
  const known = kept.get(key)
  if (file !== undefined && known?.file === file) return known.settings
  const settings = await askedSettings(git, pattern)
  if (kept.size >= MOST_KEPT) kept.clear()
  // A file that was written meanwhile may have another text than the settings come from.
  if (file !== undefined && readPlain(path) === file) kept.set(key, { file, settings })
  return settings
}

const askedSettings = async (git: RepoGit, pattern: string): Promise<Settings> => {
  const { text } = await git.read(['config', '--local', '--no-includes', '-z', '--get-regexp', pattern], { ok: [0, 1] })
  return text
    .split('\0')
    .filter(Boolean)
    .map(entry => {
      const at = entry.indexOf('\n')
      return at < 0 ? ([entry, ''] as const) : ([entry.slice(0, at), entry.slice(at + 1)] as const)
    })
}

/** The remotes of a repository, `origin` first and then by name. */
export const remotesOf = async (git: RepoGit): Promise<ConfiguredRemote[]> => {
  const found = new Map<string, { url?: string; pushUrl?: string }>()
  for (const [key, value] of await gitSettings(git, '^remote\\..*\\.(url|pushurl)$')) {
    const [, name = '', what = ''] = /^remote\.(.*)\.(url|pushurl)$/s.exec(key) ?? []
    const remote = found.get(name) ?? {}
    if (what === 'url') remote.url ??= value
    else remote.pushUrl ??= value
    found.set(name, remote)
  }
  return [...found]
    .flatMap(([name, { url, pushUrl }]) =>
      url === undefined ? [] : [{ name, url, ...(pushUrl !== undefined && { pushUrl }) }],
    )
    .sort((one, other) => (one.name === 'origin' ? -1 : other.name === 'origin' ? 1 : one.name < other.name ? -1 : 1))
}
