import { ServerFault, lost, streamFault } from './faults.js'

interface Message {
  role: string
  content: unknown
  tool_calls?: { id?: string; function?: { name?: string; arguments?: unknown } }[]
  tool_call_id?: string
  tool_name?: string
}

/**
 * The `fetch` beneath the package for Ollama, which skips lines that it cannot read: here they end the answer, as do
 * errors in its middle and an end without the last line. Also mends requests where the server wants them otherwise.
 */
export const ollamaFetch =
  (send: typeof fetch, think: boolean | undefined): typeof fetch =>
  async (input, init) => {
    const body = JSON.parse(String(init?.body)) as { think?: boolean; messages: Message[] }
    // The package disables thinking by default.
    if (think === undefined) delete body.think
    const names = new Map<string, string>()
    for (const message of body.messages) {
      if (Array.isArray(message.content)) message.content = ''
      for (const call of message.tool_calls ?? []) if (call.id) names.set(call.id, call.function?.name ?? '')
      const name = message.tool_call_id === undefined ? undefined : names.get(message.tool_call_id)
      if (name) message.tool_name = name
    }
    const answer = await send(input, { ...init, body: JSON.stringify(body) })
    return new Response(answer.body?.pipeThrough(checkedLines()) ?? null, { headers: answer.headers })
  }

const checkedLines = (): TransformStream<Uint8Array, Uint8Array> => {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  let rest = ''
  let ended = false
  const pass = (line: string, controller: TransformStreamDefaultController<Uint8Array>): void => {
    if (!line.trim()) return
    const checked = lineOf(line)
    ended ||= checked.done
    controller.enqueue(encoder.encode(`${JSON.stringify(checked)}\n`))
  }
  return new TransformStream({
    transform: (piece, controller) => {
      const text = decoder.decode(piece, { stream: true })
      const lines = text.split('\n')
      lines[0] = rest + lines[0]
      rest = lines.pop() ?? ''
      for (const line of lines) pass(line, controller)
    },
    flush: controller => {
      // The rest of a cut answer is not a complete line.
      if (!ended) {
        try {
          pass(rest, controller)
        } catch (error) {
          throw error instanceof ServerFault && error.details.code ? error : lost('the answer ended in the middle')
        }
      }
      if (!ended) throw lost('the answer ended in the middle')
    },
  })
}

/** Adds the fields that the package requires to a line. */
const lineOf = (line: string): { done: boolean } => {
  let value: { [field: string]: unknown }
  try {
    value = JSON.parse(line) as typeof value
  } catch {
    throw new ServerFault('the model server sent a line that is not JSON')
  }
  if (typeof value !== 'object' || value === null)
    throw new ServerFault('the model server sent a line of no known kind')
  if (value.error !== undefined) throw streamFault(value)
  const { content, thinking, tool_calls: calls } = (value.message ?? {}) as { [field: string]: unknown }
  return {
    ...value,
    model: typeof value.model === 'string' ? value.model : '',
    created_at: typeof value.created_at === 'string' ? value.created_at : new Date(0).toISOString(),
    done: value.done === true,
    message: {
      role: 'assistant',
      content: typeof content === 'string' ? content : '',
      ...(typeof thinking === 'string' && { thinking }),
      ...(Array.isArray(calls) && { tool_calls: calls.map(callOfLine) }),
    },
  } as { done: boolean }
}

const callOfLine = (call: unknown): object => {
  const { id, function: made } = (call ?? {}) as { id?: unknown; function?: { name?: unknown; arguments?: unknown } }
  const given = made?.arguments
  const object = typeof given === 'object' && given !== null && !Array.isArray(given)
  return {
    ...(typeof id === 'string' && { id }),
    function: {
      name: typeof made?.name === 'string' ? made.name : '',
      arguments: object ? given : given === undefined ? {} : { arguments: given },
    },
  }
}
