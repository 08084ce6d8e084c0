import type { Handlers, Host } from '../../../sdk/index.js'
import type { CompletionCalls, EmbeddingCalls, ProviderCalls } from './contract.js'
import { completionCalls } from './native/completion.js'
import { embeddingCalls } from './native/embeddings.js'
import { usableModel } from '../personas/models.js'
import { INSTRUCTIONS } from './native/instructions.js'
import { reachFor } from '../../../sdk/node/access/asked-reach.js'
import { workspaceCommands } from '../instructions/workspace-commands.js'
import { skillsOf } from '../personas/skills.js'
import { shownCommands } from './native/native-adapter.js'
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
  masked: <T extends object>(reply: T) => T,
): Handlers<ProviderCalls & CompletionCalls & EmbeddingCalls> => ({
  ...completionCalls(host),
  ...embeddingCalls(host),
  'GET /agent/commands': async ({ agent: id }, { caller }) => {
    await providers.refresh(id)
    const adapter = providers.get(id)
    // The sandbox's own loop has those of the code: what another conversation published may be of files out of reach.
    if (adapter.id === 'script' || !adapter.harnesses.includes('native')) return { commands: providers.commands(id) }
    const reach = await reachFor(host, caller)
    const skills = await skillsOf(host, undefined, reach)
    const tree = { root: host.place.workspace, ...(reach && { folders: reach }) }
    return masked({ commands: shownCommands(await workspaceCommands(tree, skills)) })
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
