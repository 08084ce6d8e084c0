import { askedChoice, offered, definedFields } from './chat-request.js'
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
  type TranslatedResult,
  type TranslatedRequest,
  type UserPart,
} from './translated.js'

const READ = [
  ...['model', 'input', 'instructions', 'stream', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_output_tokens'],
  ...['temperature', 'top_p', 'reasoning', 'text', 'store', 'include'],
]
/** Without these the answer would be to another question. */
const NEEDED = ['previous_response_id', 'conversation', 'background', 'prompt']

/** A request for a response. */
export const fromResponses = (body: Fields): TranslatedRequest => {
  const dropped = new Dropped()
  dropped.unread(body, READ)
  for (const name of NEEDED)
    if (body[name] !== undefined && body[name] !== null && body[name] !== false)
      throw new Unsayable(`${name}: nothing is kept here between requests: send the whole input`)
  if (body.store === true) dropped.add('store')
  for (const name of listIn(body.include)) if (name !== 'reasoning.encrypted_content') dropped.add('include')
  const builder = new PromptBuilder()
  builder.system(textIn(body.instructions) ?? '')
  if (typeof body.input === 'string') builder.user([{ type: 'text', text: body.input }])
  else objectsOf(body.input, 'input').forEach((item, at) => addItem(builder, item, `input.${at}`))
  const tools = objectsOf(body.tools, 'tools').flatMap((tool, at): TranslatedTool[] => {
    if (tool.type === 'function') return [offered(tool, tool.parameters, `tools.${at}`)]
    dropped.add(`tools.${at}`)
    return []
  })
  const toolChoice = askedChoice(body.tool_choice, tools)
  const format = objectIn(objectIn(body.text)?.format)
  const responseFormat = jsonFormat(format, format)
  const sampling = {
    maxOutputTokens: numberIn(body.max_output_tokens),
    temperature: numberIn(body.temperature),
    topP: numberIn(body.top_p),
    reasoning: effortOf(objectIn(body.reasoning)?.effort),
  }
  return {
    call: {
      prompt: builder.prompt,
      ...definedFields(sampling),
      ...(responseFormat && { responseFormat }),
      ...(tools.length > 0 && { tools }),
      ...(toolChoice && { toolChoice }),
    },
    model: textIn(body.model) ?? '',
    stream: body.stream === true,
    tellsUsage: true,
    dropped: dropped.names,
    ...(typeof body.parallel_tool_calls === 'boolean' && { parallel: body.parallel_tool_calls }),
  }
}

const addItem = (builder: PromptBuilder, item: Fields, path: string): void => {
  switch (item.type ?? 'message') {
    case 'message':
      return addMessage(builder, item, path)
    case 'function_call': {
      const [toolCallId, toolName] = [textIn(item.call_id), textIn(item.name)]
      if (!toolCallId || !toolName) throw new Unsayable(`${path}: expected a call_id and a name`)
      const input = callInput(textIn(item.arguments) ?? '')
      return builder.assistant([{ type: 'tool-call', toolCallId, toolName, input }])
    }
    case 'function_call_output':
      return builder.result(textIn(item.call_id) ?? '', outputOf(item.output, path), `${path}.call_id`)
    case 'reasoning':
      return builder.assistant([thoughtOf(item, path)])
    default:
      throw new Unsayable(`${path}: an item of type ${JSON.stringify(item.type)?.slice(0, 40)} cannot be said here`)
  }
}

const addMessage = (builder: PromptBuilder, { role, content }: Fields, path: string): void => {
  const parts: readonly Fields[] =
    typeof content === 'string' ? [{ type: 'input_text', text: content }] : objectsOf(content, `${path}.content`)
  const made = parts.map((part, at) => partOf(part, `${path}.content.${at}`))
  const text = () => made.map(part => (part.type === 'text' ? part.text : '')).join('')
  if (role === 'system' || role === 'developer') return builder.system(text())
  if (role === 'assistant') return builder.assistant([{ type: 'text', text: text() }])
  if (role !== 'user') throw new Unsayable(`${path}.role: expected user, assistant, system or developer`)
  return builder.user(made)
}

const partOf = (part: Fields, path: string): UserPart & Extract<UserPart, { type: 'text' | 'file' }> => {
  switch (part.type) {
    case 'input_text':
    case 'output_text':
    case 'text':
      return { type: 'text', text: textIn(part.text) ?? '' }
    case 'refusal':
      return { type: 'text', text: textIn(part.refusal) ?? '' }
    case 'input_image':
      return fileAtAddress(textIn(part.image_url) ?? '', 'image/*', `${path}.image_url`)
    case 'input_file': {
      const filename = textIn(part.filename)
      const url = textIn(part.file_data) ?? textIn(part.file_url) ?? ''
      return { ...fileAtAddress(url, 'application/pdf', path), ...(filename !== undefined && { filename }) }
    }
    default:
      throw new Unsayable(`${path}: a part of type ${JSON.stringify(part.type)?.slice(0, 40)} cannot be said here`)
  }
}

const outputOf = (output: unknown, path: string): TranslatedResult['output'] => {
  if (typeof output === 'string') return { type: 'text', value: output }
  const parts = objectsOf(output, `${path}.output`).map((part, at) => partOf(part, `${path}.output.${at}`))
  if (parts.every(({ type }) => type === 'text'))
    return { type: 'text', value: parts.map(part => (part.type === 'text' ? part.text : '')).join('\n') }
  return { type: 'content', value: parts.map(part => part as ReturnType<typeof fileAtAddress>) }
}

/** A thought, with what its server needs back: what the translator packed, or what the server itself encrypted. */
const thoughtOf = (item: Fields, path: string): AssistantPart => {
  const text = objectsOf(item.summary, `${path}.summary`)
    .map(part => textIn(part.text) ?? '')
    .join('\n\n')
  const encrypted = textIn(item.encrypted_content)
  const packed = encrypted?.startsWith('translator.') || !/^rs_/.test(textIn(item.id) ?? '')
  const itemId = textIn(item.id)
  const own = { reasoningEncryptedContent: encrypted ?? '', ...(itemId !== undefined && { itemId }) }
  const meta = encrypted === undefined ? undefined : packed ? unpackedMeta(encrypted) : { openai: own }
  return { type: 'reasoning', text, ...(meta && { providerOptions: meta }) }
}
