import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { relative } from 'node:path'
import { refuse } from '../../../sdk/index.js'
import { isClosedName } from '../../../sdk/node/files/closed-names.js'
import { inside, segmentsOf } from '../../../sdk/node/files/paths.js'

const MOST_BYTES = 1024 * 1024

/** The text of a file of the workspace that somebody wants to import. */
export const envSource = async (workspace: string, path: string): Promise<string> => {
  const file = await inside(workspace, path)
  const absent = () => refuse('not-found', `no file of the workspace is named ${path}`)
  if (file === workspace || isClosedName(segmentsOf(relative(workspace, file)))) absent()
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(absent)
  try {
    const found = await handle.stat()
    if (!found.isFile()) absent()
    if (found.size > MOST_BYTES)
      refuse('too-large', `${path}: expected at most ${MOST_BYTES} bytes, found ${found.size}`)
    return new TextDecoder('utf-8', { fatal: true }).decode(await handle.readFile())
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return refuse('invalid', `${path}: expected text in UTF-8`)
  } finally {
    await handle.close()
  }
}
