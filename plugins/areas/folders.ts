import { refuse } from '../../sdk/index.js'
import { resolvePath } from '../../sdk/node/files/workspace-paths.js'
import { reachOf, type ReachFolder } from '../../sdk/index.js'
import type { StoredArea } from './area-file.js'
import type { FolderProblem } from './contract.js'

/** The real locations of an area's folders, merged; refuses a folder that cannot be in an area. */
export const foldersOf = async (workspace: string, asked: readonly string[]): Promise<string[]> => {
  const found: ReachFolder[] = []
  for (const path of asked) found.push({ path: await folderAt(workspace, path), access: 'read' })
  return reachOf(found).map(({ path }) => path)
}

const folderAt = async (workspace: string, path: string): Promise<string> => {
  const found = await resolvePath(workspace, path)
  switch (found.kind) {
    case 'folder':
      return found.path
    case 'missing':
      return refuse('not-found', `folders: nothing in the workspace is named ${path}`)
    case 'outside':
      return refuse('unprocessable', `folders: expected a folder of the workspace, found that ${path} leads outside`)
    case 'closed':
      return refuse('unprocessable', `folders: ${path} belongs to git or to the sandbox and is in no area`)
    case 'file':
      return refuse('unprocessable', `folders: expected a folder at ${path}, found a file`)
  }
}

/**
 * Why a folder of an area grants nothing now; undefined: it grants access. A folder replaced by another folder or a
 * link counts as moved.
 */
export const problemOf = async (workspace: string, folder: string): Promise<FolderProblem['problem'] | undefined> => {
  const found = await resolvePath(workspace, folder)
  if (found.kind === 'closed') return 'closed'
  if (found.kind === 'outside') return 'leads-outside'
  return found.kind === 'folder' && found.path === folder ? undefined : 'missing'
}

/** The folders of an area that are there, with what may be done in them. */
export const grantedFolders = async (
  workspace: string,
  { folders, access }: Pick<StoredArea, 'folders' | 'access'>,
): Promise<ReachFolder[]> => {
  const problems = await Promise.all(folders.map(path => problemOf(workspace, path)))
  return folders.filter((_, at) => problems[at] === undefined).map(path => ({ path, access }))
}
