import type { Host } from '../../../../sdk/index.js'
import type { SearchTools } from '../../tools/tool.js'
import type { PreparedTurn } from './environment.js'

/** Searches the tree of a turn, in the folders that it reaches. */
export const searchTools = (
  host: Pick<Host, 'call' | 'serves'>,
  { root, folders }: Pick<PreparedTurn, 'root' | 'folders'>,
): SearchTools => ({
  served: () => host.serves('workspace.find'),
  find: asked => host.call('workspace.find', { ...asked, root, ...(folders && { folders: [...folders] }) }),
})
