import { posix } from 'node:path'
import { inRealFolder } from '../../../../sdk/node/files/real-folders.js'

/** Makes the folder of the document that a turn is asked to write; returns its path from the workspace. */
export const documentsOf = async (workspace: string, document: string | undefined): Promise<string | undefined> => {
  if (document === undefined) return undefined
  const folder = posix.dirname(document)
  await inRealFolder(workspace, folder.split('/'), { make: true }, async () => {})
  return folder
}
