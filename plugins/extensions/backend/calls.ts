import { refuse, type Host } from '../../../sdk/index.js'
import type { ExtensionLink } from '../../../sdk/node/extension/link.js'
import type { BackendOperations } from '../../../sdk/node/extension/protocol.js'
import type { ExtensionCall } from '../../../sdk/kernel.js'
import type { ExtensionRecords } from '../runtime.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import { patternFor, type ManifestEntries } from '../../../sdk/node/extension/entries.js'
import type { HostHandlers } from './operations.js'
import { isReachable, showsTranscripts } from '../manifest/trust-surface.js'

/** The dependencies of the calls of one backend. */
export interface BackendCallDeps {
  readonly host: Pick<Host, 'call'>
  readonly records: Pick<ExtensionRecords, 'used'>
  readonly id: string
  readonly entries: ManifestEntries
  readonly link: () => ExtensionLink<BackendOperations>
}

/** The decoded segments of a route's path, with the parameters of a call in it. */
const segmentsWith = (path: string, input: { readonly [name: string]: unknown }): string[] =>
  path === '/'
    ? []
    : path
        .slice(1)
        .split('/')
        .map(segment => {
          const [, name] = /^\{(\w+)\}$/.exec(segment) ?? []
          if (name === undefined) return segment
          const value = input[name]
          if (typeof value !== 'string' && typeof value !== 'number')
            return refuse('invalid', `${name}: expected text, found ${value === undefined ? 'nothing' : typeof value}`)
          return String(value)
        })

/** Checks a call of a backend against its entries; returns the call to make. */
const checkedCall = async (
  { host, records, id, entries }: BackendCallDeps,
  { entry, input }: { entry: string; input?: unknown },
): Promise<ExtensionCall> => {
  const fields = input ?? {}
  if (typeof fields !== 'object' || Array.isArray(fields))
    return refuse('invalid', 'input: expected an object, found another value')
  const [method = '', path = ''] = entry.split(' ', 2)
  const { access } = await host.call('kernel.route', { call: entry })
  if (!access) return refuse('not-found', `nothing serves ${entry.slice(0, 200)}`)
  if (!isReachable({ call: entry, ...access })) return deny(entry, `no extension can make the call ${access.id}`)
  const segments = segmentsWith(path, fields as { [name: string]: unknown })
  const found = patternFor(entries.routes, method, segments)
  if (!found) return deny(entry)
  if (showsTranscripts(access) && !entries.readsConversations) return deny('conversation:read')
  records.used(id, found.entry)
  return { extension: id, role: found.named ? 'maintainer' : 'collaborator', call: entry, input: fields }
}

/** The operations that call routes of the daemon. */
export const callOperations = (deps: BackendCallDeps): Pick<HostHandlers, 'call' | 'stream'> => ({
  call: async (asked, signal) => deps.host.call('kernel.extension.call', await checkedCall(deps, asked), { signal }),
  stream: async asked => {
    const checked = await checkedCall(deps, asked)
    const ended = new AbortController()
    const events = await deps.host.call('kernel.extension.stream', checked, { signal: ended.signal })
    return deps.link().offer(endingWith(events, ended))
  },
})

async function* endingWith(events: AsyncIterable<unknown>, ended: AbortController): AsyncGenerator<unknown, void> {
  try {
    yield* events
  } finally {
    ended.abort()
  }
}
