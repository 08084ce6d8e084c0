import { refuse, type Context } from '../../../sdk/index.js'
import { currentBranch } from '../branches/current-branch.js'
import { operationOf } from '../changes/operation.js'
import { operate } from '../operations/conflicts.js'
import type { GitResult } from '../records.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { writing, type Writing } from '../writes/write.js'
import { askedRemote, NO_REMOTE } from './asked-remote.js'
import type { Fetches, RemoteDeps } from './fetching.js'
import { gitSettings } from './settings.js'

/** The upstream of a branch: from its settings, otherwise the remote branch of the same name. */
export const upstreamOf = async ({ git }: OpenRepo, branch: string, remote: string): Promise<string | undefined> => {
  const settings = new Map(await gitSettings(git, '^branch\\..*\\.(remote|merge)$'))
  const merge = settings.get(`branch.${branch}.merge`) ?? `refs/heads/${branch}`
  const own = settings.get(`branch.${branch}.remote`) ?? remote
  if (own !== remote || !merge.startsWith('refs/heads/')) return undefined
  const ref = `refs/remotes/${remote}/${merge.slice('refs/heads/'.length)}`
  const { code } = await git.read(['rev-parse', '--verify', '--quiet', '--end-of-options', ref], { ok: [0, 1] })
  return code === 0 ? ref : undefined
}

/** The number of commits that each of two has and the other lacks. */
export const distance = async (
  { git }: OpenRepo,
  one: string,
  other: string,
): Promise<[ahead: number, behind: number]> => {
  const { text } = await git.read(['rev-list', '--left-right', '--count', `${one}...${other}`])
  const [ahead = 0, behind = 0] = text.trim().split('\t').map(Number)
  return [ahead, behind]
}

/** Fast-forwards the branch to its upstream. */
const forward = async (write: Writing, branch: string, remote: string): Promise<GitResult> => {
  const upstream = await upstreamOf(write.opened, branch, remote)
  if (upstream === undefined)
    return write.result({ code: 'no-upstream', reason: `${remote} has no branch that ${branch} follows` })
  const [ahead, behind] = write.head === undefined ? [0, 1] : await distance(write.opened, 'HEAD', upstream)
  if (behind === 0) return write.result({})
  const short = upstream.slice('refs/remotes/'.length)
  if (ahead > 0)
    return write.result({
      code: 'not-fast-forward',
      reason: `${branch} has ${ahead} commits that ${short} lacks, and lacks ${behind} of its`,
    })
  const point = await write.savePoint('before a pull')
  const verdict = await operate(write, ['merge', '-q', '--ff-only', upstream], 'abort')
  const result = await write.result({ ...verdict, point })
  if (result.ok) await write.note('pulled', { branch, remote, from: write.head, to: result.head })
  return result
}

/** Fetches, and fast-forwards the current branch if possible. */
export const pull = async (
  deps: RemoteDeps,
  fetches: Fetches,
  { repo, expectHead }: { readonly repo: string; readonly expectHead?: string },
  context: Context,
): Promise<GitResult> => {
  const opened = await deps.repositories.open(repo, context.caller)
  const operation = operationOf(opened.git.place.gitdir)
  if (operation) refuse('conflict', `${repo} is in the middle of a ${operation}: continue or abort it first`)
  const branch =
    (await currentBranch(opened.git)) ?? refuse('conflict', `HEAD of ${repo} is detached: check out a branch first`)
  const remote = await askedRemote(opened, { workspace: deps.host.place.workspace, branch })
  const failure = remote ? (await fetches.fetch(opened, remote, true, context)).failure : NO_REMOTE
  return writing(deps, { repo, verb: 'pull', whole: true, expectHead }, context, async write => {
    if (failure) return write.result(failure)
    const now = await currentBranch(write.opened.git)
    if (now !== branch) refuse('conflict', `${repo} has ${now ?? 'no branch'} checked out now, not ${branch}`)
    return forward(write, branch, remote!.name)
  })
}
