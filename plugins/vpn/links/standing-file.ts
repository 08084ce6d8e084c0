import { mkdir, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { readJson, sweepTemporary, writeAtomic } from '../../../sdk/node/files/files.js'
import { codeOf } from '../../../sdk/node/files/paths.js'
import type { VpnSettings } from '../settings/settings.js'

/** What is written of a tunnel before its client starts, so that a later daemon knows it. */
export interface StandingRecord {
  readonly interface: string
  readonly provider: VpnSettings['provider']
  readonly pid?: number
  /** Since when it is connected; without it the dial was not over. */
  readonly since?: number
  readonly dns?: readonly string[]
}

/** The private folders of tunnels: what was written for their clients, what stands, and the log of the last dial. */
export class LinkFolders {
  readonly #root: string

  constructor(folder: string) {
    this.#root = join(folder, 'links')
  }

  of(id: string): string {
    return join(this.#root, id)
  }

  /** The ids with a folder. */
  async ids(): Promise<string[]> {
    return (await readdir(this.#root, { withFileTypes: true }).catch(() => []))
      .filter(entry => entry.isDirectory())
      .map(({ name }) => name)
  }

  async standing(id: string): Promise<StandingRecord | undefined> {
    return readJson<StandingRecord>(this.#file(id))
  }

  async write(id: string, record: StandingRecord): Promise<void> {
    await mkdir(this.of(id), { recursive: true, mode: 0o700 })
    await writeAtomic(this.#file(id), JSON.stringify(record))
    if (record.since === undefined) failpoint('vpn.dial.noted')
    else failpoint('vpn.dial.connected')
  }

  /** Forgets that a tunnel stands; the log of its dial stays. */
  async clear(id: string): Promise<void> {
    await rm(this.#file(id), { force: true })
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

  #file(id: string): string {
    return join(this.of(id), 'standing.json')
  }
}
