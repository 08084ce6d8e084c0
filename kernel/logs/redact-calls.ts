import type { Handlers } from '../../sdk/contract.js'
import type { Kernel } from '../../sdk/kernel.js'
import { maskInLogs } from '../../sdk/node/access/stored-values.js'

/** The call by which stored values are kept out of the logs of this process; `owner` is whose values they are. */
export const redactCalls = (owner: string): Pick<Handlers<Kernel>, 'kernel.redact.values'> => ({
  'kernel.redact.values': ({ values }) => {
    maskInLogs(owner, values)
    return { ok: true }
  },
})
