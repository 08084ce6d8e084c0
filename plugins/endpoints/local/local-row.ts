import { shownAddress } from '../../../sdk/node/models/base-address.js'
import type { EndpointChoice, EndpointRow, EndpointStatus, EndpointTarget, ModelRow } from '../contract.js'
import type { LocalEntry } from './entry.js'
import { localLog, type LocalView } from './local-servers.js'

/** The models of a local model's server: what its list says, with what is known of the entry. */
const modelsOf = (rows: readonly ModelRow[], { model, need }: LocalView): ModelRow[] =>
  rows.map(row => ({
    ...row,
    ...(need && { contextWindow: need.context }),
    ...(model?.tier === 'instant' && { helperOnly: row.helperOnly ?? ('instant-tier' as const) }),
  }))

const defaultOf = (rows: readonly ModelRow[]): string => rows[0]?.id ?? ''

/** A server that has loaded is ready once its list is known. */
const statusOf = ({ state }: LocalView, rows: readonly ModelRow[]): EndpointStatus =>
  state.status === 'ready' && rows.length === 0 ? 'loading' : state.status

/** A local model as it is listed. */
export const localRow = (entry: LocalEntry, view: LocalView, rows: readonly ModelRow[]): EndpointRow => {
  const { state, model, need } = view
  const { id, label, url, context, enabled } = entry
  const totalBytes = state.status === 'downloading' ? (state.totalBytes ?? model?.sizeBytes) : undefined
  return {
    id,
    provider: `endpoint/${id}`,
    kind: 'local',
    label,
    protocol: 'openai',
    hasKey: false,
    headerNames: [],
    status: statusOf(view, rows),
    ...(state.status === 'error' && { detail: state.detail }),
    models: rows.length,
    default: defaultOf(rows),
    local: {
      model: entry.model,
      ...(url !== undefined && { url: shownAddress(url) }),
      context: need?.context ?? context ?? 0,
      ...(context !== undefined && { wantedContext: context }),
      device: 'host',
      enabled,
      weightsBytes: need?.weightsBytes ?? model?.sizeBytes ?? totalBytes ?? 0,
      ...(state.status === 'downloading' && { receivedBytes: state.receivedBytes }),
      ...(totalBytes !== undefined && { totalBytes }),
      estimatedBytes: need?.totalBytes ?? 0,
      ...(state.status === 'ready' && { measuredBytes: state.measuredBytes, pid: state.pid }),
      ...('port' in state && state.port !== undefined && { port: state.port }),
      log: localLog(id),
    },
  }
}

/** Why a local model cannot be used as it stands, with what to do; undefined when it can. */
const problemOf = ({ label }: LocalEntry, { state }: LocalView): string | undefined => {
  switch (state.status) {
    case 'ready':
      return undefined
    case 'stopped':
      return `${label} is stopped: start it on the page of models, or save it with enabled true`
    case 'downloading':
      return `${label} is being downloaded (${state.receivedBytes} bytes so far): wait until it is ready`
    case 'loading':
      return `${label} is loading: wait until it is ready`
    case 'error':
      return `${label}: ${state.detail}`
  }
}

/** A local model as something to choose. */
export const localChoice = (entry: LocalEntry, view: LocalView, rows: readonly ModelRow[]): EndpointChoice => {
  const reason = problemOf(entry, view)
  const models = modelsOf(rows, view)
  return {
    id: entry.id,
    label: entry.label,
    models,
    default: defaultOf(models),
    ready: reason === undefined,
    ...(reason !== undefined && { reason }),
  }
}

/** A local model as a turn speaks to it. */
export const localTarget = (entry: LocalEntry, view: LocalView, rows: readonly ModelRow[]): EndpointTarget => {
  const problem = problemOf(entry, view)
  const { state, key } = view
  const baseUrl = state.status === 'ready' ? `http://127.0.0.1:${state.port}` : 'http://127.0.0.1'
  const models = modelsOf(rows, view)
  return {
    id: entry.id,
    label: entry.label,
    protocol: 'openai',
    baseUrl,
    apiBase: `${baseUrl}/v1`,
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
    local: true,
    models,
    default: defaultOf(models),
    ...(problem !== undefined && { problem }),
  }
}
