import type { Host } from '../../../../sdk/index.js'
import type { TreeSearch } from '../../../workspace/contract.js'
import { WHOLE_OUTPUT } from '../../tools/tree.js'
import type { SearchTools } from '../../tools/tool.js'
import type { PreparedTurn } from './environment.js'

/** Searches the tree of a turn, in the folders that it reaches. */
export const searchTools = (
  host: Pick<Host, 'call' | 'serves'>,
  { root, folders, outputs }: Pick<PreparedTurn, 'root' | 'folders' | 'outputs'>,
): SearchTools => ({
  served: () => host.serves('workspace.find'),
  find: async asked => {
    const kept = outputs === undefined ? undefined : keptPart(outputs, asked)
    if (!kept) return host.call('workspace.find', { ...asked, root, ...(folders && { folders: [...folders] }) })
    const found = await host.call('workspace.find', { ...kept, root: outputs! })
    return { ...found, groups: found.groups.map(group => ({ ...group, path: `${outputs}/${group.path}` })) }
  },
})

/** A search in the folder of whole results, or in one of its files; undefined: it is one of the workspace. */
const keptPart = (outputs: string, { dir, ...asked }: TreeSearch): TreeSearch | undefined => {
  if (dir === outputs || dir === `${outputs}/`) return asked
  const name = dir?.startsWith(`${outputs}/`) ? dir.slice(outputs.length + 1) : undefined
  return name !== undefined && WHOLE_OUTPUT.test(name) ? { ...asked, include: name } : undefined
}
