import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import { removeProgramHome, renameProgramHome } from '../../../sdk/node/wall/home.js'
import { assertInstalled } from '../agents/program-wall.js'
import type { CapabilityStatus, ShownConfig } from '../records/contract.js'
import { activeStatus, failingStatus, type KindActions, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { toolServerIn } from './config.js'
import { ServerFailure, withConnection, type ServerConnection, type ServerConnectionDeps } from './connection.js'
import { pausedSentence } from './crashes.js'
import type { McpInfo } from './contract.js'
import { serverActions } from './server-actions.js'
import type { ServerSessions } from './sessions.js'
import { mcpTools, type ServerTool } from './tool-list.js'
import type { TurnTools } from './turn-tools.js'

const TRUSTED_MS = 60_000
const PING_MS = 2000

/** A server as it was met last. */
export interface MetServer {
  readonly tools: readonly ServerTool[]
  readonly info: McpInfo
  readonly config: ShownConfig
  readonly at: number
}

/** Servers of the Model Context Protocol as connections. */
export class McpKind implements KindHandler {
  readonly kind = 'mcp'
  readonly met = new Map<string, MetServer>()
  readonly actions: KindActions
  readonly #host: Pick<Host, 'place' | 'call' | 'serves' | 'signal'>
  readonly #sessions: ServerSessions
  readonly #turns: TurnTools
  readonly #tokens: ServerConnectionDeps['tokens']

  constructor(
    host: Pick<Host, 'place' | 'call' | 'serves' | 'signal'>,
    sessions: ServerSessions,
    turns: TurnTools,
    tokens: ServerConnectionDeps['tokens'],
  ) {
    this.#tokens = tokens
    this.#host = host
    this.#sessions = sessions
    this.#turns = turns
    const known = (id: string) => this.met.get(id)
    this.actions = serverActions({ host, tokens, known, meet: entry => this.meet(entry, host.signal) })
  }

  secretFields(): readonly string[] {
    return ['token', 'headers', 'env', 'clientSecret']
  }

  mainSecret({ transport }: ShownConfig): string {
    return transport === 'stdio' ? 'env' : 'token'
  }

  label(): undefined {
    return undefined
  }

  async check(entry: OpenEntry): Promise<void> {
    const server = toolServerIn(entry)
    if (server.kind === 'stdio') await assertInstalled(this.#host.place, { id: entry.id, program: server.program })
  }

  async apply(entry: OpenEntry, report: (message: string) => void, signal: AbortSignal): Promise<CapabilityStatus> {
    const server = toolServerIn(entry)
    report(server.kind === 'stdio' ? `starting ${server.program} behind the wall` : `connecting to ${server.url.host}`)
    const met = await this.meet(entry, signal).catch((error: unknown) => {
      if (error instanceof ServerFailure && error.code === 'sign-in') return error
      throw error
    })
    if (met instanceof ServerFailure) {
      report(met.message)
      return failingStatus(met.message, met.code)
    }
    const { tools, info } = met
    const { name, version } = info.server ?? { name: entry.id, version: '' }
    report(`${name} ${version} speaks version ${info.protocol ?? 'unknown'} of the protocol over ${info.transport}`)
    const offered = mcpTools(entry.id, entry.config, tools, new Set()).filter(tool => tool.offered).length
    report(`it has ${tools.length} tools, of which ${offered} are offered`)
    return activeStatus()
  }

  /** Connects anew, as no conversation, and ends that again. */
  meet(entry: OpenEntry, signal: AbortSignal): Promise<MetServer> {
    // As a turn meets it: some servers have more tools for a client that can be asked.
    const elicit = async () => ({ action: 'decline' as const })
    return withConnection({ host: this.#host, entry, tokens: this.#tokens, signal, elicit }, async connection => {
      const [tools, info] = [await connection.tools(signal), await connection.info(signal)]
      await connection.client.ping({ signal })
      const { pid: _, ...lasting } = info
      const met = { tools, info: lasting, config: entry.config, at: Date.now() }
      this.met.set(entry.id, met)
      return met
    })
  }

  /** A person signed in: what the server says of its tools then is believed, as when it is connected. */
  async signedIn(id: string): Promise<void> {
    const met = this.met.get(id)
    if (met && !(await this.#turns.knows(id))) await this.#turns.trust(id, met.tools)
  }

  /** The server said that it has other tools now. */
  learned(id: string, tools: readonly ServerTool[]): void {
    const met = this.met.get(id)
    if (met) this.met.set(id, { ...met, tools })
  }

  async probe(entry: OpenEntry, signal: AbortSignal, thorough: boolean): Promise<CapabilityStatus> {
    const { id } = entry
    try {
      if (thorough) this.#sessions.crashes.clear(id)
      if (this.#sessions.crashes.paused(id)) return failingStatus(pausedSentence(id), 'crashed')
      const live = await this.#sessions.live(id)
      if (live && !thorough) await ping(live, signal)
      else if (thorough || Date.now() - (this.met.get(id)?.at ?? 0) > TRUSTED_MS) await this.meet(entry, signal)
      return activeStatus()
    } catch (error) {
      if (error instanceof ServerFailure) return failingStatus(error.message, error.code)
      if (error instanceof Refusal)
        return failingStatus(error.message, error.reason === 'missing-program' ? 'missing-program' : undefined)
      throw error
    }
  }

  async recorded({ id }: OpenEntry): Promise<void> {
    const met = this.met.get(id)
    if (met) await this.#turns.trust(id, met.tools)
    else await this.#turns.distrust(id)
    await this.#sessions.endAll(id)
  }

  async forget(id: string): Promise<void> {
    await this.#sessions.endAll(id)
    this.met.delete(id)
    await this.#turns.distrust(id)
    await removeProgramHome(this.#host.place.data, id)
  }

  async rename(id: string, to: string): Promise<void> {
    await this.#sessions.endAll(id)
    this.met.delete(id)
    await this.#turns.carryTrust(id, to)
    await renameProgramHome(this.#host.place.data, id, to)
  }

  busy(id: string): boolean {
    return this.#sessions.busy(id)
  }

  tools(id: string): number | undefined {
    const met = this.met.get(id)
    return met && mcpTools(id, met.config, met.tools, new Set()).filter(({ offered }) => offered).length
  }
}

const ping = async (connection: ServerConnection, signal: AbortSignal): Promise<void> => {
  try {
    await connection.client.ping({ signal, timeout: PING_MS })
  } catch (error) {
    throw await connection.failure(error)
  }
}

/** Refuses to list the tools of a connection that has none. */
export const refuseTools = (id: string, kind: string): never =>
  refuse('conflict', `${id} has no tools: connections of kind ${kind} give agents none`)
