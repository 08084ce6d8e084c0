import type { ModelCall } from '../../../sdk/node/models/model-call.js'
import { numberIn, objectIn, listIn, objectsOf, textIn, Unsayable, type Fields } from './fields.js'
import {
  Dropped,
  effortOf,
  fileAtAddress,
  jsonFormat,
  callInput,
  PromptBuilder,
  unpackedMeta,
  type AssistantPart,
  type TranslatedTool,
  type TranslatedRequest,
  type UserPart,
} from './translated.js'

const READ = [
  ...['model', 'messages', 'stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls'],
  ...['max_tokens', 'max_completion_tokens', 'temperature', 'top_p', 'top_k', 'stop', 'seed', 'response_format'],
  ...['presence_penalty', 'frequency_penalty', 'reasoning_effort', 'n'],
]

/** A request for a chat completion. */
export const fromChat = (body: Fields): TranslatedRequest => {
  const dropped = new Dropped()
  dropped.unread(body, READ)
  if ((numberIn(body.n) ?? 1) !== 1) throw new Unsayable('n: expected 1, since the provider gives one answer')
  const builder = new PromptBuilder()
  objectsOf(body.messages, 'messages').forEach((message, at) => addMessage(builder, message, `messages.${at}`, dropped))
  const tools = objectsOf(body.tools, 'tools').flatMap((tool, at) => toolOf(tool, `tools.${at}`, dropped))
  const stop = typeof body.stop === 'string' ? [body.stop] : listIn(body.stop).flatMap(each => textIn(each) ?? [])
  const format = objectIn(body.response_format)
  const responseFormat = jsonFormat(format, objectIn(format?.json_schema))
  const toolChoice = askedChoice(body.tool_choice, tools)
  const parallel = body.parallel_tool_calls
  const sampling = {
    maxOutputTokens: numberIn(body.max_completion_tokens) ?? numberIn(body.max_tokens),
    temperature: numberIn(body.temperature),
    topP: numberIn(body.top_p),
    topK: numberIn(body.top_k),
    seed: numberIn(body.seed),
    presencePenalty: numberIn(body.presence_penalty),
    frequencyPenalty: numberIn(body.frequency_penalty),
    reasoning: effortOf(body.reasoning_effort),
  }
  return {
    call: {
      prompt: builder.prompt,
      ...definedFields(sampling),
      ...(stop.length > 0 && { stopSequences: stop }),
      ...(responseFormat && { responseFormat }),
      ...(tools.length > 0 && { tools }),
      ...(toolChoice && { toolChoice }),
    },
    model: textIn(body.model) ?? '',
    stream: body.stream === true,
    tellsUsage: objectIn(body.stream_options)?.include_usage === true,
    dropped: dropped.names,
    ...(typeof parallel === 'boolean' && { parallel }),
  }
}

/** The fields that have a value. */
export const definedFields = <T extends object>(fields: T): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>

const toolOf = (tool: Fields, path: string, dropped: Dropped): TranslatedTool[] => {
  const made = objectIn(tool.function)
  if (tool.type !== 'function' || !made) {
    dropped.add(path)
    return []
  }
  return [offered(made, made.parameters, path)]
}

/** A tool as packages take it; its schema stays as it is. */
export const offered = (made: Fields, schema: unknown, path: string): TranslatedTool => {
  const name = textIn(made.name)
  if (!name) throw new Unsayable(`${path}.name: expected the name of the tool, found none`)
  const description = textIn(made.description)
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    inputSchema: (objectIn(schema) ?? { type: 'object', properties: {} }) as TranslatedTool['inputSchema'],
    ...(typeof made.strict === 'boolean' && { strict: made.strict }),
  }
}

/** A choice of tools that is in the words of OpenAI. */
export const askedChoice = (choice: unknown, tools: readonly TranslatedTool[]): ModelCall['toolChoice'] => {
  if (choice === undefined || choice === null) return undefined
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { type: choice }
  const fields = objectIn(choice)
  const name = textIn(objectIn(fields?.function)?.name) ?? textIn(fields?.name)
  if (fields?.type === 'function' && name !== undefined && tools.some(tool => tool.name === name))
    return { type: 'tool', toolName: name }
  throw new Unsayable(
    `tool_choice: expected auto, none, required or a function of tools, found ${JSON.stringify(choice).slice(0, 120)}`,
  )
}

const addMessage = (builder: PromptBuilder, message: Fields, path: string, dropped: Dropped): void => {
  const { role, content } = message
  switch (role) {
    case 'system':
    case 'developer':
      return builder.system(wordsOf(content, path))
    case 'user':
      return builder.user(userParts(content, path, dropped))
    case 'assistant':
      return builder.assistant(assistantParts(message, path))
    case 'tool': {
      const value = wordsOf(content, path)
      return builder.result(textIn(message.tool_call_id) ?? '', { type: 'text', value }, `${path}.tool_call_id`)
    }
    default:
      throw new Unsayable(`${path}.role: expected system, developer, user, assistant or tool`)
  }
}

/** The text of a message that has no pictures. */
const wordsOf = (content: unknown, path: string): string => {
  if (typeof content === 'string') return content
  return objectsOf(content, `${path}.content`)
    .map((part, at) => textIn(part.text) ?? unknownPart(part, `${path}.content.${at}`))
    .join('')
}

const unknownPart = ({ type }: Fields, path: string): never => {
  throw new Unsayable(`${path}: a part of type ${JSON.stringify(type)?.slice(0, 40)} cannot be said to the provider`)
}

const userParts = (content: unknown, path: string, dropped: Dropped): UserPart[] => {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return objectsOf(content, `${path}.content`).map((part, at): UserPart => {
    const where = `${path}.content.${at}`
    if (part.type === 'text') return { type: 'text', text: textIn(part.text) ?? '' }
    if (part.type === 'image_url') {
      const image = objectIn(part.image_url)
      if (image?.detail !== undefined) dropped.add('image_url.detail')
      return fileAtAddress(textIn(image?.url) ?? '', 'image/*', `${where}.image_url.url`)
    }
    const file = objectIn(part.file)
    const data = textIn(file?.file_data)
    if (part.type === 'file' && data !== undefined) {
      const filename = textIn(file?.filename)
      return { ...fileAtAddress(data, 'application/pdf', where), ...(filename !== undefined && { filename }) }
    }
    return unknownPart(part, where)
  })
}

const assistantParts = (message: Fields, path: string): AssistantPart[] => {
  const { content, reasoning_content: thought, reasoning_details: details, refusal } = message
  const said = content === undefined || content === null ? '' : wordsOf(content, path)
  const calls = objectsOf(message.tool_calls, `${path}.tool_calls`).map((call, at): AssistantPart => {
    const made = objectIn(call.function)
    const toolName = textIn(made?.name)
    const toolCallId = textIn(call.id)
    if (!toolName || !toolCallId) throw new Unsayable(`${path}.tool_calls.${at}: expected an id and a function`)
    return { type: 'tool-call', toolCallId, toolName, input: callInput(textIn(made?.arguments) ?? '') }
  })
  return [
    ...thoughtsOf(textIn(thought), objectsOf(details, `${path}.reasoning_details`)),
    ...[said, textIn(refusal) ?? ''].flatMap((text): AssistantPart[] => (text ? [{ type: 'text', text }] : [])),
    ...calls,
  ]
}

/** The thoughts of an answer: with what their server needs back, or their text alone. */
const thoughtsOf = (text: string | undefined, details: readonly Fields[]): AssistantPart[] => {
  if (details.length === 0) return text ? [{ type: 'reasoning', text }] : []
  return details.map((detail): AssistantPart => {
    const meta = unpackedMeta(textIn(detail.signature) ?? textIn(detail.data))
    return { type: 'reasoning', text: textIn(detail.text) ?? '', ...(meta && { providerOptions: meta }) }
  })
}
