import { openFile, openPath, type PathTree } from './open-path.js'

/** The text of a file of at most `most` bytes; undefined: there is none that can be read. */
export const fileText = async (tree: PathTree, path: string, most: number): Promise<string | undefined> => {
  await using found = await openPath(tree, path).catch(() => undefined)
  if (!found?.stats.isFile() || found.stats.size > most) return undefined
  await using handle = await openFile(found, path).catch(() => undefined)
  return await handle?.readFile('utf8')
}
