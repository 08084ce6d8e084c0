import { currentBranch } from '../branches/current-branch.js'
import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import { readPlain } from '../../../sdk/node/files/files.js'
import type { GitRemoteState } from '../records.js'
import type { RepoGit } from '../repositories/repo-git.js'
import { projectOf, withoutCredentials } from './address.js'
import type { GitRemote } from './contract.js'
import { remoteStateOf } from './remote-state.js'
import { remotesOf } from './settings.js'

const bare = (address: string): string =>
  withoutCredentials(address)
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')

/** The time of a remote's last fetch, if FETCH_HEAD shows it. */
const fetchedAt = ({ place: { gitdir } }: RepoGit, url: string): number | undefined => {
  const note = join(gitdir, 'FETCH_HEAD')
  const lines = (readPlain(note) ?? '').split('\n')
  const named = lines.some(line => bare(line.split(' of ').at(-1) ?? '') === bare(url))
  const stat = named ? lstatSync(note, { throwIfNoEntry: false }) : undefined
  return stat && Math.round(stat.mtimeMs)
}

/** The configured remotes, for the answer of a call. */
export const remoteList = async (git: RepoGit): Promise<GitRemote[]> => {
  const [remotes, { text }] = await Promise.all([
    remotesOf(git),
    git.read(['for-each-ref', '--format=%(refname)', 'refs/remotes']),
  ])
  const refs = text.split('\n').filter(ref => ref !== '' && !ref.endsWith('/HEAD'))
  return remotes.map(({ name, url, pushUrl }) => {
    const at = fetchedAt(git, url)
    return {
      name,
      url: withoutCredentials(url),
      ...(pushUrl !== undefined && { pushUrl: withoutCredentials(pushUrl) }),
      ...projectOf(url),
      branches: refs.filter(ref => ref.startsWith(`refs/remotes/${name}/`)).length,
      ...(at !== undefined && { fetchedAt: at }),
    }
  })
}

/** The state of the current branch, without reading the working tree. */
export const remoteStateNow = async (git: RepoGit): Promise<GitRemoteState> => {
  const branch = await currentBranch(git)
  if (branch === undefined) return remoteStateOf(git, { ahead: 0, behind: 0 })
  const ref = `refs/heads/${branch}`
  const format = '--format=%(refname)%00%(upstream:short)%00%(upstream:track)%00%(objectname)'
  const { text } = await git.read(['for-each-ref', format, ref])
  const [, upstream = '', track = '', head] =
    text
      .split('\n')
      .find(line => line.startsWith(`${ref}\0`))
      ?.split('\0') ?? []
  return remoteStateOf(git, {
    branch,
    ...(upstream !== '' && { upstream }),
    ahead: Number(/ahead (\d+)/.exec(track)?.[1] ?? 0),
    behind: Number(/behind (\d+)/.exec(track)?.[1] ?? 0),
    ...(head !== undefined && { head }),
  })
}
