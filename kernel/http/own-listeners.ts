import type { Handlers } from '../../sdk/contract.js'
import type { Kernel } from '../../sdk/kernel.js'

/** Serves the addresses on which the daemon listens: its own, and those that its groups add. */
export const ownListeners = (
  host: string,
  url: () => string,
): Pick<Handlers<Kernel>, 'kernel.listeners' | 'kernel.listening'> => {
  const added: { host: string; port: number }[] = []
  return {
    'kernel.listeners': () => {
      const own = URL.parse(url())
      return { listeners: [...(own ? [{ host, port: Number(own.port || 80) }] : []), ...added], pid: process.pid }
    },
    'kernel.listening': listener => {
      added.push(listener)
      return { ok: true }
    },
  }
}
