import { refuse, type Context } from '../../../sdk/index.js'
import { currentBranch } from '../branches/current-branch.js'
import type { GitResult } from '../records.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { checkedRef } from '../repositories/names.js'
import { remoteLines } from '../../../sdk/node/transport/remote-words.js'
import { checkSeen, writing, type GitVerdict } from '../writes/write.js'
import { askedRemote, NO_REMOTE, type AskedRemote } from './asked-remote.js'
import type { RemoteDeps } from './fetching.js'
import { prePushFinding } from './pre-push.js'
import { ruleFinding } from './push-rules.js'
import type { PushOrder } from './push-order.js'
import { gitSettings } from './settings.js'

/** The remote's answer for one ref; undefined: git printed no line for it. */
const lineFor = (text: string, remote: string): readonly [flag: string, summary: string] | undefined => {
  for (const line of text.split('\n')) {
    const [flag = '', refs = '', summary = ''] = line.split('\t')
    if (flag.length === 1 && refs.split(':').at(-1) === remote) return [flag, summary]
  }
  return undefined
}

const refusedAs = (summary: string, lease: boolean): GitVerdict['code'] => {
  if (/^\[remote rejected\]|^\[rejected\].*\((?:already exists|stale info|would clobber)/.test(summary))
    return 'rejected'
  return lease ? 'rejected' : 'not-fast-forward'
}

/** Sends one ref to a remote, without a hook. */
export const sendRef = async (
  { transfers }: Pick<RemoteDeps, 'transfers'>,
  { git }: OpenRepo,
  { address }: AskedRemote,
  { id, remote, expected, lease = false }: PushOrder,
): Promise<GitVerdict> => {
  const how = ['push', '--porcelain', '--progress', '--no-verify', '--no-follow-tags', '--recurse-submodules=no']
  const guard = lease ? [`--force-with-lease=${remote}:${expected ?? ''}`] : []
  const spec = `${id}:${remote}`
  const { text, stderr, failure } = await transfers.with(git, scratch =>
    transfers.inScratch(git, scratch, address, url => [...how, ...guard, '--end-of-options', url, spec]),
  )
  const [flag, summary = ''] = lineFor(text, remote) ?? []
  if (flag === '!') {
    const words = [summary, ...remoteLines(stderr)].join('; ').slice(0, 500)
    return { code: refusedAs(summary, lease), reason: words }
  }
  return failure ?? (flag === undefined ? { code: 'other', reason: 'the remote said nothing of the ref' } : {})
}

const idOf = async ({ git }: OpenRepo, ref: string): Promise<string | undefined> => {
  const { text, code } = await git.read(['rev-parse', '--verify', '--quiet', '--end-of-options', ref], { ok: [0, 1] })
  return code === 0 ? text.trim() : undefined
}

interface PushedBranch {
  readonly branch: string
  readonly remote: AskedRemote
  readonly order: PushOrder
  /** It has no upstream yet. */
  readonly fresh: boolean
}

/** The source and target of pushing a branch; undefined: there is no remote. */
const orderFor = async (
  deps: RemoteDeps,
  opened: OpenRepo,
  named: string | undefined,
  lease: boolean,
): Promise<PushedBranch | undefined> => {
  const branch =
    named ?? (await currentBranch(opened.git)) ?? refuse('conflict', `${opened.repo} has no branch checked out`)
  const local = `refs/heads/${checkedRef(branch, 'branch')}`
  const id = (await idOf(opened, local)) ?? refuse('not-found', `${opened.repo} has no branch ${branch}`)
  const remote = await askedRemote(opened, { workspace: deps.host.place.workspace, branch, push: true })
  if (!remote) return undefined
  const settings = new Map(await gitSettings(opened.git, '^branch\\..*\\.(remote|merge)$'))
  const merge = settings.get(`branch.${branch}.merge`)
  const follows = settings.get(`branch.${branch}.remote`) === remote.name && merge?.startsWith('refs/heads/') === true
  const there = follows ? merge! : local
  const expected = await idOf(opened, `refs/remotes/${remote.name}/${there.slice('refs/heads/'.length)}`)
  const order = { local, id, remote: there, lease, ...(expected !== undefined && { expected }) }
  return { branch, remote, order, fresh: merge === undefined }
}

interface AskedPush {
  readonly repo: string
  readonly branch?: string
  readonly force?: 'with-lease'
  /** The last commit that somebody saw. */
  readonly expectHead?: string | undefined
}

/** Pushes one branch to its own remote. */
export const pushBranch = async (
  deps: RemoteDeps,
  { repo, branch: named, force, expectHead }: AskedPush,
  context: Context,
): Promise<GitResult> => {
  const opened = await deps.repositories.open(repo, context.caller)
  const pushed = await orderFor(deps, opened, named, force !== undefined)
  if (pushed) checkSeen(`${pushed.branch} of ${repo}`, pushed.order.id, expectHead)
  const verdict = pushed ? await checkedAndSent(deps, opened, pushed, context.signal) : NO_REMOTE
  return writing(deps, { repo, verb: 'push', signal: deps.host.signal }, context, async write => {
    if (!pushed || verdict.code !== undefined) return write.result(verdict)
    const { branch, remote, order, fresh } = pushed
    const seen = `refs/remotes/${remote.name}/${order.remote.slice('refs/heads/'.length)}`
    await write.run(['update-ref', '-m', 'update by push', '--end-of-options', seen, order.id])
    if (fresh) {
      await write.run(['config', '--local', `branch.${branch}.remote`, remote.name])
      await write.run(['config', '--local', `branch.${branch}.merge`, order.remote])
    }
    await write.note('pushed', { branch, remote: remote.name, from: order.expected, to: order.id })
    return write.result({})
  })
}

/** Sends one ref if hook and rules let it go. */
const checkedAndSent = async (
  deps: RemoteDeps,
  opened: OpenRepo,
  { remote, order }: Pick<PushedBranch, 'remote' | 'order'>,
  signal: AbortSignal,
): Promise<GitVerdict> => {
  const finding =
    (await prePushFinding(opened, deps.repositories, remote, order))
    ?? (await ruleFinding(deps.host, opened, remote, order, signal))
  return finding === undefined ? sendRef(deps, opened, remote, order) : { code: 'rejected', reason: finding }
}

interface AskedTag {
  readonly name: string
  readonly remote: string
  readonly deletes?: true
  /** Its commit as somebody saw it. */
  readonly sha?: string | undefined
}

/** Publishes exactly one tag, or deletes it at the remote. */
export const pushTag = async (
  deps: RemoteDeps,
  opened: OpenRepo,
  { name, remote: named, deletes, sha }: AskedTag,
  signal: AbortSignal,
): Promise<GitVerdict> => {
  const ref = `refs/tags/${name}`
  const remote = await askedRemote(opened, { workspace: deps.host.place.workspace, name: named, push: true })
  const id = deletes ? '' : ((await idOf(opened, ref)) ?? refuse('not-found', `${opened.repo} has no tag ${name}`))
  if (!deletes) checkSeen(`the tag ${name} of ${opened.repo}`, (await idOf(opened, `${id}^{commit}`)) ?? id, sha)
  const order: PushOrder = { local: deletes ? '(delete)' : ref, id, remote: ref }
  return deletes
    ? sendRef(deps, opened, remote!, order)
    : checkedAndSent(deps, opened, { remote: remote!, order }, signal)
}
