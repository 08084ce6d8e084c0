import type { Context } from '../../../sdk/index.js'
import { Refusal } from '../../../sdk/index.js'
import { Semaphore } from '../../../sdk/node/concurrency/semaphore.js'
import { currentBranch } from '../branches/current-branch.js'
import { operationOf } from '../changes/operation.js'
import { operate } from '../operations/conflicts.js'
import { askedRemote } from '../remotes/asked-remote.js'
import type { Fetches, RemoteDeps } from '../remotes/fetching.js'
import { distance, upstreamOf } from '../remotes/pulling.js'
import type { OpenRepo } from '../repositories/repositories.js'
import { writing } from '../writes/write.js'
import type { RepoSync } from './contract.js'

const AT_ONCE = 4
const LATE_MS = 120_000

/** The state of a repository after its fetch, and the commit to fast-forward to. */
interface Fetched {
  readonly row: RepoSync
  readonly upstream?: string
}

const wordsOf = (error: unknown): string =>
  error instanceof Refusal ? error.message : 'the daemon failed; see its log'

const fetched = async (deps: RemoteDeps, fetches: Fetches, opened: OpenRepo, context: Context): Promise<Fetched> => {
  const { git, repo } = opened
  if (deps.locks.held(git.place.common)) return { row: { repo, status: 'skipped', message: 'something else holds it' } }
  const remote = await askedRemote(opened, { workspace: deps.host.place.workspace })
  if (!remote) return { row: { repo, status: 'no-remote' } }
  const { failure } = await fetches.fetch(opened, remote, true, context, AbortSignal.timeout(LATE_MS))
  if (failure) return { row: { repo, status: 'error', message: failure.reason } }
  const branch = await currentBranch(git)
  const upstream = branch === undefined ? undefined : await upstreamOf(opened, branch, remote.name)
  const head = await deps.objects.head(git)
  const at = { repo, ...(head !== undefined && { head }) }
  if (upstream === undefined || head === undefined)
    return { row: { ...at, status: 'current', message: 'no branch that follows the remote is checked out' } }
  const [ahead, behind] = await distance(opened, 'HEAD', upstream)
  const row = { ...at, ahead, behind }
  if (behind === 0) return { row: { ...row, status: 'current' } }
  if (ahead > 0) return { row: { ...row, status: 'diverged' } }
  const { text } = await git.look(['status', '--porcelain', '-z', '--untracked-files=no'])
  const busy = text !== '' || operationOf(git.place.gitdir) !== undefined
  return busy ? { row: { ...row, status: 'dirty' } } : { row: { ...row, status: 'updated' }, upstream }
}

const forwarded = (
  deps: RemoteDeps,
  { repo }: OpenRepo,
  { row, upstream }: Required<Fetched>,
  context: Context,
): Promise<RepoSync> =>
  writing(deps, { repo, verb: 'sync', whole: true, expectHead: row.head }, context, async write => {
    const { code, reason } = await operate(write, ['merge', '-q', '--ff-only', upstream], 'abort')
    if (code === undefined) {
      const head = await deps.objects.head(write.opened.git)
      await write.note('pulled', { from: row.head, to: head })
      return { ...row, ahead: 0, behind: 0, ...(head !== undefined && { head }) }
    }
    return { ...row, status: code === 'dirty' ? 'dirty' : 'error', ...(reason !== undefined && { message: reason }) }
  })

/** Fetches repositories and fast-forwards them if possible. */
export const syncRepos = async (
  deps: RemoteDeps,
  fetches: Fetches,
  named: readonly string[] | undefined,
  context: Context,
): Promise<RepoSync[]> => {
  const { repositories, host } = deps
  const view = await repositories.viewOf(context.caller)
  const all = [...new Set(named ?? (await repositories.ids(view)))]
  const slots = new Semaphore(AT_ONCE)
  const found = await Promise.all(
    all.map(async repo => {
      const opened = named ? await repositories.open(repo, context.caller) : repositories.tryOpen(repo, view)
      return opened && 'git' in opened ? opened : { repo, error: opened?.error ?? 'it went meanwhile' }
    }),
  )
  const rows = await Promise.all(
    found.map(async (opened): Promise<readonly [OpenRepo | undefined, Fetched]> => {
      if ('error' in opened) return [undefined, { row: { repo: opened.repo, status: 'error', message: opened.error } }]
      const fetch = () => fetched(deps, fetches, opened, context)
      const failed = (error: unknown): Fetched => {
        if (!(error instanceof Refusal)) host.log.warn('a sync failed', { repo: opened.repo, error: String(error) })
        return { row: { repo: opened.repo, status: 'error', message: wordsOf(error) } }
      }
      return [opened, await slots.run(fetch).catch(failed)]
    }),
  )
  if (rows.some(([, { upstream }]) => upstream !== undefined) && (await host.serves('history.snapshot')))
    await host.call('history.snapshot', { trigger: 'user', label: 'before a sync', by: context.caller.actor })
  return Promise.all(
    rows.map(async ([opened, { row, upstream }]) => {
      if (!opened || upstream === undefined) return row
      const failed = (error: unknown): RepoSync => ({ ...row, status: 'error', message: wordsOf(error) })
      return forwarded(deps, opened, { row, upstream }, context).catch(failed)
    }),
  )
}
