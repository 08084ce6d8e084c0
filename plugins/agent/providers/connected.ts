import { Refusal } from '../../../sdk/index.js'
import type { Host } from '../../../sdk/index.js'
import { installedAt } from '../../../sdk/node/programs/installed-at.js'
import { programsInHome } from '../../../sdk/node/wall/home.js'
import type { AcpRun } from './acp/turn.js'
import type { Conversations } from '../conversations/conversations.js'
import { settingsOf } from './acp/known-programs.js'
import { located, type AgentProgram } from './acp/program.js'
import type { Abilities } from './adapter.js'
import type { ConnectedProviders } from './connected-providers.js'
import { accountProviders } from './native/account-adapter.js'
import { endpointAdapter } from './native/native-adapter.js'
import { closedByShield, ModelShield } from './native/model-shield.js'
import type { NativeDeps } from './native/native-turn.js'
import { routedAdapter } from './routed/routed-adapter.js'
import { RequestPaces } from './native/pace.js'

/** Everything that people connect: agent programs, model servers, and accounts of providers. */
export const connectedProviders = (
  host: Pick<Host, 'call' | 'serves' | 'place' | 'emit' | 'log'>,
  vendor: AcpRun,
  conversations: Pick<Conversations, 'find' | 'update'>,
  given: NativeDeps,
): ConnectedProviders[] => {
  const deps: NativeDeps = { ...given, paces: new RequestPaces(), shield: provider => new ModelShield(host, provider) }
  const accountOf = (id: string, provider: string): string | undefined => {
    const account = conversations.find(id)?.account
    return account?.provider === provider ? account.id : undefined
  }
  return [
    agentPrograms(host, vendor),
    modelServers(host, deps),
    accountProviders(host, {
      ...deps,
      accountOf,
      routed: definition => routedAdapter(host, definition, { native: deps, vendor, program: PROGRAM, accountOf }),
      stays: (id, provider, account) => conversations.update(id, { account: { provider, id: account } }),
    }),
  ]
}

/** The abilities of an agent program; questions come from the sandbox's own tools. */
const PROGRAM: Abilities = {
  words: false,
  permissions: 'modes',
  questions: true,
  commands: true,
  terminals: true,
  state: false,
  offline: false,
}

/** Agent programs that people connected, as providers `agent/<id>`. */
const agentPrograms = (host: Pick<Host, 'call' | 'serves' | 'place'>, vendor: AcpRun): ConnectedProviders => ({
  prefix: 'agent/',
  ready: async () =>
    (await host.serves('capabilities.records'))
      ? (await host.call('capabilities.records', { kind: 'agent' })).capabilities.map(({ id }) => id)
      : [],
  find: async name => {
    if (!(await host.serves('capabilities.records'))) return undefined
    const { capabilities } = await host.call('capabilities.records', { kind: 'agent' })
    const found = capabilities.find(({ id }) => id === name)
    if (!found) return undefined
    const id = `agent/${name}`
    return {
      id,
      label: found.label,
      harnesses: ['vendor-code'],
      ownHarness: 'vendor-code',
      // Only the running program knows its models.
      models: [],
      commands: [],
      abilities: () => PROGRAM,
      run: async function* (request, io) {
        const closed = await closedByShield(host, id, request.conversationId)
        if (closed !== undefined) return yield { kind: 'error', message: closed }
        const program = await connectedProgram(host, name).catch((error: unknown) => Refusal.from(error))
        if (program instanceof Refusal) return yield { kind: 'error', message: program.message }
        yield* vendor(id, program, request, io)
      },
    }
  },
})

/** Model servers that people added, as providers `endpoint/<id>` that run in the sandbox's own tool loop. */
const modelServers = (host: Pick<Host, 'call' | 'serves'>, deps: NativeDeps): ConnectedProviders => ({
  prefix: 'endpoint/',
  ready: async () =>
    (await host.serves('endpoints.choices'))
      ? (await host.call('endpoints.choices')).endpoints.flatMap(({ id, models }) => (models.length > 0 ? [id] : []))
      : [],
  find: async name => {
    if (!(await host.serves('endpoints.choices'))) return undefined
    const { endpoints } = await host.call('endpoints.choices')
    const found = endpoints.find(({ id }) => id === name)
    return found && endpointAdapter(found, id => host.call('endpoints.target', { id }), deps)
  },
})

/** The program with its command, variables and secret values. */
export const connectedProgram = async (host: Pick<Host, 'call' | 'place'>, name: string): Promise<AgentProgram> => {
  const { label, command, env } = await host.call('capabilities.runtime', { id: name })
  const [word = '', ...args] = command
  const program: AgentProgram = {
    label,
    command: [word, ...args],
    install: `install it, or connect it again with its whole path: sandbox agent add ${name} --command "…"`,
    home: name,
    folders: [programsInHome(host.place.data, name)],
  }
  const path = await located(program)
  // The variables that make it ask for permission take precedence, so they come last.
  return {
    ...program,
    env: { ...env, ...settingsOf(word) },
    ...(path !== undefined && { needs: await installedAt(path) }),
  }
}
