import type { Handlers, Host } from '../../../sdk/index.js'
import { sharedTree, treeFor } from '../../../sdk/node/access/caller-tree.js'
import type { WorkspaceChanges } from '../watch/changes.js'
import type { ChangeCalls } from '../watch/contract.js'
import type { TreeCalls } from './contract.js'
import { resolveIn } from './resolve.js'
import { childrenOf, treeOf } from './walk.js'

/** Lists the tree of files. */
export const treeCalls = (host: Host, changes: WorkspaceChanges): Handlers<TreeCalls & ChangeCalls> => ({
  'GET /workspace/tree': async ({ agent }, context) => {
    const tree = await treeFor(host, agent, context)
    const now = await changes.now(tree)
    return { ...(await treeOf(tree)), ...now }
  },
  'GET /workspace/children': async ({ agent, path, ...page }, context) =>
    childrenOf(await treeFor(host, agent, context), path, page),
  'GET /workspace/changed': async ({ agent, since }, context) =>
    changes.since(await treeFor(host, agent, context), since),
  'GET /workspace/resolve': async ({ agent, path }, context) => {
    const tree = await treeFor(host, agent, context)
    const trees = tree.conversationId === undefined ? [tree] : [tree, await sharedTree(host, context)]
    const found = await resolveIn(trees, path, context.signal)
    return found === undefined ? {} : { path: found }
  },
})
