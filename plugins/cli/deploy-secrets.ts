import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuse, type Context, type Host } from '../../sdk/index.js'
import type { DeployEntry } from '../../sdk/node/deploy/entries.js'
import {
  DESIRED,
  RUNNING_FILE,
  deploySecretKeys,
  runningStateOf,
  type RunningState,
} from '../../sdk/node/deploy/desired.js'
import { openFile, openPath } from '../../sdk/node/files/open-path.js'

/** Stored values in a folder in memory, until they are released. */
export interface MountedSecrets {
  readonly folder?: string
  release(): Promise<void>
}

type SecretsHost = Pick<Host, 'call' | 'serves' | 'place' | 'log'>

const LARGEST = 1024 * 1024

/** What ran when it was recorded last; the program itself refuses a record that cannot be used. */
const runningRecord = async (workspace: string): Promise<RunningState | undefined> => {
  const path = `${DESIRED}/${RUNNING_FILE}`
  await using found = await openPath({ root: workspace, reach: undefined, readsGit: false }, path)
  if (!found?.stats.isFile() || found.stats.size > LARGEST) return undefined
  await using file = await openFile(found, path)
  return runningStateOf(await file.readFile('utf8'))
}

/** The stored values that commands of `deploy` need; refuses where there is no configuration, or one is not stored. */
export const mountDeploySecrets = async (
  host: SecretsHost,
  name: string,
  context: Context,
): Promise<MountedSecrets> => {
  if (!(await host.serves('GET /inventory'))) return refuse('unavailable', 'the inventory is not served')
  const list = await host.call('GET /inventory', undefined, { as: context })
  const running = await runningRecord(host.place.workspace)
  // What ran when its last entry went has to be ended still.
  if (!list.ready || (list.entries.length === 0 && (running?.nodes ?? []).length === 0))
    refuse(
      'conflict',
      'there is no deployment configuration: connect the card DevOps, then add entries to the inventory',
    )
  const entries = list.entries.map(({ secrets: _, usedBy: __, ...entry }): DeployEntry => entry)
  const { required, others } = deploySecretKeys(entries, running)
  const { names, open } = await host.call('secrets.names')
  const stored = new Set(names)
  const missing = [...new Set(required.filter(key => !stored.has(key)))]
  if (missing.length > 0)
    refuse('conflict', `secrets that the deployment needs are not stored: ${missing.join(', ')}`, {
      fields: { missing },
    })
  const wanted = [...new Set([...required, ...others.filter(key => stored.has(key))])]
  if (wanted.length === 0) return { release: async () => {} }
  if (!open) refuse('unavailable', 'secrets are locked: unlock them first')
  const { folder } = await host.call('secrets.mount', { process: name, names: wanted }, { as: context })
  const release = async () => {
    await host
      .call('secrets.unmount', { process: name })
      .catch(error => host.log.warn('removing secrets from memory failed', { error: String(error) }))
  }
  const given = new Set(await readdir(folder))
  const bound = required.filter(key => !given.has(key))
  if (bound.length === 0) return { folder, release }
  await release()
  return refuse('conflict', `secrets that the deployment needs are bound to hosts: store ${bound.join(', ')} without`)
}

/** The values of a folder by name. */
export const readSecrets = async (folder: string | undefined): Promise<{ [name: string]: string }> => {
  const names = folder === undefined ? [] : await readdir(folder)
  return Object.fromEntries(
    await Promise.all(names.map(async name => [name, await readFile(join(folder!, name), 'utf8')])),
  )
}
