import { randomUUID } from 'node:crypto'
import type { Automation, Challenge, VisitorFrame, VisitorMessage } from '../../plugins/automations/contract.js'
import { chatEvents } from '../../plugins/console/web/widget/events.js'
import { solved } from '../../plugins/console/web/widget/proof.js'
import { automation } from './automations.js'

/** The site of the tests. */
export const SITE = 'https://shop.example'

/** A chat that the site's pages may show. */
export const chat = (
  id: string,
  more: Partial<Automation> = {},
  allowedOrigins: readonly string[] = [SITE],
): Automation =>
  automation(id, { trigger: { kind: 'listener', provider: 'webchat', allowedOrigins: [...allowedOrigins] }, ...more })

/** What a call was answered with. */
export interface ChatAnswer {
  readonly status: number
  readonly message: string
  readonly headers: Headers
}

/** A visitor's browser on a page of a site. */
export class TestVisitor {
  readonly thread: string
  readonly frames: VisitorFrame[] = []
  visitor: string | undefined
  readonly #url: string
  readonly #origin: string | undefined

  constructor(
    daemon: { readonly url: string },
    id: string,
    origin: string | undefined = SITE,
    thread: string = randomUUID(),
  ) {
    this.#url = `${daemon.url}/webchat/${id}`
    this.#origin = origin
    this.thread = thread
  }

  /** A request as the page makes it. */
  ask(path: string, init: RequestInit & { headers?: { [name: string]: string } } = {}): Promise<Response> {
    const origin = this.#origin === undefined ? {} : { origin: this.#origin }
    return fetch(this.#url + path, { ...init, headers: { ...origin, ...init.headers } })
  }

  async puzzle(thread = this.thread): Promise<Challenge> {
    return (await (await this.ask(`/challenge?conversation=${thread}`)).json()) as Challenge
  }

  async proof(): Promise<string> {
    const { salt, difficulty } = await this.puzzle()
    return (await solved(salt, difficulty, new AbortController().signal, async () => {}))!
  }

  post(message: Partial<VisitorMessage>): Promise<Response> {
    const { thread: conversationId, visitor } = this
    const body = { conversationId, messageId: randomUUID(), content: 'Hello', ...(visitor && { visitor }), ...message }
    return this.ask('/message', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  }

  /** Sends a message and reads what is answered until it ends. */
  async say(content: string, more: Partial<VisitorMessage> = {}): Promise<VisitorFrame[]> {
    const first = this.visitor === undefined && more.powNonce === undefined
    const response = await this.post({ content, ...(first && { powNonce: await this.proof() }), ...more })
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    return this.read(response)
  }

  /** The frames of an answer, up to the first that is wanted. */
  async read(response: Response, wanted: (frame: VisitorFrame) => boolean = () => false): Promise<VisitorFrame[]> {
    const seen: VisitorFrame[] = []
    for await (const { name, data } of chatEvents(response.body!)) {
      if (name !== 'message') continue
      const frame = data as VisitorFrame
      if (frame.kind === 'accepted') this.visitor = frame.visitor
      seen.push(frame)
      if (wanted(frame)) break
    }
    this.frames.push(...seen)
    return seen
  }

  /** Reads the thread after a position, up to the first frame that is wanted. */
  async follow(after: number, wanted: (frame: VisitorFrame) => boolean): Promise<VisitorFrame[]> {
    const query = `conversation=${this.thread}&visitor=${this.visitor}&after=${after}`
    const response = await this.ask(`/stream?${query}`)
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
    return this.read(response, wanted)
  }

  /** How a message is refused. */
  async refused(message: Partial<VisitorMessage>): Promise<ChatAnswer> {
    const response = await this.post(message)
    const { message: words = '' } = (await response.json()) as { message?: string }
    return { status: response.status, message: words, headers: response.headers }
  }
}

/** What the agent said, as whole messages. */
export const answersIn = (frames: readonly VisitorFrame[]): string[] =>
  frames.flatMap(frame => (frame.kind === 'message' && frame.from === 'agent' ? [frame.text] : []))

/** Whether a frame is a whole answer. */
export const isAnswer = (frame: VisitorFrame): boolean => frame.kind === 'message' && frame.from === 'agent'
