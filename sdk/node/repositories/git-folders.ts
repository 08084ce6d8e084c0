import { join } from 'node:path'
import { MOST_SEARCHED, SEARCH_DEPTH } from './folders-with-git.js'
import { submoduleCheckouts } from './submodules.js'
import { knownFolder, type ReadFolder } from './read-folder.js'

const BATCH = 200

/** The folders of a workspace with a `.git`. Each folder is read again only if an entry of it came or went. */
export class FoldersWithGit {
  readonly #workspace: string
  #known: ReadonlyMap<string, ReadFolder> = new Map()

  constructor(workspace: string) {
    this.#workspace = workspace
  }

  /** Their paths from the root of the workspace, parents first. Git may still reject them. */
  async paths(): Promise<string[]> {
    const now = new Map<string, ReadFolder>()
    const found: string[] = []
    let level: readonly string[] = ['']
    let looked = 0
    for (let depth = 0; depth <= SEARCH_DEPTH && level.length > 0; depth++) {
      const next: string[] = []
      for (const path of level) {
        if (++looked > MOST_SEARCHED) break
        if (looked % BATCH === 0) await new Promise<void>(resolve => setImmediate(resolve))
        const folder = knownFolder(this.#known, join(this.#workspace, path), path)
        now.set(path, folder)
        if (folder.git) found.push(path)
        if (depth < SEARCH_DEPTH) for (const name of folder.inner) next.push(path ? `${path}/${name}` : name)
      }
      level = next
    }
    this.#known = now
    return [...found, ...(await submoduleCheckouts(this.#workspace, found))]
  }
}
