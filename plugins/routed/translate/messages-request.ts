import type { ModelCall } from '../../../sdk/node/models/model-call.js'
import { offered, definedFields } from './chat-request.js'
import { numberIn, objectIn, listIn, objectsOf, textIn, Unsayable, type Fields } from './fields.js'
import {
  Dropped,
  effortFor,
  effortOf,
  fileAtAddress,
  PromptBuilder,
  unpackedMeta,
  type AssistantPart,
  type TranslatedTool,
  type TranslatedResult,
  type TranslatedRequest,
  type UserPart,
} from './translated.js'

const READ = [
  ...['model', 'messages', 'system', 'stream', 'tools', 'tool_choice', 'max_tokens', 'temperature', 'top_p', 'top_k'],
  ...['stop_sequences', 'thinking', 'output_config'],
]

/** A request in the protocol of messages. */
export const fromMessages = (body: Fields): TranslatedRequest => {
  const dropped = new Dropped()
  dropped.unread(body, READ)
  const builder = new PromptBuilder()
  for (const text of systemTexts(body.system, dropped)) builder.system(text)
  objectsOf(body.messages, 'messages').forEach((message, at) => addMessage(builder, message, `messages.${at}`, dropped))
  const tools = objectsOf(body.tools, 'tools').flatMap((tool, at) => toolOf(tool, `tools.${at}`, dropped))
  const choice = objectIn(body.tool_choice)
  const toolChoice = askedChoice(choice, tools)
  const stop = listIn(body.stop_sequences).flatMap(each => textIn(each) ?? [])
  const format = objectIn(objectIn(body.output_config)?.format)
  const schema = format?.type === 'json_schema' ? objectIn(format.schema) : undefined
  const sampling = {
    maxOutputTokens: numberIn(body.max_tokens),
    temperature: numberIn(body.temperature),
    topP: numberIn(body.top_p),
    topK: numberIn(body.top_k),
    reasoning: reasoningOf(body),
  }
  return {
    call: {
      prompt: builder.prompt,
      ...definedFields(sampling),
      ...(stop.length > 0 && { stopSequences: stop }),
      ...(schema && { responseFormat: { type: 'json', schema: schema as object } }),
      ...(tools.length > 0 && { tools }),
      ...(toolChoice && { toolChoice }),
    },
    model: textIn(body.model) ?? '',
    stream: body.stream === true,
    tellsUsage: true,
    dropped: dropped.names,
    ...(typeof choice?.disable_parallel_tool_use === 'boolean' && { parallel: !choice.disable_parallel_tool_use }),
  }
}

const reasoningOf = ({ thinking, output_config: config }: Fields): ModelCall['reasoning'] => {
  const asked = objectIn(thinking)
  if (asked?.type === 'disabled') return 'none'
  const effort = effortOf(objectIn(config)?.effort)
  if (effort !== undefined || asked === undefined) return effort
  const budget = numberIn(asked.budget_tokens)
  return budget === undefined ? 'medium' : effortFor(budget)
}

/** Marks of the cache mean nothing elsewhere. */
const withoutMarks = (part: Fields, dropped: Dropped): Fields => {
  if (part.cache_control !== undefined && part.cache_control !== null) dropped.add('cache_control')
  return part
}

const systemTexts = (system: unknown, dropped: Dropped): string[] =>
  typeof system === 'string'
    ? [system]
    : objectsOf(system, 'system').map(part => textIn(withoutMarks(part, dropped).text) ?? '')

const toolOf = (tool: Fields, path: string, dropped: Dropped): TranslatedTool[] => {
  withoutMarks(tool, dropped)
  if ((tool.type ?? 'custom') !== 'custom') {
    dropped.add(path)
    return []
  }
  return [offered(tool, tool.input_schema, path)]
}

const askedChoice = (choice: Fields | undefined, tools: readonly TranslatedTool[]): ModelCall['toolChoice'] => {
  switch (choice?.type) {
    case undefined:
      return undefined
    case 'auto':
    case 'none':
      return { type: choice.type }
    case 'any':
      return { type: 'required' }
    case 'tool':
      if (tools.some(({ name }) => name === choice.name)) return { type: 'tool', toolName: choice.name as string }
  }
  throw new Unsayable(
    `tool_choice: expected auto, any, none or a tool of tools, found ${JSON.stringify(choice).slice(0, 120)}`,
  )
}

const addMessage = (builder: PromptBuilder, message: Fields, path: string, dropped: Dropped): void => {
  const { role } = message
  const content: readonly Fields[] =
    typeof message.content === 'string'
      ? [{ type: 'text', text: message.content }]
      : objectsOf(message.content, `${path}.content`)
  if (role === 'assistant')
    return builder.assistant(content.map((part, at) => assistantPart(part, `${path}.content.${at}`, dropped)))
  if (role === 'system') return builder.system(content.map(part => textIn(part.text) ?? '').join('\n'))
  if (role !== 'user') throw new Unsayable(`${path}.role: expected user or assistant`)
  content.forEach((part, at) => {
    const where = `${path}.content.${at}`
    if (part.type === 'tool_result') {
      withoutMarks(part, dropped)
      builder.result(textIn(part.tool_use_id) ?? '', outputOf(part, where, dropped), `${where}.tool_use_id`)
    } else builder.user([userPart(part, where, dropped)])
  })
}

const userPart = (part: Fields, path: string, dropped: Dropped): UserPart => {
  withoutMarks(part, dropped)
  if (part.type === 'text') return { type: 'text', text: textIn(part.text) ?? '' }
  if (part.type === 'image' || part.type === 'document') return filePart(part, path)
  throw new Unsayable(`${path}: a block of type ${JSON.stringify(part.type)?.slice(0, 40)} cannot be said here`)
}

const filePart = (part: Fields, path: string): ReturnType<typeof fileAtAddress> => {
  const source = objectIn(part.source)
  const picture = part.type === 'image'
  const title = textIn(part.title)
  const named = title === undefined ? {} : { filename: title }
  const kind = picture ? 'image/*' : 'application/pdf'
  if (source?.type === 'base64')
    return { ...fileAtAddress(`data:${String(source.media_type)};base64,${String(source.data)}`, kind, path), ...named }
  if (source?.type === 'url') return { ...fileAtAddress(textIn(source.url) ?? '', kind, path), ...named }
  if (source?.type === 'text' && typeof source.data === 'string') {
    const data = Buffer.from(source.data).toString('base64')
    return { type: 'file', mediaType: 'text/plain', data: { type: 'data', data }, ...named }
  }
  throw new Unsayable(`${path}.source: expected base64, url or text, found ${JSON.stringify(source?.type)}`)
}

const assistantPart = (part: Fields, path: string, dropped: Dropped): AssistantPart => {
  withoutMarks(part, dropped)
  switch (part.type) {
    case 'text':
      return { type: 'text', text: textIn(part.text) ?? '' }
    case 'thinking': {
      const meta = unpackedMeta(textIn(part.signature))
      return { type: 'reasoning', text: textIn(part.thinking) ?? '', ...(meta && { providerOptions: meta }) }
    }
    case 'redacted_thinking': {
      const data = textIn(part.data) ?? ''
      const packed = data.startsWith('translator.') ? unpackedMeta(data) : undefined
      return { type: 'reasoning', text: '', providerOptions: packed ?? { anthropic: { redactedData: data } } }
    }
    case 'tool_use': {
      const [toolCallId, toolName] = [textIn(part.id), textIn(part.name)]
      if (!toolCallId || !toolName) throw new Unsayable(`${path}: expected an id and a name`)
      return { type: 'tool-call', toolCallId, toolName, input: part.input ?? {} }
    }
    default:
      throw new Unsayable(`${path}: a block of type ${JSON.stringify(part.type)?.slice(0, 40)} cannot be said here`)
  }
}

const outputOf = (part: Fields, path: string, dropped: Dropped): TranslatedResult['output'] => {
  const failed = part.is_error === true
  const blocks: readonly Fields[] =
    typeof part.content === 'string'
      ? [{ type: 'text', text: part.content }]
      : objectsOf(part.content, `${path}.content`)
  if (blocks.every(({ type }) => type === 'text'))
    return { type: failed ? 'error-text' : 'text', value: blocks.map(({ text }) => textIn(text) ?? '').join('\n') }
  return {
    type: 'content',
    value: blocks.map((block, at) => {
      const made = userPart(block, `${path}.content.${at}`, dropped)
      return made.type === 'text' ? { type: 'text', text: made.text } : (made as ReturnType<typeof fileAtAddress>)
    }),
  }
}
