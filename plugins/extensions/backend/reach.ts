import type { Socket } from 'node:net'
import { Refusal, refuse } from '../../../sdk/index.js'
import { allowedOf } from '../../../sdk/node/network/allow.js'
import { addressKind, type Listener } from '../../../sdk/node/network/addresses.js'
import { normalHost, written, type Target } from '../../../sdk/node/network/host-form.js'
import { Names } from '../../../sdk/node/network/names.js'
import { connectChecked, type DialHow, type NetworkRules } from '../../../sdk/node/network/policy.js'
import { SENTENCES } from '../../../sdk/node/network/failure-words.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import type { ManifestEntries } from '../../../sdk/node/extension/entries.js'

/** The dependencies of a backend's outside connections. */
export interface ReachDeps {
  readonly entries: Pick<ManifestEntries, 'netFor'>
  readonly listeners: () => Promise<readonly Listener[]>
  readonly names: Names
  /** Called when it used a declared entry. */
  readonly used: (entry: string) => void
}

/** The entry that names a target, and the rules of the connection; undefined: none. */
const rulesFor = (
  entries: ReachDeps['entries'],
  target: Target,
  listeners: readonly Listener[],
): { entry: string; rules: NetworkRules } | undefined => {
  const name = normalHost(target.host)
  if (name === undefined) return undefined
  const found = entries.netFor(name, target.port)
  if (!found || found.any || found.host.startsWith('*.'))
    // A wildcard allows names whose owners choose their addresses, so it reaches public addresses only.
    return found && { entry: found.entry, rules: { allow: [], only: false, listeners } }
  const port = found.port ?? target.port
  const allow = allowedOf([addressKind(name) === 'loopback' ? `localhost:${port}` : `${bracketed(name)}:${port}`])
  return { entry: found.entry, rules: { allow, only: true, listeners } }
}

const bracketed = (host: string): string => (host.includes(':') ? `[${host}]` : host)

/** Connects to a target that an entry names, to an address that was checked. */
export const reachTarget = async (
  deps: ReachDeps,
  target: Target,
  signal: AbortSignal,
  how?: DialHow,
): Promise<Socket> => {
  const found = rulesFor(deps.entries, target, await deps.listeners())
  if (!found) return deny(`net:${written(target)}`)
  try {
    const socket = await connectChecked(target, found.rules, signal, deps.names, how)
    deps.used(found.entry)
    return socket
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof Refusal && error.reason === 'dependency') throw error
    if (error instanceof Refusal)
      return deny(
        `net:${written(target)}`,
        `${written(target)} is not reached: it is the sandbox itself, or an address that ${found.entry} does not name`,
      )
    const { code, message } = error as NodeJS.ErrnoException
    return refuse('dependency', `${written(target)} could not be asked: ${SENTENCES[code ?? ''] ?? code ?? message}`)
  }
}
