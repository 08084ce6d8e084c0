import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { ScriptedAnswer, ScriptedReply } from '../../support/servers/model-server.js'

type Body = { readonly [name: string]: unknown }

/** A scripted server of responses. */
export interface ResponsesServer {
  readonly address: string
  readonly requests: { readonly path: string; readonly body: Body }[]
}

interface Until {
  teardown(work: () => unknown): unknown
}

/** Starts a server that answers in the protocol of responses. */
export const responsesServer = async (t: Until, script: () => ScriptedReply): Promise<ResponsesServer> => {
  const requests: ResponsesServer['requests'] = []
  const server = createServer((request, response) => {
    void (async () => {
      let text = ''
      for await (const piece of request) text += String(piece)
      requests.push({ path: request.url ?? '', body: JSON.parse(text || '{}') as Body })
      answer(response, script())
    })().catch(() => response.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests }
}

const answer = (response: ServerResponse, reply: ScriptedReply): void => {
  if ('silent' in reply || 'flood' in reply) return
  if ('status' in reply) {
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers })
    return void response.end(reply.body)
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of eventsOf(reply)) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}

const halves = (text: string): string[] => [text.slice(0, text.length / 2), text.slice(text.length / 2)]

/** The events of an answer, as the documentation of responses has them. */
const eventsOf = ({ thoughts, text, calls, usage, error }: ScriptedAnswer): { type: string }[] => {
  const output: object[] = []
  const events: { type: string }[] = []
  let sequence = 0
  const say = (type: string, fields: object) => events.push({ type, ...{ sequence_number: sequence++ }, ...fields })
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', error: null, incomplete_details: null }
  say('response.created', { response: { ...base, status: 'in_progress', output: [] } })
  const item = (whole: object, begun: object, deltas: (place: object) => void): void => {
    const output_index = output.length
    say('response.output_item.added', { output_index, item: { ...whole, ...begun } })
    deltas({ output_index, item_id: (whole as { id: string }).id })
    say('response.output_item.done', { output_index, item: whole })
    output.push(whole)
  }
  if (thoughts) {
    const summary = [{ type: 'summary_text', text: thoughts.join('') }]
    item({ type: 'reasoning', id: 'rs_1', summary, encrypted_content: 'sealed' }, { summary: [] }, place => {
      say('response.reasoning_summary_part.added', {
        ...place,
        summary_index: 0,
        part: { type: 'summary_text', text: '' },
      })
      for (const delta of thoughts) say('response.reasoning_summary_text.delta', { ...place, summary_index: 0, delta })
      say('response.reasoning_summary_part.done', { ...place, summary_index: 0, part: summary[0] })
    })
  }
  if (text) {
    const part = { type: 'output_text', text: text.join(''), annotations: [] }
    const message = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [part] }
    item(message, { status: 'in_progress', content: [] }, place => {
      say('response.content_part.added', { ...place, content_index: 0, part: { ...part, text: '' } })
      for (const delta of text) say('response.output_text.delta', { ...place, content_index: 0, delta })
      say('response.output_text.done', { ...place, content_index: 0, text: part.text })
    })
  }
  if (error) {
    const { type: code, message } = error as { type?: string; message?: string }
    say('error', { code, message, param: null })
    return events
  }
  calls?.forEach(({ name, input, id = `call_${name}` }, at) => {
    const text = JSON.stringify(input)
    const call = { type: 'function_call', id: `fc_${at}`, call_id: id, name, arguments: text, status: 'completed' }
    item(call, { arguments: '', status: 'in_progress' }, place => {
      for (const delta of halves(text)) say('response.function_call_arguments.delta', { ...place, delta })
      say('response.function_call_arguments.done', { ...place, arguments: text })
    })
  })
  const { input = 0, output: out = 0, read = 0 } = usage ?? {}
  const counted = {
    ...{ input_tokens: input + read, input_tokens_details: { cached_tokens: read } },
    ...{ output_tokens: out, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: input + read + out },
  }
  say('response.completed', { response: { ...base, status: 'completed', output, usage: counted } })
  return events
}
