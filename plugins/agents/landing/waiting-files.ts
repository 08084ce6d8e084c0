import { readdir, rm, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import { Folder } from './folder.js'
import { ignored } from '../../../sdk/index.js'

/** The prefix of the names of a landing's staged files. */
export const waitingName = (id: string): string => `${TEMPORARY}${id}-`

const MOST_HELD = 512
const MOST_FOLDERS = 50_000

/**
 * The folders with the staged files of one landing, held open until it ends, so that the files can be removed even if a
 * folder is moved, replaced or closed meanwhile.
 */
export class WaitingFolders {
  readonly #id: string
  readonly #root: string
  readonly #held: Folder[] = []
  #all = true

  /** @param root The folder to search for staged files if there were too many folders to hold open. */
  constructor(root: string, id: string) {
    this.#root = root
    this.#id = id
  }

  /** Holds a folder open with its own descriptor; the caller closes theirs. */
  async hold(folder: Folder): Promise<void> {
    if (this.#held.length < MOST_HELD) this.#held.push(await folder.again())
    else this.#all = false
  }

  /** Removes all remaining staged files. */
  async clear(): Promise<void> {
    const name = waitingName(this.#id)
    for (const folder of this.#held) {
      const names = await readdir(folder.at('.')).catch(() => [] as string[])
      for (const found of names.filter(each => each.startsWith(name)))
        await unlink(folder.at(found)).catch(ignored('the next start removes it'))
    }
    if (!this.#all) await sweepWaiting(this.#root, [this.#id])
  }

  async close(): Promise<void> {
    await Promise.all(this.#held.splice(0).map(folder => folder.close()))
  }
}

/** Removes staged files of landings of a killed daemon, also in folders that were moved since. */
export const sweepWaiting = async (root: string, ids: readonly string[]): Promise<void> => {
  const waits = ids.map(waitingName)
  const folders = [root]
  for (const folder of folders) {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      const path = join(folder, entry.name)
      if (waits.some(name => entry.name.startsWith(name)))
        await rm(path, { force: true }).catch(ignored('the next start removes it'))
      else if (entry.isDirectory() && entry.name !== '.git' && folders.length < MOST_FOLDERS) folders.push(path)
    }
  }
}
