import type { Handlers } from '../../../sdk/index.js'
import type { ConversationNetworks } from '../turn/environment/networks.js'
import type { NetworkCalls } from './contract.js'

/** Serves the networks of conversations to the group that shows their servers. */
export const networkCalls = (networks: ConversationNetworks): Handlers<NetworkCalls> => ({
  'networks.listening': async () => ({
    networks: (await networks.listening())
      // The network in which a warm copy is made belongs to no conversation.
      .filter(({ id }) => !id.startsWith('.'))
      .map(({ id, sockets }) => ({ conversationId: id, sockets: [...sockets] })),
  }),
  'networks.relay': async ({ conversationId, ...server }) => ({ path: await networks.relay(conversationId, server) }),
})
