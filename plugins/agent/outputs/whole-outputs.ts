import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ignored } from '../../../sdk/index.js'
import type { SentPicture } from '../providers/adapter.js'
import { keptPicture } from './pictures.js'
import { conversationHome } from '../../../sdk/node/wall/home.js'

const NAME = /^(\d{1,9})\.txt$/
/** Older files go: at 1 MiB for an output, this is also a limit on the disk. */
const MOST_FILES = 40

/** The folder of a conversation's whole results, beside its home folders: no program of a turn can write in it. */
export const outputFolder = (data: string, conversationId: string): string =>
  join(conversationHome(data, conversationId), 'outputs')

/** The whole texts of results that a model read in part, as files that the agent can read. */
export class WholeOutputs {
  readonly #data: string
  /** The number of each conversation's next file. */
  readonly #next = new Map<string, Promise<{ at: number }>>()

  constructor(data: string) {
    this.#data = data
  }

  /** Makes the folder of a conversation; returns its path, which is the same behind the wall. */
  async folder(conversationId: string): Promise<string> {
    const folder = outputFolder(this.#data, conversationId)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return folder
  }

  /** Writes an output; returns the path of its file. */
  async keep(conversationId: string, text: string): Promise<string> {
    const folder = await this.folder(conversationId)
    const known = this.#next.get(conversationId) ?? numberIn(folder)
    this.#next.set(conversationId, known)
    const number = (await known).at++
    const path = join(folder, `${number}.txt`)
    await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    await rm(join(folder, `${number - MOST_FILES}.txt`), { force: true }).catch(ignored('an old output stays'))
    return path
  }

  /** Keeps a picture as a model is shown it. */
  async picture(conversationId: string, name: string, bytes: Buffer): Promise<SentPicture> {
    return keptPicture(await this.folder(conversationId), name, bytes)
  }

  /** Forgets a conversation whose folder is deleted. */
  forget(conversationId: string): void {
    this.#next.delete(conversationId)
  }
}

const numberIn = async (folder: string): Promise<{ at: number }> => {
  const numbers = (await readdir(folder)).map(name => Number(NAME.exec(name)?.[1] ?? 0))
  return { at: Math.max(0, ...numbers) + 1 }
}
