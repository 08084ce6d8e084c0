import { apiAddresses, rootAddress, shownAddress } from '../../sdk/node/models/base-address.js'
import { type KnownServer, rowsOf } from './catalogues.js'
import type { EndpointChoice, EndpointRow, EndpointTarget } from './contract.js'
import type { ServerEntry } from './entry.js'
import type { ServerAccess } from './store.js'
import type { KnownTrial } from './trial.js'

/** The id under which the free trial is listed. */
export const TRIAL = 'free-trial'

const TRIAL_LABEL = 'Free trial'

/** The first model of a list, which is its default. */
export const firstOf = (models: readonly { id: string }[]): string => models[0]?.id ?? ''

/** A server as it is listed. */
export const serverRow = (
  entry: ServerEntry,
  known: KnownServer,
  { headerNames, problem }: ServerAccess,
): EndpointRow => ({
  id: entry.id,
  provider: `endpoint/${entry.id}`,
  kind: 'server',
  label: entry.label,
  protocol: entry.protocol,
  baseUrl: shownAddress(entry.baseUrl),
  hasKey: entry.hasKey,
  headerNames: [...headerNames],
  status: problem === undefined ? known.status : 'unavailable',
  ...((problem ?? known.detail) !== undefined && { detail: problem ?? known.detail! }),
  models: known.models.length,
  default: firstOf(known.models),
  ...(known.checkedAt !== undefined && { checkedAt: known.checkedAt }),
  ...(entry.prices && { prices: structuredClone(entry.prices) }),
})

/** The free trial as it is listed. */
export const trialRow = ({ models }: KnownTrial): EndpointRow => ({
  id: TRIAL,
  provider: `endpoint/${TRIAL}`,
  kind: 'trial',
  label: TRIAL_LABEL,
  protocol: 'openai',
  hasKey: true,
  headerNames: [],
  status: models.length > 0 ? 'ready' : 'empty',
  models: models.length,
  default: firstOf(models),
})

/** Why a server cannot be used as it stands; undefined when it can. */
const problemOf = (entry: ServerEntry, known: KnownServer): string | undefined => {
  return known.status === 'ready' ? undefined : `${entry.label}: ${known.detail ?? `it is ${known.status}`}`
}

/** A server as a turn speaks to it. */
export const serverTarget = (entry: ServerEntry, known: KnownServer, access: ServerAccess): EndpointTarget => {
  // A server that could not be asked a while ago may be back: a turn finds out, and says so itself.
  const problem = access.problem === undefined ? undefined : `${entry.label}: ${access.problem}`
  return {
    id: entry.id,
    label: entry.label,
    protocol: entry.protocol,
    baseUrl: rootAddress(entry.baseUrl, entry.protocol),
    apiBase: known.apiBase ?? apiAddresses(entry.baseUrl, entry.protocol)[0],
    headers: { ...access.headers },
    local: false,
    models: rowsOf(known),
    default: firstOf(known.models),
    ...(problem !== undefined && { problem }),
  }
}

/** A server as something to choose. */
export const serverChoice = (entry: ServerEntry, known: KnownServer): EndpointChoice => {
  const reason = problemOf(entry, known)
  return {
    id: entry.id,
    label: entry.label,
    models: rowsOf(known),
    default: firstOf(known.models),
    ready: reason === undefined,
    ...(entry.protocol !== 'ollama' && { fast: true }),
    ...(reason !== undefined && { reason }),
    ...(entry.prices && { prices: structuredClone(entry.prices) }),
  }
}

/** Why the free trial cannot be used; undefined when it can. */
const trialProblem = ({ status, models }: KnownTrial): string | undefined => {
  if (!status.available) return 'the free trial is not available'
  if (status.remaining === 0) return `the free trial is used up${status.resetsAt ? ` until ${status.resetsAt}` : ''}`
  return models.length === 0 ? 'the free trial lists no model' : undefined
}

/** The free trial as something to choose; undefined when there is none. */
export const trialChoice = (known: KnownTrial): EndpointChoice | undefined => {
  const reason = trialProblem(known)
  return known.status.available
    ? {
        id: TRIAL,
        label: TRIAL_LABEL,
        models: structuredClone(known.models),
        default: firstOf(known.models),
        ready: reason === undefined,
        ...(reason !== undefined && { reason }),
      }
    : undefined
}

/** The free trial as a turn speaks to it. */
export const trialTarget = (
  known: KnownTrial,
  baseUrl: string,
  headers: { [name: string]: string },
): EndpointTarget => {
  const problem = trialProblem(known)
  return {
    id: TRIAL,
    label: TRIAL_LABEL,
    protocol: 'openai',
    baseUrl: rootAddress(baseUrl, 'openai'),
    apiBase: known.apiBase ?? apiAddresses(baseUrl, 'openai')[0],
    headers,
    local: false,
    models: structuredClone(known.models),
    default: firstOf(known.models),
    ...(problem !== undefined && { problem }),
  }
}
