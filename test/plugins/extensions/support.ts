import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type {
  ExtensionList,
  ExtensionManifest,
  ExtensionRecord,
  PendingExtension,
} from '../../../plugins/extensions/contract.js'
import { checkAnswers } from '../../support/answers.js'
import { inner } from '../agent/support.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'

const FOLDER = '.sandbox/config/workspace-extensions'

/** A daemon that runs extensions. */
export const daemonWithBackends = async (
  t: Test,
  groups: readonly string[] = [],
  options: SupportOptions = {},
): Promise<Support> => {
  const daemon = await daemonWith(t, ['extensions', ...groups], options)
  checkAnswers(Number(new URL(daemon.url).port), call => daemon.kernel.calls.has(call))
  return daemon
}

/** Writes files of an extension of the workspace; a manifest is an object. */
export const writeExtension = (
  { workspace }: { readonly workspace: string },
  name: string,
  manifest: ExtensionManifest | object,
  files: { readonly [path: string]: string } = {},
): string => {
  const folder = join(workspace, FOLDER, name)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'intentic-extension.json'), JSON.stringify(manifest))
  return folder
}

/** Removes the folder of an extension of the workspace. */
export const eraseExtension = ({ workspace }: { readonly workspace: string }, name: string): void =>
  rmSync(join(workspace, FOLDER, name), { recursive: true, force: true })

/** Reads the list until a condition holds, asking again after each turn of the event loop. */
export const listedUntil = async <T>(
  daemon: Support,
  find: (list: ExtensionList) => T | undefined | false,
): Promise<T> => {
  const end = Date.now() + 15_000
  for (;;) {
    const list = await inner(daemon, 'GET /extensions', {} as never)
    const found = find(list)
    if (found !== undefined && found !== false) return found
    if (Date.now() > end) throw new Error(`the list did not become as expected: ${JSON.stringify(list).slice(-2000)}`)
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}

/** Approves what waits for it. */
export const approvePending = async ({ client }: Pick<Support, 'client'>, id: string): Promise<PendingExtension> => {
  const { pending } = await client.call('GET /extensions')
  const found = pending.find(each => each.id === id)
  if (!found) throw new Error(`${id} does not wait for approval`)
  await client.call('POST /extensions/{id}/approve', { id, digest: found.digest })
  return found
}

/** The extension with that id, unless it is not listed as one that may run. */
export const recordNamed = async ({ client }: Pick<Support, 'client'>, id: string): Promise<ExtensionRecord> => {
  const { extensions } = await client.call('GET /extensions')
  const found = extensions.find(each => each.id === id)
  if (!found) throw new Error(`${id} is not listed`)
  return found
}

/** A process that a backend's state names. */
export const pidOf = ({ id }: ExtensionRecord): number => {
  const isIts = (pid: string): boolean => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`/extensions/data/${id}`)
    } catch {
      return false
    }
  }
  return Number(readdirSync('/proc').find(name => /^\d+$/.test(name) && isIts(name)))
}

/** Whether a process runs; one that ended and that nobody has read the end of does not. */
export const isRunning = (pid: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(') ') + 2)[0] !== 'Z'
  } catch {
    return false
  }
}
