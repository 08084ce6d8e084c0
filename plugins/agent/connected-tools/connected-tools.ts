import type { Host } from '../../../sdk/index.js'
import type {
  ConnectedTool,
  ConnectedTools,
  ToolAnswered,
  ToolAsked,
  ToolElicits,
  ToolProgress,
} from '../../capabilities/contract.js'
import type { TurnPersona } from '../../personas/contract.js'
import type { CardDraft, OfferedTool, ToolResult } from '../providers/adapter.js'
import type { CardReply } from '../cards/card.js'
import { cut, MOST_RESULT } from '../tools/content.js'
import { elicitationCard, elicitationAnswer } from './elicitation.js'

/** The pause between two reports of progress that are shown: a tool may send any number. */
const PROGRESS_MS = 250
const NO_TOOLS: ConnectedTools = { tools: [], problems: [] }
/** The prefix of servers that are extensions. */
const OF_EXTENSION = 'extension:'

/** The dependencies of a call of a connected tool. */
export interface ConnectedCall {
  readonly signal: AbortSignal
  /** Parks the turn on a card; undefined: nobody answered. */
  readonly ask: (card: CardDraft) => Promise<CardReply | undefined>
  /** Shows how far the call is. */
  readonly progress: (text: string) => void
}

/** The tools of connected servers in one turn: read once, so that the list stays the same during the turn. */
export class ServerTools {
  readonly #host: Pick<Host, 'call' | 'serves'>
  readonly #turn: { readonly conversationId: string; readonly run: string }
  readonly #persona: Pick<TurnPersona, 'capabilities' | 'powers'> | undefined
  #tools: Promise<ReadonlyMap<string, ConnectedTool>> | undefined
  #problems: readonly string[] = []

  /** The tools of all servers and extensions, or of those that a persona allows. */
  constructor(
    host: Pick<Host, 'call' | 'serves'>,
    turn: { readonly conversationId: string; readonly run: string },
    persona?: Pick<TurnPersona, 'capabilities' | 'powers'>,
  ) {
    this.#persona = persona
    this.#host = host
    this.#turn = turn
  }

  /** The tools by the names that the model uses. */
  all(): Promise<ReadonlyMap<string, ConnectedTool>> {
    this.#tools ??= this.#read()
    return this.#tools
  }

  async find(name: string): Promise<ConnectedTool | undefined> {
    return (await this.all()).get(name)
  }

  async offered(): Promise<OfferedTool[]> {
    return [...(await this.all()).values()].map(({ agentName, description, input, readOnly }) => ({
      name: agentName,
      description,
      input,
      category: 'other',
      readOnly,
    }))
  }

  /** Sentences about servers that could not be reached, each once. */
  takeProblems(): readonly string[] {
    const problems = this.#problems
    this.#problems = []
    return problems
  }

  /** Calls a tool; questions of its server become cards. */
  async call(
    { server, name }: ConnectedTool,
    input: object,
    { signal, ask, progress }: ConnectedCall,
  ): Promise<ToolResult> {
    const asked = { ...this.#turn, server, name, input: { ...input } }
    let shownAt = -Infinity
    for await (const event of await this.#events(asked, signal)) {
      if (event.kind === 'result') return resultOf(event)
      if (event.kind === 'elicit') await this.#answer(event, ask)
      else if (performance.now() - shownAt >= PROGRESS_MS) {
        shownAt = performance.now()
        progress(cut(event.message))
      }
    }
    return resultOf({ kind: 'result', ok: false, text: `${server} ended the call without a result` })
  }

  #events(asked: ToolAsked, signal: AbortSignal): Promise<AsyncIterable<ToolAnswered | ToolElicits | ToolProgress>> {
    return asked.server.startsWith(OF_EXTENSION)
      ? this.#host.call('extensions.tool', asked, { signal })
      : this.#host.call('mcp.call', asked, { signal })
  }

  async #answer(asked: ToolElicits, ask: ConnectedCall['ask']): Promise<void> {
    const card = elicitationCard(asked)
    const answer = card ? elicitationAnswer(asked, await ask(card)) : { action: 'decline' as const }
    await this.#host.call('mcp.answer', { id: asked.id, ...answer })
  }

  async #read(): Promise<ReadonlyMap<string, ConnectedTool>> {
    const all = await Promise.all([this.#ofExtensions(), this.#ofServers()])
    this.#problems = all.flatMap(({ problems }) => problems)
    return new Map(all.flatMap(({ tools }) => tools.map(tool => [tool.agentName, tool])))
  }

  async #ofExtensions(): Promise<ConnectedTools> {
    if (!(await this.#host.serves('extensions.tools'))) return NO_TOOLS
    const all = await this.#host.call('extensions.tools')
    const allowed = this.#persona?.powers.extensions
    if (!allowed) return all
    return { ...all, tools: all.tools.filter(({ server }) => allowed.includes(server.slice(OF_EXTENSION.length))) }
  }

  async #ofServers(): Promise<ConnectedTools> {
    if (!(await this.#host.serves('mcp.tools'))) return NO_TOOLS
    return this.#host.call('mcp.tools', {
      ...this.#turn,
      ...(this.#persona && { capabilities: [...this.#persona.capabilities] }),
    })
  }
}

const resultOf = ({ ok, text, structured, pictures = [] }: ToolAnswered): ToolResult => {
  const seen = pictures.length > 0 ? `\n[${pictures.length} pictures are not shown]` : ''
  const whole = `${text || (structured ? JSON.stringify(structured) : '')}${seen}`
  return { ok, text: cut(whole, MOST_RESULT), content: [{ type: 'text', text: cut(whole) }] }
}
