import { randomBytes } from 'node:crypto'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../sdk/node/failpoint.js'
import { flushFolder } from '../../sdk/node/files/files.js'
import { foldersIn, inRealFolder, writeBelow } from '../../sdk/node/files/real-folders.js'
import type { FoundPack } from './found-packs.js'

/** A folder that skills are copied into; a crash leaves it for the next start to remove. */
const STAGED = '.import-'
/** A complete import whose skills are being moved; the next start continues it. */
const WHOLE = '.importing-'

/** Imports skills into their folder of the workspace: after a crash all of them exist, or none. */
export class PackImport {
  readonly #workspace: string
  readonly #names: readonly string[]

  /** @param names The folder of the skills, by its names from the workspace root. */
  constructor(workspace: string, ...names: string[]) {
    this.#workspace = workspace
    this.#names = names
  }

  /** Copies skills beside the others; returns the name of the copy. */
  async stage(packs: readonly FoundPack[]): Promise<string> {
    const id = randomBytes(9).toString('hex')
    try {
      for (const { name, files } of packs)
        for (const { path, at, executable } of files)
          await writeBelow(this.#workspace, [...this.#names, STAGED + id, name, ...path.slice(0, -1)], {
            ...{ name: path.at(-1)!, data: await readFile(at), executable },
          })
    } catch (error) {
      await this.drop(id)
      throw error
    }
    failpoint('skills.import.staged')
    return id
  }

  /** Moves staged skills to their paths, replacing existing ones. */
  async finish(id: string): Promise<void> {
    await this.#in(async at => {
      await rename(join(at, STAGED + id), join(at, WHOLE + id))
      await flushFolder(at)
      failpoint('skills.import.whole')
      await moveAll(at, WHOLE + id)
    })
  }

  /** Removes staged skills. */
  async drop(id: string): Promise<void> {
    await this.#in(at => rm(join(at, STAGED + id), { recursive: true, force: true }))
  }

  /** Finishes the imports that a crash cut off, and removes those that were not whole. */
  async recover(): Promise<void> {
    await this.#in(async at => {
      for (const name of await foldersIn(at)) {
        if (name.startsWith(STAGED)) await rm(join(at, name), { recursive: true, force: true })
        if (name.startsWith(WHOLE)) await moveAll(at, name)
      }
    })
  }

  #in(work: (at: string) => Promise<void>): Promise<void> {
    return inRealFolder(this.#workspace, this.#names, {}, work) as Promise<void>
  }
}

const moveAll = async (at: string, whole: string): Promise<void> => {
  for (const name of await foldersIn(join(at, whole))) {
    await rm(join(at, name), { recursive: true, force: true })
    await rename(join(at, whole, name), join(at, name))
  }
  await flushFolder(at)
  await rm(join(at, whole), { recursive: true, force: true })
}
