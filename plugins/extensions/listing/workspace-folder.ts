import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { foldersIn, inRealFolder } from '../../../sdk/node/files/real-folders.js'

/** The path of a workspace's extensions, name by name. */
export const WORKSPACE_EXTENSIONS = ['.sandbox', 'config', 'workspace-extensions'] as const
const MOST = 200

/** The folder of all of them, from the workspace. */
export const WORKSPACE_FOLDER = WORKSPACE_EXTENSIONS.join('/')

/** The folders of the workspace's extensions, by name, without links and hidden folders. */
export const workspaceFolders = async (workspace: string): Promise<string[]> => {
  const names = (await inRealFolder(workspace, WORKSPACE_EXTENSIONS, {}, foldersIn)) ?? []
  return names.filter(name => !name.startsWith('.')).slice(0, MOST)
}

/** The real path of one of them; undefined: it does not exist, or only through a link. */
export const workspaceFolder = async (workspace: string, name: string): Promise<string | undefined> => {
  const root = await realpath(workspace)
  return inRealFolder(root, [...WORKSPACE_EXTENSIONS, name], {}, async () => join(root, ...WORKSPACE_EXTENSIONS, name))
}
