import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { readJson, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { ClientFacts } from '../clients/client.js'
import type { ExitProvider } from '../contract.js'

/** What is written of an exit before its client starts, so that a later daemon knows it. */
export interface ExitStanding extends ClientFacts {
  readonly provider: ExitProvider
  /** The country that was asked for. */
  readonly country?: string
  /** Since when it is up; without it the start, or the move, was not over. */
  readonly since?: number
  readonly seen?: SeenExit
}
/** What the last check saw. */
export interface SeenExit {
  readonly ip: string
  readonly country?: string
  readonly at: number
}
/** The country that a person chose last; left out in it: the provider chooses. */
export interface ExitSelection {
  readonly country?: string
}

/** The private folders of exits: what was written for their clients, what stands, what was chosen, and the last log. */
export class ExitFolders {
  readonly #root: string

  constructor(folder: string) {
    this.#root = join(folder, 'exits')
  }

  of(id: string): string {
    return join(this.#root, id)
  }

  async make(id: string): Promise<string> {
    const folder = this.of(id)
    await mkdir(folder, { recursive: true, mode: 0o700 })
    return folder
  }

  async ids(): Promise<string[]> {
    return (await readdir(this.#root, { withFileTypes: true }).catch(() => []))
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
  }

  standing(id: string): Promise<ExitStanding | undefined> {
    return readJson<ExitStanding>(join(this.of(id), 'standing.json'))
  }

  async write(id: string, standing: ExitStanding): Promise<void> {
    await writeAtomic(join(await this.make(id), 'standing.json'), JSON.stringify(standing))
  }

  /** Forgets that an exit stands, and what was seen of it. */
  async clear(id: string): Promise<void> {
    await rm(join(this.of(id), 'standing.json'), { force: true })
  }

  selection(id: string): Promise<ExitSelection | undefined> {
    return readJson<ExitSelection>(join(this.of(id), 'selection.json'))
  }

  async select(id: string, selection: ExitSelection | undefined): Promise<void> {
    const file = join(await this.make(id), 'selection.json')
    if (selection) await writeAtomic(file, JSON.stringify(selection))
    else await rm(file, { force: true })
  }

  async remove(id: string): Promise<void> {
    await rm(this.of(id), { recursive: true, force: true })
  }

  async rename(id: string, to: string): Promise<void> {
    await rename(this.of(id), this.of(to)).catch(error => {
      if (codeOf(error) !== 'ENOENT') throw error
    })
  }

  /** Removes what writes left that were cut off. */
  async sweep(): Promise<void> {
    for (const id of await this.ids()) await sweepTemporary(this.of(id))
  }
}
