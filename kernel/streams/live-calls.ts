import type { Handlers } from '../../sdk/contract.js'
import type { Kernel } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import type { Live } from './live.js'

/** The kernel calls with which groups publish on the stream. */
export const liveCalls = (live: Live): Pick<Handlers<Kernel>, `kernel.events.${'publish' | 'show'}`> => ({
  'kernel.events.publish': ({ domain, key, within }, { caller: { kind, actor } }) => {
    if (kind !== 'plugin') refuse('forbidden', `a group publishes as itself, found a caller of kind ${kind}`)
    live.bump(actor.slice('sandbox:'.length), domain, key, within)
    return { ok: true }
  },
  'kernel.events.show': ({ frames }) => {
    live.show(frames)
    return { ok: true }
  },
})
