import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Contract, Host } from '../../sdk/index.js'
import { diffCalls } from './calls.js'
import { diffsContract, type DiffsCalls } from './contract.js'
import { examples } from './examples.js'

export const contract: Contract<DiffsCalls> = { ...diffsContract, examples }

/** Shows what changed in files that a comparison of lines does not show. */
export const activate = async (host: Host): Promise<void> => {
  const folder = join(host.place.folder, 'sides')
  // Files of requests that a kill cut off.
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { mode: 0o700 })
  await host.serve(diffsContract, diffCalls(host, folder))
}
