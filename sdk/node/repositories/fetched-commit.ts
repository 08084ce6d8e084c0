import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Host } from '../../host.js'
import { Refusal, refuse } from '../../refusal.js'
import { git, GitFailure, type GitOptions } from '../programs/git.js'
import { gitAddress } from './git-address.js'

const FETCH_MS = 180_000
/** No redirect: the access token is for the host that was named. */
const FETCH = ['-c', 'http.followRedirects=false', '-c', 'fetch.fsckObjects=true', '-c', 'transfer.fsckObjects=true']
const SSH = { GIT_SSH_COMMAND: 'ssh -o BatchMode=yes -o StrictHostKeyChecking=yes -o ConnectTimeout=20' }

/** A commit of a repository elsewhere. */
export interface CommitSource {
  /** https, ssh, http on this machine, or the path of a repository in the workspace. */
  readonly url: string
  /** The full id of the commit. */
  readonly ref: string
  /** The name of a stored secret that is sent as access token. */
  readonly secret?: string
}

/** How much a commit may hold, and what it is fetched for, as the log of uses of secrets says it. */
export interface CommitLimits {
  readonly files: number
  readonly bytes: number
  readonly purpose: string
}

/**
 * Fills an empty folder with the files of a commit, without git's own folder; nothing of them is run. Refuses what is
 * not that commit, and what is too large before it is written.
 */
export const checkOutCommit = async (
  host: Pick<Host, 'call' | 'serves' | 'place' | 'signal'>,
  folder: string,
  { url, ref, secret }: CommitSource,
  limits: CommitLimits,
): Promise<void> => {
  const { address, protocol } = await gitAddress(host.place.workspace, url)
  const token = secret === undefined ? {} : await tokenEnv(host, protocol, secret, limits.purpose)
  const env = { GIT_ALLOW_PROTOCOL: protocol, ...SSH, ...token }
  const options: GitOptions = { signal: host.signal, timeoutMs: FETCH_MS, env }
  await git(folder, ['init', '-q', '--template='], options)
  try {
    await git(folder, [...FETCH, 'fetch', '-q', '--no-tags', '--depth=1', '--', address, ref], options)
  } catch (error) {
    if (!(error instanceof GitFailure)) throw error
    // Some servers give no commit by its name alone: what their branches hold is fetched then.
    const all = ['fetch', '-q', '--no-tags', '--', address, '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*']
    await git(folder, [...FETCH, ...all], options).catch(failed => refuseSource(failed, address))
  }
  const { text, code } = await git(folder, ['rev-parse', '-q', '--verify', `${ref}^{commit}`], { ok: [0, 1, 128] })
  if (code !== 0 || text.trim() !== ref) refuse('dependency', `${address} has no commit ${ref}`)
  await assertSize(folder, ref, limits)
  await git(folder, ['checkout', '-q', '--detach', ref], { timeoutMs: FETCH_MS }).catch(failed =>
    refuseSource(failed, address),
  )
  await rm(join(folder, '.git'), { recursive: true, force: true })
}

/** The full id of the commit that a branch or tag of a repository elsewhere is now; its `HEAD` when none is named. */
export const commitAt = async (
  host: Pick<Host, 'place' | 'signal'>,
  folder: string,
  { url, ref = 'HEAD' }: { readonly url: string; readonly ref?: string },
): Promise<string> => {
  if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(ref)) return ref
  const { address, protocol } = await gitAddress(host.place.workspace, url)
  const env = { GIT_ALLOW_PROTOCOL: protocol, ...SSH }
  const names = ref === 'HEAD' ? [ref] : [`refs/tags/${ref}^{}`, `refs/tags/${ref}`, `refs/heads/${ref}`]
  const { text } = await git(folder, [...FETCH.slice(0, 2), 'ls-remote', '--', address, ...names], {
    signal: host.signal,
    timeoutMs: FETCH_MS,
    env,
  }).catch(failed => refuseSource(failed, address))
  const found = text.split('\n').map(line => line.split('\t'))
  for (const name of names) {
    const [commit] = found.find(([, named]) => named === name) ?? []
    if (commit) return commit
  }
  return refuse('dependency', `${address} has no branch or tag ${ref}`)
}

/** The access token goes to git in its environment: an argument is seen by others. */
const tokenEnv = async (
  host: Pick<Host, 'call' | 'serves'>,
  protocol: string,
  secret: string,
  detail: string,
): Promise<{ [name: string]: string }> => {
  if (protocol !== 'https' && protocol !== 'http') refuse('invalid', 'secret: expected only with an https address')
  const missing = `there is no stored secret ${secret} that can be read: set it with POST /secrets`
  if (!(await host.serves('secrets.resolve'))) return refuse('dependency', missing)
  const { text } = await host.call('secrets.resolve', { text: `{{secret:${secret}}}`, lane: 'shell', detail })
  if (text === undefined) return refuse('dependency', missing)
  const basic = Buffer.from(`x-access-token:${text}`).toString('base64')
  return {
    GIT_CONFIG_COUNT: '1',
    GIT_CONFIG_KEY_0: 'http.extraHeader',
    GIT_CONFIG_VALUE_0: `Authorization: Basic ${basic}`,
  }
}

const refuseSource = (error: unknown, address: string): never => {
  if (error instanceof Refusal || !(error instanceof GitFailure)) throw error
  const words = error.stderr.split('\n').find(line => /fatal|error/.test(line)) ?? error.message
  return refuse('dependency', `${address} refused: ${words.replace(/^(?:fatal|error): /, '').slice(0, 300)}`, {
    cause: error,
  })
}

/** The size is known before anything is written. */
const assertSize = async (folder: string, ref: string, most: CommitLimits): Promise<void> => {
  let [files, bytes, rest] = [0, 0, '']
  await git(folder, ['ls-tree', '-r', '-l', '-z', ref], {
    to: piece => {
      const rows = (rest + piece.toString('latin1')).split('\0')
      rest = rows.pop()!
      for (const row of rows) {
        files++
        bytes += Number(/^\S+ \S+ \S+\s+(\d+)/.exec(row)?.[1] ?? 0)
      }
    },
  })
  if (files > most.files || bytes > most.bytes)
    refuse('too-large', `it has ${files} files with ${bytes} bytes: expected at most ${most.files} and ${most.bytes}`)
}
