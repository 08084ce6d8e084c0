import type { ModelCall, ModelPrompt } from './model-call.js'

type Message = ModelPrompt[number]
type Change = (text: string) => string
type Tools = NonNullable<ModelCall['tools']>

/** Parts of the schema of a tool's input that say something to a model. */
const WORDS = new Set(['description', 'title', 'enum', 'const', 'default', 'examples'])

/** Every text of a request that may hold personal data, in order, and whether it contains pictures. */
export const requestTexts = (call: ModelCall): { readonly texts: string[]; readonly binary: boolean } => {
  const texts: string[] = []
  changed(call, text => {
    texts.push(text)
    return text
  })
  const binary = call.prompt.some(
    ({ content }) =>
      typeof content !== 'string'
      && content.some(
        part =>
          part.type === 'file'
          || (part.type === 'tool-result'
            && part.output.type === 'content'
            && part.output.value.some(({ type }) => type === 'file')),
      ),
  )
  return { texts, binary }
}

/** The request with other texts, in the same order. */
export const withRequestTexts = (call: ModelCall, texts: readonly string[]): ModelCall => {
  let at = 0
  return changed(call, text => texts[at++] ?? text)
}

const changed = (call: ModelCall, change: Change): ModelCall => {
  const prompt = call.prompt.map(message => inMessage(message, change))
  return { ...call, prompt, ...(call.tools && { tools: call.tools.map(tool => inTool(tool, change)) }) }
}

const inMessage = (message: Message, change: Change): Message => {
  if (message.role === 'system') return { ...message, content: change(message.content) }
  if (message.role === 'user')
    return {
      ...message,
      content: message.content.map(part => (part.type === 'text' ? { ...part, text: change(part.text) } : part)),
    }
  if (message.role === 'assistant')
    return {
      ...message,
      content: message.content.map(part => {
        if (part.type === 'text' || part.type === 'reasoning') return { ...part, text: change(part.text) }
        return part.type === 'tool-call' ? { ...part, input: inJson(part.input, change) } : part
      }),
    }
  return {
    ...message,
    content: message.content.map(part => {
      if (part.type !== 'tool-result') return part
      const { output } = part
      if (output.type === 'content') {
        const value = output.value.map(each => (each.type === 'text' ? { ...each, text: change(each.text) } : each))
        return { ...part, output: { ...output, value } }
      }
      return 'value' in output
        ? { ...part, output: { ...output, value: inJson(output.value, change) } as typeof output }
        : part
    }),
  }
}

const inTool = (tool: Tools[number], change: Change): Tools[number] => {
  if (tool.type !== 'function') return tool
  return {
    ...tool,
    ...(tool.description !== undefined && { description: change(tool.description) }),
    inputSchema: inSchema(tool.inputSchema, change) as typeof tool.inputSchema,
  }
}

const inSchema = (value: unknown, change: Change): unknown => {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(each => inSchema(each, change))
  return Object.fromEntries(
    Object.entries(value).map(([key, held]) => [
      key,
      WORDS.has(key) && (typeof held !== 'object' || Array.isArray(held))
        ? inJson(held, change)
        : inSchema(held, change),
    ]),
  )
}

const inJson = (value: unknown, change: Change): unknown => {
  if (typeof value === 'string') return change(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(each => inJson(each, change))
  return Object.fromEntries(Object.entries(value).map(([key, held]) => [change(key), inJson(held, change)]))
}
