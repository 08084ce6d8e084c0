import type { ModelCall } from '../../../sdk/node/models/model-call.js'
import { countOf, fieldsOf, listOf, objectsOf, textOf, Unsayable, type Fields } from './fields.js'
import {
  Dropped,
  effortOf,
  fileAt,
  formatOf,
  inputOf,
  PromptBuilder,
  unpackedMeta,
  type AssistantPart,
  type OfferedTool,
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
  if ((countOf(body.n) ?? 1) !== 1) throw new Unsayable('n: expected 1, since the provider gives one answer')
  const builder = new PromptBuilder()
  objectsOf(body.messages, 'messages').forEach((message, at) => addMessage(builder, message, `messages.${at}`, dropped))
  const tools = objectsOf(body.tools, 'tools').flatMap((tool, at) => toolOf(tool, `tools.${at}`, dropped))
  const stop = typeof body.stop === 'string' ? [body.stop] : listOf(body.stop).flatMap(each => textOf(each) ?? [])
  const format = fieldsOf(body.response_format)
  const responseFormat = formatOf(format, fieldsOf(format?.json_schema))
  const toolChoice = choiceOf(body.tool_choice, tools)
  const parallel = body.parallel_tool_calls
  const sampling = {
    maxOutputTokens: countOf(body.max_completion_tokens) ?? countOf(body.max_tokens),
    temperature: countOf(body.temperature),
    topP: countOf(body.top_p),
    topK: countOf(body.top_k),
    seed: countOf(body.seed),
    presencePenalty: countOf(body.presence_penalty),
    frequencyPenalty: countOf(body.frequency_penalty),
    reasoning: effortOf(body.reasoning_effort),
  }
  return {
    call: {
      prompt: builder.prompt,
      ...present(sampling),
      ...(stop.length > 0 && { stopSequences: stop }),
      ...(responseFormat && { responseFormat }),
      ...(tools.length > 0 && { tools }),
      ...(toolChoice && { toolChoice }),
    },
    model: textOf(body.model) ?? '',
    stream: body.stream === true,
    tellsUsage: fieldsOf(body.stream_options)?.include_usage === true,
    dropped: dropped.names,
    ...(typeof parallel === 'boolean' && { parallel }),
  }
}

/** The fields that have a value. */
export const present = <T extends object>(fields: T): Partial<T> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>

const toolOf = (tool: Fields, path: string, dropped: Dropped): OfferedTool[] => {
  const made = fieldsOf(tool.function)
  if (tool.type !== 'function' || !made) {
    dropped.add(path)
    return []
  }
  return [offered(made, made.parameters, path)]
}

/** A tool as packages take it; its schema stays as it is. */
export const offered = (made: Fields, schema: unknown, path: string): OfferedTool => {
  const name = textOf(made.name)
  if (!name) throw new Unsayable(`${path}.name: expected the name of the tool, found none`)
  const description = textOf(made.description)
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    inputSchema: (fieldsOf(schema) ?? { type: 'object', properties: {} }) as OfferedTool['inputSchema'],
    ...(typeof made.strict === 'boolean' && { strict: made.strict }),
  }
}

/** A choice of tools that is in the words of OpenAI. */
export const choiceOf = (choice: unknown, tools: readonly OfferedTool[]): ModelCall['toolChoice'] => {
  if (choice === undefined || choice === null) return undefined
  if (choice === 'auto' || choice === 'none' || choice === 'required') return { type: choice }
  const fields = fieldsOf(choice)
  const name = textOf(fieldsOf(fields?.function)?.name) ?? textOf(fields?.name)
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
      return builder.result(textOf(message.tool_call_id) ?? '', { type: 'text', value }, `${path}.tool_call_id`)
    }
    default:
      throw new Unsayable(`${path}.role: expected system, developer, user, assistant or tool`)
  }
}

/** The text of a message that has no pictures. */
const wordsOf = (content: unknown, path: string): string => {
  if (typeof content === 'string') return content
  return objectsOf(content, `${path}.content`)
    .map((part, at) => textOf(part.text) ?? unknownPart(part, `${path}.content.${at}`))
    .join('')
}

const unknownPart = ({ type }: Fields, path: string): never => {
  throw new Unsayable(`${path}: a part of type ${JSON.stringify(type)?.slice(0, 40)} cannot be said to the provider`)
}

const userParts = (content: unknown, path: string, dropped: Dropped): UserPart[] => {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return objectsOf(content, `${path}.content`).map((part, at): UserPart => {
    const where = `${path}.content.${at}`
    if (part.type === 'text') return { type: 'text', text: textOf(part.text) ?? '' }
    if (part.type === 'image_url') {
      const image = fieldsOf(part.image_url)
      if (image?.detail !== undefined) dropped.add('image_url.detail')
      return fileAt(textOf(image?.url) ?? '', 'image/*', `${where}.image_url.url`)
    }
    const file = fieldsOf(part.file)
    const data = textOf(file?.file_data)
    if (part.type === 'file' && data !== undefined) {
      const filename = textOf(file?.filename)
      return { ...fileAt(data, 'application/pdf', where), ...(filename !== undefined && { filename }) }
    }
    return unknownPart(part, where)
  })
}

const assistantParts = (message: Fields, path: string): AssistantPart[] => {
  const { content, reasoning_content: thought, reasoning_details: details, refusal } = message
  const said = content === undefined || content === null ? '' : wordsOf(content, path)
  const calls = objectsOf(message.tool_calls, `${path}.tool_calls`).map((call, at): AssistantPart => {
    const made = fieldsOf(call.function)
    const toolName = textOf(made?.name)
    const toolCallId = textOf(call.id)
    if (!toolName || !toolCallId) throw new Unsayable(`${path}.tool_calls.${at}: expected an id and a function`)
    return { type: 'tool-call', toolCallId, toolName, input: inputOf(textOf(made?.arguments) ?? '') }
  })
  return [
    ...thoughtsOf(textOf(thought), objectsOf(details, `${path}.reasoning_details`)),
    ...[said, textOf(refusal) ?? ''].flatMap((text): AssistantPart[] => (text ? [{ type: 'text', text }] : [])),
    ...calls,
  ]
}

/** The thoughts of an answer: with what their server needs back, or their text alone. */
const thoughtsOf = (text: string | undefined, details: readonly Fields[]): AssistantPart[] => {
  if (details.length === 0) return text ? [{ type: 'reasoning', text }] : []
  return details.map((detail): AssistantPart => {
    const meta = unpackedMeta(textOf(detail.signature) ?? textOf(detail.data))
    return { type: 'reasoning', text: textOf(detail.text) ?? '', ...(meta && { providerOptions: meta }) }
  })
}
