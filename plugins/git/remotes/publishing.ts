import { posix } from 'node:path'
import { pathOfRepo, refuse, Refusal, type Context } from '../../../sdk/index.js'
import { currentBranch } from '../branches/current-branch.js'
import { commitPathAlone } from '../changes/committing.js'
import { operationOf } from '../changes/operation.js'
import { fileOnDisk } from '../files/reading.js'
import { pathFor, type OpenRepo } from '../repositories/repositories.js'
import { checkHead, writing, type Writing } from '../writes/write.js'
import { askedRemote, type AskedRemote } from './asked-remote.js'
import type { PublishedFile } from './contract.js'
import type { RemoteDeps } from './fetching.js'
import { pushBranch } from './pushing.js'

/** A file to publish. */
export interface PublishOrder {
  readonly repo: string
  readonly path: string
  readonly content: string
  readonly message: string
  readonly expectHead?: string | undefined
  readonly baseHash?: string
}

/** Writes a file of a repository like the caller in the workspace. */
export const writeRepoFile = async (
  { host }: Pick<RemoteDeps, 'host'>,
  repo: string,
  { path, ...file }: { readonly path: string; readonly content: string; readonly baseHash?: string },
  context: Context,
): Promise<void> => {
  if (!(await host.serves('PUT /workspace/file'))) refuse('unavailable', 'the group workspace is not served here')
  await host.call('PUT /workspace/file', { ...file, path: posix.join(pathOfRepo(repo), path) }, { as: context })
}

/** The default branch of a remote, or why it is unknown. */
const defaultBranchOf = async (
  { transfers }: Pick<RemoteDeps, 'transfers'>,
  { git }: OpenRepo,
  { name, address }: AskedRemote,
): Promise<{ readonly branch?: string; readonly reason: string }> => {
  const { text, failure } = await transfers.with(git, scratch =>
    transfers.inScratch(git, scratch, address, url => ['ls-remote', '--symref', '--end-of-options', url, 'HEAD']),
  )
  const branch = /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(text)?.[1]
  if (failure) return { reason: failure.reason }
  return branch === undefined ? { reason: `${name} has no default branch` } : { branch, reason: '' }
}

const presentText = async (opened: OpenRepo, path: string, workspace: string): Promise<string | undefined> => {
  try {
    return (await fileOnDisk(opened, path, workspace)).content
  } catch (error) {
    if (error instanceof Refusal && (error.reason === 'not-found' || error.reason === 'too-large')) return undefined
    throw error
  }
}

/** Commits the path if it differs from HEAD; returns whether it did, or why it could not. */
const commitIfChanged = async (
  write: Writing,
  deps: RemoteDeps,
  { path, message, folder }: { readonly path: string; readonly message: string; readonly folder: string },
): Promise<{ readonly committed: boolean; readonly reason?: string }> => {
  const { git, repo } = write.opened
  const { text } = await git.look(['status', '--porcelain=v1', '-z', '--untracked-files=all', '--', path])
  if (text === '') {
    const kept = write.head === undefined ? undefined : await deps.objects.entry(git, write.head, path)
    return kept ? { committed: false } : { committed: false, reason: `git ignores ${path}` }
  }
  const place = { workspace: deps.host.place.workspace, folder }
  const reason = await commitPathAlone(write, { path, message }, place)
  if (reason !== undefined) return { committed: false, reason }
  const head = await deps.objects.head(git)
  await write.note('committed', { repo, sha: head, subject: message.trim().split('\n')[0]!.slice(0, 200) })
  return { committed: true }
}

/** Writes, commits and pushes one file on the default branch of its remote; repeating it continues where it stopped. */
export const publishFile = async (
  deps: RemoteDeps & { readonly folder: string },
  { repo, path: named, content, message, expectHead, baseHash }: PublishOrder,
  context: Context,
): Promise<PublishedFile> => {
  const { workspace } = deps.host.place
  const opened = await deps.repositories.open(repo, context.caller)
  const operation = operationOf(opened.git.place.gitdir)
  if (operation) refuse('conflict', `${repo} is in the middle of a ${operation}: continue or abort it first`)
  if (message.trim() === '')
    refuse('invalid', 'message: expected words, found blanks only', {
      errors: [{ path: 'message', expected: 'words' }],
    })
  const path = await pathFor(opened, named)
  const branch = await currentBranch(opened.git)
  const head = await deps.objects.head(opened.git)
  checkHead(repo, head, expectHead)
  const done = { wrote: false, committed: false, pushed: false }
  const remote = await askedRemote(opened, { workspace, ...(branch !== undefined && { branch }), push: true })
  if (branch === undefined || !remote)
    return { ok: false, ...done, reason: branch === undefined ? 'HEAD is detached' : 'no remote is configured' }
  const { branch: defaultBranch, reason: unknown } = await defaultBranchOf(deps, opened, remote)
  const where = { branch, ...(defaultBranch !== undefined && { defaultBranch }) }
  if (defaultBranch !== branch) {
    const why =
      defaultBranch === undefined ? unknown : `${branch} is checked out, ${remote.name} shows ${defaultBranch}`
    return { ok: false, ...done, ...where, reason: why }
  }
  const wrote = (await presentText(opened, path, workspace)) !== content
  if (wrote) await writeRepoFile(deps, repo, { path, content, ...(baseHash !== undefined && { baseHash }) }, context)
  const { committed, reason } = await writing(
    deps,
    { repo, verb: 'publish', whole: true, signal: deps.host.signal, expectHead },
    context,
    write => commitIfChanged(write, deps, { path, message, folder: deps.folder }),
  )
  if (reason !== undefined) return { ok: false, ...done, wrote, ...where, reason }
  const result = await pushBranch(deps, { repo, branch }, context)
  const pushed = { ok: result.ok, wrote, committed, pushed: result.ok, ...where }
  return result.reason === undefined ? pushed : { ...pushed, reason: result.reason }
}
