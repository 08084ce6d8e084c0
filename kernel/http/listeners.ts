import type { Handlers } from '../../sdk/contract.js'
import type { Kernel } from '../../sdk/kernel.js'

type Listeners = { host: string; port: number }[]

/** The calls about the addresses that this daemon listens on: its own, and those of programs that groups run for it. */
export const ownListenerCalls = (own: () => Listeners): Pick<Handlers<Kernel>, `kernel.listeners${'' | '.set'}`> => {
  const others = new Map<string, Listeners>()
  return {
    'kernel.listeners': () => ({ listeners: [...own(), ...[...others.values()].flat()] }),
    'kernel.listeners.set': ({ name, listeners }) => {
      others.set(name, listeners)
      return { ok: true }
    },
  }
}
