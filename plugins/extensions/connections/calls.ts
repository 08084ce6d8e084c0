import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import type { CapabilityRecord } from '../../capabilities/contract.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import type { ConnectionCalls } from './contract.js'

const ENTRY = 'connection:'
/** The secret field that leaves the daemon in no form. */
const SEED = 'otp'

/** A connection that exists, if it was made from one of these cards; refuses otherwise. */
export const connectionFor = async (
  host: Pick<Host, 'call' | 'serves'>,
  id: string,
  cards: ReadonlySet<string>,
): Promise<CapabilityRecord> => {
  if (cards.size === 0)
    return refuse('forbidden', `the manifest has no entry ${ENTRY}<card> in permissions.sandbox, which this needs`)
  const served = await host.serves('capabilities.records')
  const { capabilities } = served ? await host.call('capabilities.records', {}) : { capabilities: [] }
  const found =
    capabilities.find(each => each.id === id)
    ?? refuse('not-found', `there is no connection ${JSON.stringify(id.slice(0, 60))}`)
  const card = found.card ?? found.kind
  return cards.has(card) ? found : refuse('forbidden', `the manifest has no entry ${ENTRY}${card}`)
}

/** Serves connections to the extensions that may use them. */
export const connectionCalls = (all: LoadedExtensions): Handlers<ConnectionCalls> => ({
  'GET /capabilities/{id}/connection': async ({ id }, { caller }) => {
    const extension = all.runnable(caller.actor.replace(/^extension:/, ''))
    const entries = extension?.manifest.permissions?.sandbox ?? []
    const cards = entries.flatMap(entry => (entry.startsWith(ENTRY) ? [entry.slice(ENTRY.length)] : []))
    const { kind, config, secrets } = await connectionFor(all.host, id, new Set(cards))
    return {
      id,
      kind,
      config: Object.fromEntries([
        ...Object.entries(config).map(([field, value]) => [field, String(value)]),
        ...secrets.filter(field => field !== SEED).map(field => [field, `{{secret:${id}/${field}}}`]),
      ]) as { [field: string]: string },
    }
  },
})
