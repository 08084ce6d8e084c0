import type { Handlers } from '../../../sdk/index.js'
import { WORK, type ConversationNetworks } from '../turn/environment/networks.js'
import type { NetworkCalls } from './contract.js'
import { admitTurn, type TurnAdmissionDeps } from './turn-reach.js'

/** What the network of programs without a conversation is called where conversations are expected. */
const SHOWN = 'programs-without-a-conversation'

/** Serves the networks of conversations to the group that shows their servers. */
export const networkCalls = (networks: ConversationNetworks, admission: TurnAdmissionDeps): Handlers<NetworkCalls> => ({
  'networks.listening': async () => ({
    networks: (await networks.listening())
      // The network in which a warm copy is made belongs to no conversation.
      .filter(({ id }) => !id.startsWith('.') || id === WORK)
      .map(({ id, sockets }) => ({ conversationId: id === WORK ? SHOWN : id, sockets: [...sockets] })),
  }),
  'networks.relay': async ({ conversationId: id, ...server }) => ({
    path: await networks.relay(id === SHOWN ? WORK : id, server),
  }),
  'networks.admit': async asked => {
    await admitTurn(admission, asked)
    return { ok: true }
  },
  'networks.work': async () => {
    const entered = await networks.work()
    if (!entered) return {}
    const { command, env, ...rest } = entered
    const [program, ...args] = command
    return { network: { program, args, env: { ...env }, ...rest } }
  },
})
