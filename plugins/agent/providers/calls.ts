import type { Handlers, Host } from '../../../sdk/index.js'
import type { CompletionCalls, EmbeddingCalls, ProviderCalls } from './contract.js'
import { completionCalls } from './native/completion.js'
import { embeddingCalls } from './native/embeddings.js'
import { usableModel } from '../personas/models.js'
import { INSTRUCTIONS } from './native/instructions.js'
import { assertAccount } from '../turn/named-account.js'
import { optionsOf } from '../turn/options.js'
import { installed } from './acp/program.js'
import { connectedProgram } from './connected.js'
import type { Providers } from './providers.js'
import { runtimesOf } from './runtimes.js'

/** Serves what providers published and refused, and single answers of models. */
export const providerCalls = (
  providers: Providers,
  host: Pick<Host, 'call' | 'serves' | 'emit' | 'log' | 'place'>,
): Handlers<ProviderCalls & CompletionCalls & EmbeddingCalls> => ({
  ...completionCalls(host),
  ...embeddingCalls(host),
  'GET /agent/commands': async ({ agent: id }) => {
    await providers.refresh(id)
    return { commands: providers.commands(id) }
  },
  'agent.providers': () => ({
    providers: providers.builtIn.map(({ id, label, harnesses, models }) => ({
      id,
      label,
      harnesses: [...harnesses],
      models: [...models],
    })),
  }),
  'agent.runtimes': async () => ({
    runtimes: await runtimesOf(
      host,
      providers.builtIn.map(({ id }) => id),
      async name => installed(await connectedProgram(host, name)),
    ),
  }),
  'agent.usableModel': async ({ models }) => {
    const first = await usableModel(models, providers)
    return first === undefined ? {} : { first }
  },
  'agent.assertChoice': async input => {
    await providers.refresh(input.agent)
    const { adapter } = optionsOf(input, undefined, providers)
    await assertAccount(adapter, input.account)
    return { ok: true as const }
  },
  'agent.instructions': () => ({ chars: INSTRUCTIONS.length, text: INSTRUCTIONS }),
  'GET /agent/refusals': (_input, { caller }) => ({
    refusals: Object.fromEntries(
      Object.entries(providers.refusals).map(([id, { account, ...refusal }]) => {
        const shown = caller.kind !== 'token' && account !== undefined
        return [id, { ...refusal, ...(shown && { account }) }]
      }),
    ),
  }),
})
