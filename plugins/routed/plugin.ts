import { refuse, type Contract, type Host } from '../../sdk/index.js'
import { routedContract, type RoutedCalls } from './contract.js'
import { examples } from './examples.js'
import { completeRouted, connectRouted, disconnectRouted, routedAccounts } from './routed-accounts.js'
import { Translator } from './translator.js'

export const contract: Contract<RoutedCalls> = { ...routedContract, examples }

/** Serves accounts of routed providers, and runs the translator that turns ask. */
export const activate = async (host: Host): Promise<void> => {
  const translator = new Translator(host)
  const done = { ok: true as const }
  host.on('daemon.ready', () => void translator.begin())
  host.on('accounts.changed', () => void translator.refresh())
  host.on('capability.connected', () => void translator.refresh())
  host.on('capability.removed', () => void translator.refresh())

  await host.serve(routedContract, {
    'GET /translator': () => translator.status,
    'GET /translator/accounts': (_input, context) => routedAccounts(host, context),
    'POST /translator/{provider}/connect': ({ provider }, context) => connectRouted(host, provider, context),
    'POST /translator/{provider}/complete': async (asked, context) => {
      await completeRouted(host, asked, context)
      await translator.refresh()
      return done
    },
    'POST /translator/{provider}/disconnect': async ({ provider, name }, context) => {
      await disconnectRouted(host, provider, name, context)
      await translator.refresh()
      return done
    },
    'translator.endpointFor': ({ provider, account, model, run, conversationId, shielded = false }) => {
      if (run === '') refuse('invalid', 'run: expected the run that asks')
      return translator.endpointFor({
        ...{ provider, model, run, shielded },
        ...(conversationId !== undefined && { conversationId }),
        ...(account !== undefined && { account }),
      })
    },
    'translator.release': ({ bearer }) => {
      const counts = translator.release(bearer)
      return counts ? { counts } : {}
    },
  })
}
