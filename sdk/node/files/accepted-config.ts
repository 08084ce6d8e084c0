import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { writeAtomic } from './files.js'
import { orderedHash } from './ordered-hash.js'

/** In the data folder, which no turn and no repository can write. */
const FILE = 'accepted-config.json'

interface Accepted {
  /** The hash of what a file held, by its path in the workspace. */
  readonly [path: string]: string
}

const acceptedIn = (data: string): Accepted => {
  try {
    return JSON.parse(readFileSync(join(data, FILE), 'utf8')) as Accepted
  } catch {
    return {}
  }
}

/** Whether the owner accepted exactly this content of a file of settings; otherwise it may have come with the code. */
export const isAcceptedConfig = (data: string, path: string, content: object): boolean => {
  const accepted = acceptedIn(data)
  return Object.hasOwn(accepted, path) && accepted[path] === orderedHash(content)
}

/** When something was accepted last; 0: never. */
export const acceptedStamp = (data: string): number =>
  statSync(join(data, FILE), { throwIfNoEntry: false })?.mtimeMs ?? 0

/** Accepts the content of a file of settings, for the owner on this machine. */
export const acceptConfig = async (data: string, path: string, content: object): Promise<void> => {
  const next: Accepted = { ...acceptedIn(data), [path]: orderedHash(content) }
  await writeAtomic(join(data, FILE), `${JSON.stringify(next)}\n`, { mode: 0o600, flush: true })
}
