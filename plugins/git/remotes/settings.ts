import type { RepoGit } from '../repositories/repo-git.js'

/** A remote as the repository's settings have it. */
export interface ConfiguredRemote {
  readonly name: string
  readonly url: string
  readonly pushUrl?: string
}

/** The settings of a repository whose names begin with a prefix; the last value of a name wins. */
export const gitSettings = async (git: RepoGit, pattern: string): Promise<[key: string, value: string][]> => {
  const { text } = await git.read(['config', '--local', '--no-includes', '-z', '--get-regexp', pattern], { ok: [0, 1] })
  return text
    .split('\0')
    .filter(Boolean)
    .map(entry => {
      const at = entry.indexOf('\n')
      return at < 0 ? [entry, ''] : [entry.slice(0, at), entry.slice(at + 1)]
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
