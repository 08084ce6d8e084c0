import { refuse, type Host } from '../../../sdk/index.js'
import { isSealed } from '../../../sdk/node/access/sealed-secrets.js'
import { permissionsOf, permissionsOfKind } from '../../../sdk/node/extension/permission-kinds.js'
import type { CapabilityRecord } from '../../capabilities/contract.js'
import type { ExtensionManifest } from '../manifest/manifest.js'
import type { ConnectionConfig } from './contract.js'

const ENTRY = 'connection:'

/** The cards whose connections a manifest names. */
export const cardsNamed = ({ permissions }: ExtensionManifest): ReadonlySet<string> =>
  new Set(permissionsOfKind(permissionsOf('sandbox', permissions?.sandbox), 'connection').map(({ card }) => card))

const allConnections = async (host: Pick<Host, 'call' | 'serves'>): Promise<CapabilityRecord[]> =>
  (await host.serves('capabilities.records')) ? (await host.call('capabilities.records', {})).capabilities : []

const cardOf = ({ card, kind }: CapabilityRecord): string => card ?? kind

/** The connections that were made from these cards. */
export const connectionsFrom = async (
  host: Pick<Host, 'call' | 'serves'>,
  cards: ReadonlySet<string>,
): Promise<CapabilityRecord[]> =>
  cards.size === 0 ? [] : (await allConnections(host)).filter(each => cards.has(cardOf(each)))

/** A connection that exists, if it was made from one of these cards; refuses otherwise. */
export const connectionFor = async (
  host: Pick<Host, 'call' | 'serves'>,
  id: string,
  cards: ReadonlySet<string>,
): Promise<CapabilityRecord> => {
  if (cards.size === 0)
    return refuse('forbidden', `the manifest has no entry ${ENTRY}<card> in permissions.sandbox, which this needs`)
  const found =
    (await allConnections(host)).find(each => each.id === id)
    ?? refuse('not-found', `there is no connection ${JSON.stringify(id.slice(0, 60))}`)
  return cards.has(cardOf(found)) ? found : refuse('forbidden', `the manifest has no entry ${ENTRY}${cardOf(found)}`)
}

/** The names under which the secret fields of a connection are stored. */
export const secretFieldsOf = ({ id, kind, secrets }: CapabilityRecord): string[] =>
  secrets.filter(field => !isSealed(kind, field)).map(field => `${id}/${field}`)

/** The fields of a connection as text; each secret one as its reference. */
export const configWithReferences = (connection: CapabilityRecord): ConnectionConfig =>
  Object.fromEntries([
    ...Object.entries(connection.config).map(([field, value]) => [field, String(value)]),
    ...secretFieldsOf(connection).map(name => [name.slice(connection.id.length + 1), `{{secret:${name}}}`]),
  ]) as ConnectionConfig
