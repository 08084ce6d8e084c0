import { Refusal } from '../../refusal.js'
import { openPath, type OpenedPath, type PathTree } from './open-path.js'

/** Why a path is not opened: nothing is there, or a link is on the way. */
export type NotReal = 'missing' | 'link'

/** Opens a path on whose way no link is. Close it. */
export const openReal = async (tree: PathTree, path: string): Promise<OpenedPath | NotReal> => {
  let found: OpenedPath | undefined
  try {
    found = await openPath(tree, path)
  } catch (error) {
    // A link out of the tree is malformed, one to what is closed is not found.
    const { reason } = Refusal.from(error)
    if (reason === 'invalid') return 'link'
    if (reason === 'not-found') return 'missing'
    throw error
  }
  if (!found) return 'missing'
  if (found.path === path) return found
  await found.close()
  return 'link'
}
