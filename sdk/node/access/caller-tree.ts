import type { Context } from '../../contract.js'
import type { Host } from '../../host.js'
import { refuse } from '../../refusal.js'
import { accessViewWith } from './access-view.js'
import { reachFor } from './asked-reach.js'
import { assertVisible, refuseUnknown } from './conversation-reach.js'
import type { PathTree } from '../files/open-path.js'
import { copyRootOf } from '../repositories/main-repository.js'

/** A tree as one caller sees it. */
export interface CallerTree extends PathTree {
  /** The conversation whose private copy it is; absent: the shared tree. */
  readonly conversationId?: string
}

type TreesHost = Pick<Host, 'call' | 'serves' | 'place'>

/** Whether a caller may read `.git` of repositories, which may contain credentials: maintainers, no tokens. */
const readsGitOf = ({ kind, role }: Context['caller']): boolean =>
  kind === 'session' && (role === 'maintainer' || role === 'owner')

/** The shared tree as a caller sees it now. */
export const sharedTree = async (host: TreesHost, { caller }: Pick<Context, 'caller'>): Promise<CallerTree> => ({
  root: host.place.workspace,
  reach: await reachFor(host, caller),
  readsGit: readsGitOf(caller),
})

/** The tree of a conversation as a caller sees it now: its private copy, or the shared tree if it works there. */
export const treeFor = async (
  host: TreesHost,
  agent: string | undefined,
  context: Pick<Context, 'caller'>,
): Promise<CallerTree> => {
  const shared = await sharedTree(host, context)
  if (agent === undefined) return shared
  if (!(await host.serves('agent.conversation'))) return refuseUnknown(agent)
  const { conversation } = await host.call('agent.conversation', { id: agent })
  await assertVisible(accessViewWith(shared.root, shared.reach), conversation, false)
  const { branch } = conversation
  if (branch === undefined) return shared
  const { repos } = await host.call('checkouts.repos', { id: agent })
  const root = copyRootOf(repos)
  if (root === undefined)
    return refuse('conflict', `the private copy of ${agent} is not there: its work is on the branch ${branch}`)
  return { root, reach: shared.reach, readsGit: false, conversationId: agent }
}
