import type { ModelCall, ModelPrompt, ProviderOptions } from '../../../sdk/node/models/model-call.js'
import { objectIn, textIn, Unsayable, type Fields } from './fields.js'

/** The protocols that are translated. */
export type TranslatedProtocol = 'chat' | 'messages' | 'responses'

type Message = ModelPrompt[number]
export type UserPart = Extract<Message, { role: 'user' }>['content'][number]
export type AssistantPart = Extract<Message, { role: 'assistant' }>['content'][number]
export type TranslatedResult = Extract<Extract<Message, { role: 'tool' }>['content'][number], { type: 'tool-result' }>
type ResultPart = Extract<TranslatedResult['output'], { type: 'content' }>['value'][number]
export type TranslatedTool = Extract<NonNullable<ModelCall['tools']>[number], { type: 'function' }>

/** A request in the form that the packages of all protocols take. */
export interface TranslatedRequest {
  readonly call: ModelCall
  readonly model: string
  readonly stream: boolean
  /** A chat completion that is streamed tells its tokens only when it is asked to. */
  readonly tellsUsage: boolean
  /** The fields that were left out. */
  readonly dropped: readonly string[]
  /** Whether several tools may be called at once; left out: the server's own way. */
  readonly parallel?: boolean
}

/** Collects the fields of a request that are not said in the other protocol. */
export class Dropped {
  readonly #names = new Set<string>()

  add(name: string): void {
    this.#names.add(name)
  }

  /** Notes every field that nobody read. */
  unread(body: Fields, read: readonly string[]): void {
    for (const [name, value] of Object.entries(body))
      if (!read.includes(name) && value !== null && value !== undefined) this.#names.add(name)
  }

  get names(): string[] {
    return [...this.#names]
  }
}

/** A picture or a document of a request, by its address: the bytes in it, or where it is. */
export const fileAtAddress = (
  url: string,
  kind: string,
  path: string,
): Extract<UserPart, { type: 'file' }> & Extract<ResultPart, { type: 'file' }> => {
  const [, mediaType = kind, data] = /^data:([\w.+-]+\/[\w.+-]+)?(?:;[\w=-]+)*;base64,(.*)$/s.exec(url) ?? []
  if (data !== undefined) return { type: 'file', mediaType, data: { type: 'data', data } }
  const address = URL.parse(url)
  if (!address || !/^https?:$/.test(address.protocol))
    throw new Unsayable(`${path}: expected a data address in base64, or one of http or https`)
  return { type: 'file', mediaType: kind, data: { type: 'url', url: address } }
}

/** Adds content to the last message where it is of the same role, else a message. */
export class PromptBuilder {
  readonly #messages: Message[] = []
  /** The tools of calls so far, by the ids of the calls. */
  readonly #tools = new Map<string, string>()

  system(text: string): void {
    if (text === '') return
    // Later words of the system keep their place in the conversation.
    const opening = this.#messages.every(({ role }) => role === 'system')
    if (opening) this.#messages.push({ role: 'system', content: text })
    else this.user([{ type: 'text', text }])
  }

  user(content: readonly UserPart[]): void {
    const last = this.#messages.at(-1)
    if (content.length === 0) return
    if (last?.role === 'user') last.content.push(...content)
    else this.#messages.push({ role: 'user', content: [...content] })
  }

  assistant(content: readonly AssistantPart[]): void {
    const last = this.#messages.at(-1)
    if (content.length === 0) return
    for (const part of content) if (part.type === 'tool-call') this.#tools.set(part.toolCallId, part.toolName)
    if (last?.role === 'assistant') last.content.push(...content)
    else this.#messages.push({ role: 'assistant', content: [...content] })
  }

  result(id: string, output: TranslatedResult['output'], path: string): void {
    const toolName = this.#tools.get(id)
    if (toolName === undefined)
      throw new Unsayable(`${path}: expected the id of a call before it, found ${JSON.stringify(id.slice(0, 80))}`)
    const result: TranslatedResult = { type: 'tool-result', toolCallId: id, toolName, output }
    const last = this.#messages.at(-1)
    if (last?.role === 'tool') last.content.push(result)
    else this.#messages.push({ role: 'tool', content: [result] })
  }

  get prompt(): ModelPrompt {
    return this.#messages
  }
}

/** The input of a tool call as its text holds it; models write texts that are no JSON. */
export const callInput = (text: string): unknown => {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return { unparsed: text }
  }
}

const EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const

/** A level of effort that packages know. */
export const effortOf = (value: unknown): ModelCall['reasoning'] => EFFORTS.find(each => each === value)

/** The level of effort for a number of tokens. */
export const effortFor = (budget: number): ModelCall['reasoning'] =>
  budget <= 4_000 ? 'low' : budget <= 12_000 ? 'medium' : 'high'

/** How a package is asked for JSON. */
export const jsonFormat = (format: Fields | undefined, schema: Fields | undefined): ModelCall['responseFormat'] => {
  if (format?.type === 'json_object') return { type: 'json' }
  if (format?.type !== 'json_schema' || !schema) return undefined
  const name = textIn(schema.name)
  const description = textIn(schema.description)
  return {
    type: 'json',
    ...(objectIn(schema.schema) && { schema: schema.schema as object }),
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
  }
}

const MARK = 'translator.'

/** The signature of a thought whose server gave none: clients give back only signed ones. */
export const UNSIGNED = `${MARK}${Buffer.from('{}').toString('base64url')}`

/** What a server needs back with a thought, as one text for a protocol that has one field for it. */
export const packedMeta = (meta: ProviderOptions | undefined): string | undefined => {
  const { signature, redactedData } = meta?.anthropic ?? {}
  if (typeof signature === 'string' && redactedData === undefined) return signature
  const { itemId, reasoningEncryptedContent } = meta?.openai ?? {}
  const kept = {
    ...(typeof redactedData === 'string' && { redactedData }),
    ...(typeof reasoningEncryptedContent === 'string' && { reasoningEncryptedContent }),
    ...(typeof reasoningEncryptedContent === 'string' && typeof itemId === 'string' && { itemId }),
  }
  if (Object.keys(kept).length === 0) return undefined
  return MARK + Buffer.from(JSON.stringify(kept)).toString('base64url')
}

/** The opposite of `packedMeta`. */
export const unpackedMeta = (text: string | undefined): ProviderOptions | undefined => {
  if (!text) return undefined
  if (!text.startsWith(MARK)) return { anthropic: { signature: text } }
  let kept: unknown
  try {
    kept = JSON.parse(Buffer.from(text.slice(MARK.length), 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
  const [redactedData, content, itemId] = ['redactedData', 'reasoningEncryptedContent', 'itemId'].map(name =>
    textIn(objectIn(kept)?.[name]),
  )
  if (redactedData !== undefined) return { anthropic: { redactedData } }
  if (content === undefined) return undefined
  return { openai: { reasoningEncryptedContent: content, ...(itemId !== undefined && { itemId }) } }
}
