import type { Host } from '../../../sdk/index.js'
import { refuse } from '../../../sdk/index.js'
import type { ServerCondition } from '../../endpoints/contract.js'
import type { CapabilityStatus } from './contract.js'
import type { ForwardedKind } from './forwards.js'

/** Connections of the kinds `endpoint` and `localmodel`, which the group of model servers keeps. */
export const connectedModels = (host: Pick<Host, 'call' | 'serves'>): ForwardedKind => ({
  apply: async ({ id, kind, config }) => {
    if (!(await host.serves('endpoints.connect')))
      refuse('unprocessable', 'this sandbox has no group of model servers, so it connects none')
    const of = kind === 'localmodel' ? 'localmodel' : 'endpoint'
    return { status: statusOf(await host.call('endpoints.connect', { id, kind: of, config })), log: [] }
  },
  status: async id =>
    (await host.serves('endpoints.condition'))
      ? statusOf(await host.call('endpoints.condition', { id }))
      : { state: 'inactive', detail: 'this sandbox has no group of model servers', checkedAt: Date.now() },
})

const statusOf = ({ ready, detail }: ServerCondition): CapabilityStatus => ({
  state: ready ? 'active' : 'error',
  ...(detail !== undefined && { detail, code: 'unreachable' }),
  checkedAt: Date.now(),
})
