import { type Contract, type Host, refuse } from '../../sdk/index.js'
import { actionCalls } from './actions/actions.js'
import { agentKind, runtimeOf } from './agents/agent-kind.js'
import { AgentPlugins } from './agent-plugins/plugin-kind.js'
import { catalogFor, missingByKind } from './cards/catalog.js'
import { cardedKind } from './cards/carded-kind.js'
import { cliKind, variablesOfCli } from './cards/cli-kind.js'
import { OfferedCards } from './cards/offered-cards.js'
import { capabilities as calls, type CapabilitiesCalls } from './contract.js'
import { connectedEngine, dockerKind, engineForTurn, sweepEngineAttempts } from './docker/docker-kind.js'
import { ContainerEngines } from './docker/engines.js'
import { examples } from './examples.js'
import { Kinds } from './kinds/kinds.js'
import { loginCalls } from './login/calls.js'
import { SignInTokens } from './login/tokens.js'
import { oneTimeCodes } from './otp/calls.js'
import { Capabilities } from './records/capabilities.js'
import { CAPABILITIES_FILE } from './records/capability-file.js'
import type { KindHandler, OpenEntry } from './records/kinds.js'
import { Vault } from './records/vault.js'
import { Recommendations } from './recommendations/recommendations.js'
import { servers } from './servers/calls.js'
import { Sites } from './sites/site-kind.js'
import { skillOf } from './sites/skills.js'
import { SshDoors } from './ssh/doors.js'
import { sweepAttempts } from './ssh/handshake.js'
import { sshKind } from './ssh/ssh-kind.js'
import { serversForTurn } from './ssh/turn-servers.js'
import { assetOf, chainOf, walletKind } from './wallet/wallet-kind.js'
import { Wallets } from './wallet/wallets.js'

export const contract: Contract<CapabilitiesCalls> = { ...calls, examples }

const AGENT_FIELDS = ['command', 'name', 'env', 'loginCommand']
const MCP_FIELDS = [
  ...['transport', 'url', 'auth', 'token', 'headers', 'clientId', 'clientSecret', 'scopes', 'command', 'args', 'env'],
  ...['cwd', 'allowTools', 'denyTools', 'approve', 'timeoutMs'],
]

/** The kinds of which the programs of turns get something. */
const GIVEN: ReadonlySet<string> = new Set(['cli', 'ssh', 'docker'])

/** Connects outside systems and agent programs, and serves them to turns. */
export const activate = async (host: Host): Promise<void> => {
  const cards = new OfferedCards(host)
  const tokens = new SignInTokens(host, new Vault(host))
  const mcp = servers(host, {
    tokens,
    entries: () => capabilities.entries,
    changed: (id, status) => capabilities.changed(id, status),
    plugins: () => plugins,
  })
  const sites: Sites = new Sites(host, {
    cards,
    entries: () => capabilities.entries,
    status: id => capabilities.status(id),
  })
  host.on('browser.ended', ({ name }) => {
    void sites.ended(name).catch(error => host.log.warn('noting the end of a sign-in failed', { error: String(error) }))
  })
  const plugins: AgentPlugins = new AgentPlugins(host, {
    entries: () => capabilities.entries,
    sessions: mcp.sessions,
    servers: mcp.kind,
  })
  await sweepAttempts(host.place.folder)
  const doors = new SshDoors(host, () => capabilities.entries)
  await sweepEngineAttempts(host.place.folder)
  const engines = new ContainerEngines({ host, settings: () => connectedEngine(capabilities.entries) })
  host.on('turn.settled', ({ conversationId }) => engines.ended(conversationId))
  host.on('conversation.archived', ({ conversationId }) => void engines.release(conversationId))
  const own: KindHandler[] = [
    cardedKind(agentKind(host), cards, AGENT_FIELDS),
    cardedKind(mcp.kind, cards, MCP_FIELDS),
    ...[cliKind(cards), sshKind(host, doors), plugins, ...sites.kinds, walletKind(host)],
    dockerKind(host, engines, () => capabilities.entries),
  ]
  const kinds = new Kinds(host, own)
  const capabilities: Capabilities = new Capabilities(host, kinds, cards)
  const logins = loginCalls(host, {
    entries: () => capabilities.entries,
    vault: () => capabilities.vault,
    tokens,
    sites: () => sites,
    status: async id => {
      const status = await capabilities.status(id)
      await mcp.kind.signedIn(id)
      return status
    },
  })
  const wallets = new Wallets({
    host,
    entries: () => capabilities.entries,
    chain: chainOf(host),
    asset: config => assetOf(host, config),
  })
  const recommendations = new Recommendations(host, async () =>
    (await capabilities.entries.all()).map(({ kind, config, handler }) => ({
      card: handler?.card?.(config) ?? kind,
      config,
    })),
  )
  host.boot('Connections', async () => {
    await capabilities.recover()
    await plugins.sweep()
    await wallets.sweep()
    await engines.sweep()
  })

  host.contribute('system.manifestProblems', async () => [
    {
      path: CAPABILITIES_FILE,
      problems: [
        ...(await capabilities.entries.problems()).map(detail => ({ kind: 'invalidEntry' as const, detail })),
        ...(await capabilities.entries.unaccepted()).map(detail => ({ kind: 'unaccepted' as const, detail })),
      ],
    },
  ])

  const codes = oneTimeCodes(host, { entries: () => capabilities.entries, vault: capabilities.vault })
  await host.serve(calls, {
    ...mcp.calls,
    'mcp.release': async (asked, context) => {
      await engines.forget(asked.conversationId)
      return mcp.calls['mcp.release'](asked, context)
    },
    ...actionCalls(() => capabilities.entries),
    ...logins,
    ...codes.calls,
    ...wallets.calls,
    'GET /capabilities': async () => ({
      capabilities: await capabilities.list(),
      recommendations: await recommendations.list(),
    }),
    'DELETE /capabilities/recommendations/{card}': async ({ card }) => {
      await recommendations.dismiss(card)
      await host.call('kernel.events.publish', { domain: 'capabilities' })
      return { ok: true }
    },
    'POST /capabilities': (given, context) => capabilities.add(given, context),
    'DELETE /capabilities/{id}': ({ id }, context) => capabilities.remove(id, context),
    'POST /capabilities/{id}/rename': ({ id, to }, context) => capabilities.rename(id, to, context),
    'POST /capabilities/{id}/secret': (given, context) => capabilities.setSecret(given, context),
    'GET /capabilities/{id}/status': ({ id }) => capabilities.status(id),
    'GET /capabilities/catalog': async (_, { caller }) => {
      await cards.refresh()
      const known = await kinds.all()
      return catalogFor(caller, await capabilities.entries.all(), cards, known, await missingByKind(known))
    },
    'capabilities.records': async asked => ({ capabilities: await capabilities.records(asked) }),
    'capabilities.entry': ({ id, kind }) => capabilities.opened(id, kind),
    'capabilities.put': given => capabilities.put(given),
    'capabilities.drop': ({ id }) => capabilities.drop(id),
    'capabilities.runtime': async ({ id }) => {
      const found = await capabilities.entries.get(id)
      if (found.kind !== 'agent') refuse('conflict', `${id} is no agent program: it is of kind ${found.kind}`)
      const { entry, problem } = await capabilities.entries.open(found)
      return problem ? refuse('conflict', problem.detail!) : runtimeOf(entry, found.label)
    },
    'env.variables': async asked => {
      const { capabilities: wanted } = asked
      const variables: { [name: string]: string } = {}
      const reached: OpenEntry[] = []
      let engine: OpenEntry | undefined
      for (const found of await capabilities.entries.all()) {
        if (!GIVEN.has(found.kind) || (wanted && !wanted.includes(found.id))) continue
        const { entry, problem } = await capabilities.entries.open(found)
        if (problem) continue
        if (found.kind === 'ssh') reached.push(entry)
        else if (found.kind === 'docker') engine ??= entry
        else Object.assign(variables, variablesOfCli(entry, cards.cli(entry.config.provider)))
      }
      const servers = await serversForTurn(host, doors, reached)
      const containers = await engineForTurn(engines, asked, engine)
      const notes = [...(servers.notes ?? []), ...(containers.notes ?? [])]
      const agents = await plugins.folders(wanted)
      const shown = agents.filter(({ dir, seen }) => dir !== seen).map(({ dir, seen }) => ({ from: dir, to: seen }))
      const files = [...(servers.files ?? []), ...(containers.files ?? []), ...shown]
      return {
        variables: { ...variables, ...servers.variables, ...containers.variables },
        ...(notes.length > 0 && { notes }),
        ...(files.length > 0 && { files }),
        ...(agents.length > 0 && { agents }),
      }
    },
    'capabilities.profile': ({ id, capabilities: allowed }) => sites.profileFor(id, allowed),
    'capabilities.origins': async ({ id, capabilities: allowed }) => {
      const origins = await sites.originsOf(id, allowed)
      return origins ? { origins } : {}
    },
    'capabilities.code': async ({ id, capabilities: allowed }) => {
      if (allowed && !allowed.includes(id)) refuse('not-found', `this turn has no connection ${JSON.stringify(id)}`)
      return { code: (await codes.of(id)).code }
    },
    'capabilities.skills': async ({ capabilities: allowed }) => {
      const all = (await capabilities.entries.all()).filter(({ id }) => allowed?.includes(id) ?? true)
      const accepted = await Promise.all(all.map(entry => capabilities.entries.isAccepted(entry)))
      return { skills: all.flatMap((entry, at) => (accepted[at] ? (skillOf(entry, cards, sites) ?? []) : [])) }
    },
    'capabilities.agentFolders': async ({ capabilities: wanted }) => ({ folders: await plugins.folders(wanted) }),
  })
}
