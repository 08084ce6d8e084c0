import type { Handlers, Host } from '../../../sdk/index.js'
import type { ListenerServices } from './contract.js'
import type { Listeners } from './listeners.js'
import { serveListener } from './routes.js'

/** Serves what extensions are for automations. */
export const listenerHandlers = (host: Pick<Host, 'call'>, listeners: Listeners): Handlers<ListenerServices> => ({
  'extensions.listen': (request, context) => serveListener(host, listeners, request, context),
  'extensions.automations': () => listeners.contributed(),
  'extensions.deliver': async ({ provider, channelId, text }) => {
    await listeners.deliver(provider, channelId, text)
    return { ok: true }
  },
  'extensions.listening': () => ({ connections: listeners.connections }),
})
