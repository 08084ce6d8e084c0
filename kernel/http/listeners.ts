import type { Handlers } from '../../sdk/contract.js'
import type { Kernel } from '../../sdk/kernel.js'
import { declareListeners } from '../../sdk/node/network/own-listeners.js'

type Listeners = { host: string; port: number }[]
type ListenerCalls = Pick<Handlers<Kernel>, `kernel.listeners${'' | '.set'}`>

/**
 * The calls about the addresses that this daemon listens on: its own, and those of programs that groups run for it; and
 * what forgets them.
 */
export const ownListenerCalls = (own: () => Listeners): [calls: ListenerCalls, forget: () => void] => {
  const others = new Map<string, { listeners: Listeners; programs?: boolean }>()
  const all = (withPrograms: boolean) =>
    [...others.values()].reduce(
      (sum, each) => (each.programs && !withPrograms ? sum : [...sum, ...each.listeners]),
      own(),
    )
  const calls: ListenerCalls = {
    'kernel.listeners': () => ({ listeners: all(true), pid: process.pid }),
    'kernel.listeners.set': ({ name, ...given }) => {
      others.set(name, given)
      return { ok: true }
    },
  }
  return [calls, declareListeners(() => all(false))]
}
