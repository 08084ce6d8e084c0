import type { Host } from '../../../sdk/index.js'
import type {
  ConnectedTool,
  ConnectedTools,
  ToolAnswered,
  ToolAsked,
  ToolElicits,
} from '../../capabilities/contract.js'
import type { ExtensionToolEvent, ToolOffers, ToolPays, ToolServes } from '../../extensions/contract.js'
import type { PaymentRequest } from '../../../sdk/node/extension/protocol.js'
import type { TurnPersona } from '../../personas/contract.js'
import { shownPicture, type KeepPicture } from '../outputs/pictures.js'
import type { CardDraft, OfferedTool, SentPicture, ToolResult } from '../providers/adapter.js'
import type { CardReply } from '../cards/card.js'
import { cut, MOST_RESULT } from '../tools/content.js'
import type { Frame } from '../turn/frames/frames.js'
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
  /** Shows how a service runs that a person allowed. */
  readonly show: (frame: Frame) => void
  /** Pays on behalf of an extension, as a call of the tool Pay of the turn: the `nth` of this call. */
  readonly pay: (input: PaymentRequest, nth: number) => Promise<ToolResult>
  /** Keeps pictures for models that see. */
  readonly picture?: KeepPicture | undefined
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
    { signal, ask, progress, show, pay, picture }: ConnectedCall,
  ): Promise<ToolResult> {
    const asked = { ...this.#turn, server, name, input: { ...input } }
    const cards = new Map<string, string>()
    let shownAt = -Infinity
    for await (const event of await this.#events(asked, signal)) {
      if (event.kind === 'result') return resultOf(event, `${server} ${name}`, picture)
      if (event.kind === 'elicit') await this.#answer(event, ask)
      else if (event.kind === 'offer') await this.#offer(event, ask, cards)
      else if (event.kind === 'pay') await this.#pay(event, pay)
      else if (event.kind === 'served') show(serviceFrame(event, cards.get(event.id)!))
      else if (performance.now() - shownAt >= PROGRESS_MS) {
        shownAt = performance.now()
        progress(cut(event.message))
      }
    }
    return resultOf({ kind: 'result', ok: false, text: `${server} ended the call without a result` }, server)
  }

  #events(asked: ToolAsked, signal: AbortSignal): Promise<AsyncIterable<ToolElicits | ExtensionToolEvent>> {
    return asked.server.startsWith(OF_EXTENSION)
      ? this.#host.call('extensions.tool', asked, { signal })
      : this.#host.call('mcp.call', asked, { signal })
  }

  /** Puts up the offer of an extension; a yes allows exactly one run. */
  async #offer(
    { id, publisher, offer }: ToolOffers,
    ask: ConnectedCall['ask'],
    cards: Map<string, string>,
  ): Promise<void> {
    const reply = await ask({ kind: 'service_offer', offer: { ...offer, publisher } })
    const approve = reply?.kind === 'service_offer' && reply.approve
    if (approve) cards.set(id, reply.requestId)
    await this.#host.call('extensions.answerOffer', { id, approve })
  }

  /** Pays for an extension, and says what came of it. */
  async #pay({ id, nth, payment }: ToolPays, pay: ConnectedCall['pay']): Promise<void> {
    const { ok, text } = await pay(payment, nth)
    await this.#host.call('extensions.answerPayment', { id, ok, text })
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

const serviceFrame = ({ event }: ToolServes, requestId: string): Frame => {
  if (event.event !== 'receipt') return { kind: 'service_event', requestId, event }
  const { outcome, credits, remaining } = event
  return { kind: 'service_receipt', requestId, outcome, credits, ...(remaining !== undefined && { remaining }) }
}

const resultOf = async (
  { ok, text, structured, pictures = [] }: ToolAnswered,
  name: string,
  picture?: KeepPicture,
): Promise<ToolResult> => {
  const [lines, shown]: [string[], SentPicture[]] = [[], []]
  for (const [at, { data }] of pictures.entries()) {
    const sent = await shownPicture(picture, `${at + 1} of ${name}`, Buffer.from(data, 'base64'))
    if (typeof sent !== 'string') shown.push(sent)
    lines.push(`[picture ${at + 1} is ${typeof sent === 'string' ? `not shown: ${sent}` : 'shown'}]`)
  }
  const whole = [text || (structured ? JSON.stringify(structured) : ''), ...lines].filter(Boolean).join('\n')
  const result = { ok, text: cut(whole, MOST_RESULT), content: [{ type: 'text' as const, text: cut(whole) }] }
  return { ...result, ...(shown.length > 0 && { pictures: shown }) }
}
