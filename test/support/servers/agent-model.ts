import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { streamedAs, type ScriptedAnswer, type ScriptedCall } from './model-server.js'

/** One thing that the model wants; the next one follows when a tool has answered. */
export type Deed =
  /** A sentence, which ends the turn. */
  | { readonly say: string }
  /** A command in the program's own shell. */
  | { readonly shell: string }
  /** A file that the program's own tool for files writes. */
  | { readonly write: string; readonly text: string }
  /** A tool of the sandbox. */
  | { readonly tool: string; readonly input: object }
  /** The beginning of an answer that never ends. */
  | { readonly hold: string }

/** The text of a message that has the model do something, in any conversation with any program. */
export const wish = (...deeds: readonly Deed[]): string => `${MARK}${JSON.stringify(deeds)}${END}`

const MARK = 'Do exactly this: '
const END = ' (that is all)'

/** A message of a conversation, in none of the forms of a wire. */
export interface Said {
  readonly by: 'person' | 'model' | 'tool'
  readonly text: string
}

/** A request to the model, in none of the forms of a wire. */
export interface AskedModel {
  readonly wire: Wire
  readonly model: string
  /** The names of the tools that it may call. */
  readonly tools: readonly string[]
  readonly said: readonly Said[]
  /** As it came. */
  readonly body: Body
}

type Fields = { readonly [name: string]: unknown }
type Body = Fields
type Wire = 'chat' | 'messages' | 'responses' | 'gemini'

const fields = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {})
const list = (value: unknown): Fields[] => (Array.isArray(value) ? value.map(fields) : [])
const nameOf = (value: Fields): string => String(value.name ?? '')

/** What a part of a message says: a text, or anything else as JSON. */
const textOf = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (Array.isArray(content)) return content.map(textOf).join('\n')
  const { text, content: inner } = fields(content)
  return typeof text === 'string' ? text : inner === undefined ? JSON.stringify(content ?? '') : textOf(inner)
}

const person = (role: unknown): Said['by'] => (role === 'assistant' || role === 'model' ? 'model' : 'person')

/** How each wire form is read and answered. */
const WIRES: {
  readonly [wire in Wire]: {
    readonly path: RegExp
    readonly said: (body: Body) => Said[]
    readonly tools: (body: Body) => string[]
    readonly answer: (answer: ScriptedAnswer, body: Body) => string[]
  }
} = {
  // https://platform.openai.com/docs/api-reference/chat
  chat: {
    path: /\/chat\/completions$/,
    said: ({ messages }) =>
      list(messages)
        .filter(({ role }) => role !== 'system')
        .map(({ role, content }) => ({ by: role === 'tool' ? 'tool' : person(role), text: textOf(content) })),
    tools: ({ tools }) => list(tools).map(each => nameOf(fields(each.function))),
    answer: answer => streamedAs('openai', answer),
  },
  // https://docs.anthropic.com/en/api/messages
  messages: {
    path: /\/v1\/messages(?:\?.*)?$/,
    said: ({ messages }) =>
      list(messages).flatMap(({ role, content }) =>
        (typeof content === 'string' ? [{ type: 'text', text: content }] : list(content)).map(block => ({
          by: block.type === 'tool_result' ? ('tool' as const) : person(role),
          text: textOf(block),
        })),
      ),
    tools: ({ tools }) => list(tools).map(nameOf),
    answer: answer => streamedAs('anthropic', answer),
  },
  // https://platform.openai.com/docs/api-reference/responses
  responses: {
    path: /\/responses$/,
    said: ({ input }) =>
      list(input).flatMap(item => {
        if (item.type === 'message') return [{ by: person(item.role), text: textOf(item.content) }]
        return /_output$/.test(String(item.type)) ? [{ by: 'tool' as const, text: textOf(item.output) }] : []
      }),
    tools: ({ tools }) =>
      list(tools).flatMap(tool =>
        tool.type === 'namespace' ? list(tool.tools).map(each => `${nameOf(tool)}${nameOf(each)}`) : [nameOf(tool)],
      ),
    answer: (answer, body) => responsesOf(answer, body),
  },
  // https://ai.google.dev/api/generate-content
  gemini: {
    path: /:(?:streamGenerateContent|generateContent)(?:\?.*)?$/,
    said: ({ contents }) =>
      list(contents).flatMap(({ role, parts }) =>
        list(parts).map(part =>
          part.functionResponse === undefined
            ? { by: person(role), text: textOf(part) }
            : { by: 'tool' as const, text: textOf(fields(part.functionResponse).response) },
        ),
      ),
    tools: ({ tools }) => list(tools).flatMap(each => list(each.functionDeclarations).map(nameOf)),
    answer: answer => [geminiOf(answer)],
  },
}

const sse = (data: Fields): string => `event: ${String(data.type)}\ndata: ${JSON.stringify(data)}\n\n`

const responsesOf = ({ text = [], calls = [] }: ScriptedAnswer, { tools }: Body): string[] => {
  const items = [
    ...(text.length > 0
      ? [
          {
            type: 'message',
            id: 'msg_1',
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: text.join(''), annotations: [] }],
          },
        ]
      : []),
    ...calls.map(({ name, input = {}, id = 'call_1' }) => {
      const space = list(tools).find(
        tool => tool.type === 'namespace' && list(tool.tools).some(each => nameOf(tool) + nameOf(each) === name),
      )
      return {
        type: 'function_call',
        id: `fc_${id}`,
        call_id: id,
        status: 'completed',
        name: space ? name.slice(nameOf(space).length) : name,
        ...(space && { namespace: nameOf(space) }),
        arguments: JSON.stringify(input),
      }
    }),
  ]
  const usage = {
    input_tokens: 90,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 97,
  }
  const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm' }
  return [
    sse({ type: 'response.created', response: { ...response, status: 'in_progress', output: [] } }),
    ...items.flatMap((item, output_index) => [
      sse({ type: 'response.output_item.added', output_index, item: { ...item, status: 'in_progress' } }),
      ...(item.type === 'message'
        ? text.map(delta =>
            sse({ type: 'response.output_text.delta', output_index, item_id: item.id, content_index: 0, delta }),
          )
        : []),
      sse({ type: 'response.output_item.done', output_index, item }),
    ]),
    sse({ type: 'response.completed', response: { ...response, status: 'completed', output: items, usage } }),
  ]
}

const geminiOf = ({ text = [], calls = [] }: ScriptedAnswer): string => {
  const parts = [
    ...text.map(each => ({ text: each })),
    ...calls.map(({ name, input = {}, id = 'call_1' }) => ({ functionCall: { id, name, args: input } })),
  ]
  return JSON.stringify({
    candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 90, candidatesTokenCount: 7, totalTokenCount: 97 },
    modelVersion: 'm',
  })
}

/** The tools of programs that run a command and write a file, with their inputs. */
const SHELL = ['bash', 'Bash', 'exec_command', 'shell_command', 'shell', 'run_shell_command']
const WRITE = ['write', 'Write', 'write_file']

const shellInput = (name: string, command: string): object => {
  if (name === 'exec_command') return { cmd: command }
  if (name === 'shell') return { command: ['bash', '-lc', command] }
  return { command, description: 'Does what was asked' }
}

/** A call, a sentence, or an answer without an end. */
type Step = ScriptedCall | string | { readonly hold: string }

/** The steps of a deed with the tools of a request. */
const stepsOf = (deed: Deed, tools: readonly string[], cwd: string): Step[] => {
  const found = (names: readonly string[]) => names.find(name => tools.includes(name))
  if ('say' in deed) return [deed.say]
  if ('hold' in deed) return [deed]
  if ('shell' in deed) {
    const name = found(SHELL)
    return name === undefined ? [lacks(deed, tools)] : [{ name, input: shellInput(name, deed.shell) }]
  }
  if ('write' in deed) {
    const path = `${cwd}/${deed.write}`
    const name = found(WRITE)
    if (name !== undefined) return [{ name, input: inputOf(name, path, deed.text) }]
    // A program whose model writes files with a command.
    return stepsOf({ shell: `printf %s '${deed.text}' > '${deed.write}'` }, tools, cwd)
  }
  const { tool, input } = deed
  const name = tools.find(each => /sandbox/.test(each) && each.endsWith(tool))
  if (name !== undefined) return [{ name, input }]
  // A program whose model looks tools up before it calls them.
  if (tools.includes('tool_search')) {
    const wanted = `mcp__sandbox__${tool}`
    return [
      { name: 'tool_search', input: { query: `select:${wanted}` } },
      { name: 'tool_call', input: { name: wanted, arguments: input } },
    ]
  }
  return [lacks(deed, tools)]
}

/** A command that the program's own wall stopped, with the request to run it without. */
const escalated = ({ name, input }: ScriptedCall): Step | undefined =>
  input && 'cmd' in input && !('justification' in input)
    ? { name, input: { ...input, sandbox_permissions: 'require_escalated', justification: 'It is what was asked.' } }
    : undefined

const lacks = (deed: Deed, tools: readonly string[]): string =>
  `There is no tool for ${JSON.stringify(deed)} among ${tools.join(', ')}.`

const inputOf = (name: string, path: string, content: string): object =>
  name === 'write' ? { filePath: path, content } : { file_path: path, content }

/** A model on loopback that any agent program may ask, in the wire form that it speaks: it does what `wish` says. */
export class AgentModel {
  readonly asked: AskedModel[] = []
  readonly #holds = new Set<string>()
  #calls = 0
  #port = 0

  get port(): number {
    return this.#port
  }

  get address(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** The requests of a conversation in which a text stands. */
  about(text: string): AskedModel[] {
    return this.asked.filter(({ said }) => said.some(each => each.text.includes(text)))
  }

  async listen(t: { teardown(work: () => unknown): unknown }): Promise<this> {
    const server = createServer((request, response) => {
      void (async () => {
        const pieces: Buffer[] = []
        for await (const piece of request) pieces.push(piece as Buffer)
        this.#answer(request.url ?? '', Buffer.concat(pieces).toString(), response)
      })().catch(() => response.destroy())
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    this.#port = (server.address() as AddressInfo).port
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    return this
  }

  #answer(path: string, text: string, response: ServerResponse): void {
    const found = (Object.entries(WIRES) as [Wire, (typeof WIRES)[Wire]][]).find(([, wire]) => wire.path.test(path))
    if (!found) return void response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":[]}')
    const [wire, { said, tools, answer }] = found
    const body = fields(JSON.parse(text || '{}'))
    const model = String(body.model ?? /models\/([^:]+):/.exec(path)?.[1])
    const asked: AskedModel = { wire, model, tools: tools(body), said: said(body), body }
    this.asked.push(asked)
    const wanted = this.#wanted(asked)
    const stream = wire === 'gemini' ? path.includes('stream') : body.stream === true
    // Programs hold answers of the same id for one.
    const id = `${this.asked.length}`
    const pieces = answer(wanted, body).map(piece => piece.replaceAll(/"(msg|resp|chatcmpl)[_-]1"/g, `"$1_${id}"`))
    if (!stream) {
      response.writeHead(200, { 'content-type': 'application/json' })
      return void response.end(wire === 'gemini' ? pieces[0] : JSON.stringify(wholeOf(wire, wanted)))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const lines = wire === 'gemini' ? pieces.map(piece => `data: ${piece}\r\n\r\n`) : pieces
    if ('endAt' in wanted) return void response.write(lines.slice(0, wanted.endAt).join(''))
    response.end(lines.join(''))
  }

  #wanted({ said, tools, body }: AskedModel): ScriptedAnswer {
    const at = said.findLastIndex(({ by, text }) => by === 'person' && text.includes(MARK))
    if (at < 0 || tools.length === 0) return { text: ['Fine.'], usage: USAGE }
    const { text } = said[at]!
    const from = text.lastIndexOf(MARK) + MARK.length
    const deeds = JSON.parse(text.slice(from, text.indexOf(END, from))) as Deed[]
    const since = said.slice(at + 1)
    const last = since.findLast(({ by }) => by === 'tool')
    const [step] = this.#left(deeds, tools, cwdIn(body), since)
    if (step === undefined) return { text: [`All done: ${(last?.text ?? '').slice(0, 200)}`], usage: USAGE }
    if (typeof step === 'string') return { text: [step], usage: USAGE }
    // Its first events, and no end.
    if ('hold' in step) {
      this.#holds.add(step.hold)
      return { text: [step.hold], usage: USAGE, endAt: 3 }
    }
    return { calls: [{ ...step, id: `call_${++this.#calls}` }], usage: USAGE }
  }

  /** The steps that are not done yet: an answer of a tool ends a call, and what was said is said. */
  #left(deeds: readonly Deed[], tools: readonly string[], cwd: string, since: readonly Said[]): Step[] {
    const steps = deeds.flatMap(deed => stepsOf(deed, tools, cwd)).filter(step => !this.#wasHeld(step))
    for (const { by, text } of since) {
      const [next] = steps
      if (typeof next === 'string' ? by === 'tool' || !text.includes(next) : by !== 'tool') continue
      steps.shift()
      const again = typeof next === 'object' && 'name' in next && /bwrap: /.test(text) ? escalated(next) : undefined
      if (again) steps.unshift(again)
    }
    return steps
  }

  /** Nothing is held twice. */
  #wasHeld(step: Step): boolean {
    return typeof step === 'object' && 'hold' in step && this.#holds.has(step.hold)
  }
}

const USAGE = { input: 90, output: 7 }

/** The folder that a program names to its model, which wants whole paths. */
const cwdIn = (body: Body): string =>
  /(?:work(?:ing|space) (?:in the )?director(?:y|ies)|cwd)[^/]{0,80}(\/[^\s"\\<>`,]+)/i.exec(JSON.stringify(body))?.[1]
  ?? '.'

/** An answer that is not streamed. */
const wholeOf = (wire: Wire, { text = [] }: ScriptedAnswer): object => {
  const said = text.join('')
  if (wire === 'messages')
    return {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: said }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: said } }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }
}

/** A scripted model that listens until the test ends. */
export const agentModel = (t: { teardown(work: () => unknown): unknown }): Promise<AgentModel> =>
  new AgentModel().listen(t)
