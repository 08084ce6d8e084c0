import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { CapabilityServices } from '../contract.js'
import type { AgentPlugins } from '../agent-plugins/plugin-kind.js'
import type { CapabilityStatus, ShownConfig } from '../records/contract.js'
import type { Entries } from '../records/entries.js'
import { failingStatus } from '../records/kinds.js'
import type { ServerConnectionDeps } from './connection.js'
import type { ServerCalls } from './contract.js'
import { pausedSentence } from './crashes.js'
import { Elicitations } from './elicitations.js'
import { McpKind, refuseTools } from './mcp-kind.js'
import { isPluginServer } from './plugin-server.js'
import { ServerSessions } from './sessions.js'
import { mcpTools } from './tool-list.js'
import { callTool } from './tool-call.js'
import { TurnTools } from './turn-tools.js'

type Served = ServerCalls & Pick<CapabilityServices, 'mcp.tools' | 'mcp.call' | 'mcp.answer' | 'mcp.release'>

/** The servers of the Model Context Protocol, and what turns do with them. */
export interface Servers {
  readonly kind: McpKind
  readonly sessions: ServerSessions
  readonly calls: Handlers<Served>
}

/** What the servers need of the connections, which need them too. */
export interface RecordedConnections {
  entries(): Entries
  changed(id: string, status: CapabilityStatus): void
  plugins(): Pick<AgentPlugins, 'kind' | 'serversOf' | 'toolServers'>
  readonly tokens: ServerConnectionDeps['tokens']
}

/** Serves the tools of connected servers. */
export const servers = (host: Host, connections: RecordedConnections): Servers => {
  const elicitations = new Elicitations()
  const told = (type: string, extra: { [field: string]: string | string[] }, error?: string) =>
    void record(host, {
      type,
      actor: 'sandbox:capabilities',
      outcome: error === undefined ? 'ok' : 'error',
      ...(error !== undefined && { error }),
      extra,
    })
  const sessions: ServerSessions = new ServerSessions({
    host,
    elicitations,
    tokens: connections.tokens,
    crashed: (id, detail, paused) => {
      // A plugin is what its checkout is, whatever a server of it does.
      if (!isPluginServer(id))
        connections.changed(id, failingStatus(paused ? `${pausedSentence(id)} (${detail})` : detail, 'crashed'))
      told('capability.failed', { id, kind: 'mcp' }, detail)
    },
    toolsChanged: (id, connection) =>
      void turns
        .refresh(id, connection)
        .then(tools => kind.learned(id, tools))
        .catch(error => host.log.warn('reading changed tools failed', { id, error: String(error) })),
  })
  const entriesNow = (): Entries => connections.entries()
  const turns: TurnTools = new TurnTools({
    entries: { all: () => entriesNow().all(), open: entry => entriesNow().open(entry) },
    brought: capabilities => connections.plugins().toolServers(capabilities),
    sessions,
    store: host.store,
    signal: host.signal,
    log: host.log,
    changed: (id, names) => told('capability.tools-changed', { id, kind: 'mcp', tools: names.slice(0, 50) }),
  })
  const kind = new McpKind(host, sessions, turns, connections.tokens)
  const release = async (conversationId: string) => {
    turns.forget(conversationId)
    await sessions.release(conversationId)
  }
  host.on('turn.settled', ({ conversationId, run }) => {
    turns.ended(conversationId, run)
    sessions.ended(conversationId, run)
  })
  host.on('conversation.gone', ({ conversationId }) => void release(conversationId))
  host.on('conversation.archived', ({ conversationId }) => void release(conversationId))

  const pluginTools = async (id: string, config: ShownConfig, signal: AbortSignal) => {
    const entries = await connections.plugins().serversOf(id, config)
    if (entries.length === 0) refuse('conflict', `${id} has no tools: the plugin lists no tool server`)
    const met = await Promise.all(entries.map(async entry => ({ entry, met: await kind.meet(entry, signal) })))
    return met.flatMap(({ entry, met: { tools } }) => mcpTools(entry.id, entry.config, tools, new Set()))
  }

  return {
    kind,
    sessions,
    calls: {
      'GET /capabilities/{id}/tools': async ({ id, refresh = false }, { signal }) => {
        const found = await entriesNow().get(id)
        const { entry, problem } = await entriesNow().open(found)
        if (found.kind === connections.plugins().kind) {
          if (problem) refuse('dependency', problem.detail!)
          return { tools: await pluginTools(id, entry.config, signal) }
        }
        if (found.kind !== 'mcp') refuseTools(id, found.kind)
        if (problem) refuse('dependency', problem.detail!)
        const known = kind.met.get(id)
        const met = refresh || !known ? await kind.meet(entry, signal) : known
        const pid = (await sessions.live(id))?.pid
        return {
          tools: mcpTools(id, found.config, met.tools, await turns.trusted(id)),
          info: { ...met.info, ...(pid !== undefined && { pid }) },
        }
      },
      'mcp.tools': asked => turns.list(asked),
      'mcp.call': (asked, { signal }) => callTool({ turns, sessions }, asked, signal),
      'mcp.answer': answer => elicitations.answer(answer),
      'mcp.release': async ({ conversationId }) => {
        await release(conversationId)
        return { ok: true }
      },
    },
  }
}
