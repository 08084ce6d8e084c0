import { Refusal, type Log, type Store } from '../../../sdk/index.js'
import { connectionActionKey } from '../actions/action-key.js'
import type { ConnectedTool, ConnectedTools, ToolsAsked } from '../contract.js'
import type { Entries, OpenedEntry } from '../records/entries.js'
import type { OpenEntry } from '../records/kinds.js'
import type { ServerConnection } from './connection.js'
import { isPluginServer } from './plugin-server.js'
import { agentNameOf, toolDigestOf, mcpTools, type ServerTool } from './tool-list.js'
import type { ServerSessions } from './sessions.js'

const MOST_RUNS = 8
const TRUSTED = 'read-only/'
/** How long a turn waits for a server to start. */
const PATIENCE_MS = 30_000

interface Offer {
  readonly entry: OpenEntry
  readonly tool: ConnectedTool
}
/** What one turn is offered: it stays so while the turn runs. */
export interface TurnOffers {
  readonly offers: readonly Offer[]
  readonly problems: readonly string[]
}

export interface TurnToolsDeps {
  readonly entries: Pick<Entries, 'all' | 'open'>
  /** The tool servers of plugins, by the connections that a turn may use. */
  readonly brought: (capabilities: readonly string[] | undefined) => Promise<readonly OpenEntry[]>
  readonly sessions: ServerSessions
  readonly store: Pick<Store, 'get' | 'set' | 'delete'>
  readonly signal: AbortSignal
  readonly log: Log
  /** Tools of a server mean something else than when they were offered last. */
  readonly changed: (id: string, names: readonly string[]) => void
}

/** The tools that turns are offered. */
export class TurnTools {
  readonly #deps: TurnToolsDeps
  readonly #turns = new Map<string, Map<string, Promise<TurnOffers>>>()
  /** What each tool of a server meant when it was seen last. */
  readonly #seen = new Map<string, Map<string, string>>()

  constructor(deps: TurnToolsDeps) {
    this.#deps = deps
  }

  async list(asked: ToolsAsked): Promise<ConnectedTools> {
    const { offers, problems } = await this.of(asked)
    return { tools: offers.map(({ tool }) => structuredClone(tool)), problems: [...problems] }
  }

  /** What a turn is offered, found out at its first question. */
  of(asked: ToolsAsked): Promise<TurnOffers> {
    const { conversationId, run } = asked
    const turns = this.#turns.get(conversationId) ?? new Map<string, Promise<TurnOffers>>()
    this.#turns.set(conversationId, turns)
    const known = turns.get(run)
    if (known) return known
    this.#deps.sessions.begun(conversationId, run)
    const found = this.#find(asked)
    turns.set(run, found)
    for (const old of [...turns.keys()].slice(0, -MOST_RUNS)) turns.delete(old)
    // A list that could not be made is made again.
    found.catch(() => turns.delete(run))
    return found
  }

  ended(conversationId: string, run: string): void {
    this.#turns.get(conversationId)?.delete(run)
    if (this.#turns.get(conversationId)?.size === 0) this.#turns.delete(conversationId)
  }

  forget(conversationId: string): void {
    this.#turns.delete(conversationId)
  }

  /** A maintainer saved a connection: what its server says of its tools now is believed. */
  async trust(id: string, tools: readonly ServerTool[]): Promise<void> {
    const names = tools.filter(({ readOnlyHint }) => readOnlyHint).map(({ name }) => name)
    await this.#deps.store.set(TRUSTED + id, names)
    this.#seen.delete(id)
  }

  /** Whether a maintainer saved it while its tools were known. */
  async knows(id: string): Promise<boolean> {
    return (await this.#deps.store.get<string[]>(TRUSTED + id)) !== undefined
  }

  async trusted(id: string): Promise<ReadonlySet<string>> {
    return new Set(await this.#deps.store.get<string[]>(TRUSTED + id))
  }

  async distrust(id: string): Promise<void> {
    await this.#deps.store.delete(TRUSTED + id)
    this.#seen.delete(id)
  }

  async carryTrust(id: string, to: string): Promise<void> {
    await this.#deps.store.set(TRUSTED + to, [...(await this.trusted(id))])
    await this.distrust(id)
  }

  /** Compares the tools of a server with those seen last, and reports those that mean something else. */
  see(id: string, tools: readonly ServerTool[]): void {
    const before = this.#seen.get(id)
    const now = new Map(tools.map(tool => [tool.name, toolDigestOf(tool)]))
    this.#seen.set(id, now)
    const changed = before ? [...now].filter(([name, digest]) => (before.get(name) ?? digest) !== digest) : []
    if (changed.length > 0)
      this.#deps.changed(
        id,
        changed.map(([name]) => name),
      )
  }

  /** The server says that its tools changed: turns that run keep theirs, and the next ones get the new. */
  async refresh(id: string, connection: ServerConnection): Promise<readonly ServerTool[]> {
    const tools = await connection.tools(this.#deps.signal)
    this.see(id, tools)
    return tools
  }

  async #find({ conversationId, capabilities }: ToolsAsked): Promise<TurnOffers> {
    const all = await this.#deps.entries.all()
    const wanted = all.filter(({ id, kind }) => kind === 'mcp' && (capabilities?.includes(id) ?? true))
    const brought = await this.#deps.brought(capabilities)
    const found = await Promise.all([
      ...wanted.map(entry => this.#ofServer(conversationId, entry.id, () => this.#deps.entries.open(entry))),
      ...brought.map(entry => this.#ofServer(conversationId, entry.id, async () => ({ entry }))),
    ])
    const taken = new Set<string>()
    const offers = found
      .flatMap(({ offers: some = [] }) => some)
      .map(({ entry, tool }) => {
        const agentName = agentNameOf(tool.server, tool.name, taken)
        taken.add(agentName)
        return { entry, tool: { ...tool, agentName } }
      })
    return { offers, problems: found.flatMap(({ problem }) => problem ?? []) }
  }

  async #ofServer(
    conversationId: string,
    id: string,
    open: () => Promise<OpenedEntry>,
  ): Promise<{ offers?: Offer[]; problem?: string }> {
    try {
      const { entry, problem } = await open()
      if (problem) return { problem: `${id}: ${problem.detail}` }
      const tools = await this.#toolsNow(conversationId, entry)
      const shown = mcpTools(id, entry.config, tools, await this.trusted(id))
      return {
        offers: shown
          .filter(({ offered }) => offered)
          .map(({ offered: _, withheld: __, ...tool }) => {
            // A plugin carries no actions out later.
            const action = tool.readOnly || isPluginServer(id) ? {} : { action: connectionActionKey(id, tool.name) }
            return { entry, tool: { server: id, ...tool, ...action } }
          }),
      }
    } catch (error) {
      if (error instanceof Refusal) return { problem: `${id}: ${error.message}` }
      this.#deps.signal.throwIfAborted()
      this.#deps.log.warn('listing the tools of a server failed', { id, error: String(error) })
      return { problem: `${id}: its tools could not be listed` }
    }
  }

  /** Where the process of the turn before has just ended, one that starts now is asked. */
  async #toolsNow(conversationId: string, entry: OpenEntry): Promise<readonly ServerTool[]> {
    const { sessions } = this.#deps
    const kept = sessions.holds(conversationId, entry.id)
    const connection = await sessions.get(conversationId, entry)
    try {
      return await this.#toolsOf(entry.id, connection)
    } catch (error) {
      const over = connection.closed || (await connection.crash()) !== undefined
      if (!kept || !over) throw error
      return this.#toolsOf(entry.id, await sessions.get(conversationId, entry))
    }
  }

  async #toolsOf(id: string, connection: ServerConnection): Promise<readonly ServerTool[]> {
    try {
      const over = AbortSignal.any([this.#deps.signal, AbortSignal.timeout(PATIENCE_MS)])
      const tools = await connection.tools(over)
      this.see(id, tools)
      return tools
    } catch (error) {
      throw await connection.failure(error)
    }
  }
}
