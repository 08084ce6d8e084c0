import { lost, ServerFault, streamFault } from './faults.js'

type Fields = { readonly [name: string]: unknown }
const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined
const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/**
 * The `fetch` beneath the package for chat completions, which reads answers strictly: here answers become what it
 * expects, however a server writes them. A server that does not know `stream_options` is asked without.
 */
export const chatFetch =
  (send: typeof fetch): typeof fetch =>
  async (input, init) => {
    const answer = await send(input, init).catch(error => {
      const body = JSON.parse(String(init?.body)) as { stream_options?: unknown }
      const unknown = error instanceof ServerFault && /stream_options/.test(error.message)
      if (!unknown || body.stream_options === undefined) throw error
      delete body.stream_options
      return send(input, { ...init, body: JSON.stringify(body) })
    })
    const headers = { 'content-type': 'text/event-stream' }
    return new Response(answer.body?.pipeThrough(strictEvents()) ?? null, { headers })
  }

const strictEvents = (): TransformStream<Uint8Array, Uint8Array> => {
  const decoder = new TextDecoder()
  const encoder = new TextEncoder()
  const thoughts = new Thoughts()
  const names = new CallNames()
  const ends = new Ends()
  let over = false
  let controller: TransformStreamDefaultController<Uint8Array>
  const say = (text: string) => controller.enqueue(encoder.encode(`data: ${text}\n\n`))
  const events = new EventReader(data => {
    if (over) return
    over = data.trim() === '[DONE]'
    if (over) return
    const chunk = chunkOf(valueOf(data))
    ends.heard(chunk)
    say(JSON.stringify(names.take(thoughts.take(chunk))))
  })
  return new TransformStream({
    start: given => void (controller = given),
    transform: piece => events.read(decoder.decode(piece, { stream: true })),
    flush: () => {
      events.end(decoder.decode())
      const rest = thoughts.rest()
      for (const chunk of [rest, names.rest(), ends.missing(over)]) if (chunk) say(JSON.stringify(chunk))
      say('[DONE]')
    },
  })
}

/**
 * The data of events (the server-sent events of HTML, 9.2), and of answers in other forms: one JSON text, or one in
 * each line.
 */
class EventReader {
  readonly #heard: (data: string) => void
  #rest = ''
  /** A carriage return at the end of a piece may be the first half of a line's end. */
  #half = ''
  #data: string[] = []
  /** The lines of an answer that is not written as events. */
  #plain: string[] | undefined

  constructor(heard: (data: string) => void) {
    this.#heard = heard
  }

  read(text: string): void {
    const all = this.#half + text
    this.#half = all.endsWith('\r') ? '\r' : ''
    const lines = all.slice(0, all.length - this.#half.length).split(/\r\n|\n|\r/)
    // The beginning of a line is not searched again with each of its pieces.
    const rest = lines.pop()!
    for (const line of lines) {
      this.#line(this.#rest + line)
      this.#rest = ''
    }
    this.#rest += rest
  }

  /** The answer has ended: its last event may lack its end. */
  end(text: string): void {
    this.read(text)
    this.#line(this.#rest)
    this.#line('')
    if (this.#plain && this.#plain.length > 0) this.#heard(this.#plain.join('\n'))
  }

  #line(line: string): void {
    if (this.#plain || (this.#data.length === 0 && line.startsWith('{'))) return this.#plainLine(line)
    if (line === '') {
      if (this.#data.length > 0) this.#heard(this.#data.splice(0).join('\n'))
    } else if (line.startsWith('data:')) this.#data.push(line.slice('data:'.length).replace(/^ /, ''))
  }

  /** Whole JSON texts are passed on at once, and lines of one that is longer are collected. */
  #plainLine(line: string): void {
    this.#plain ??= []
    if (line.trim() === '') return
    if (this.#plain.length === 0 && isJson(line)) this.#heard(line)
    else this.#plain.push(line)
  }
}

const isJson = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

const invalid = () =>
  new ServerFault('the model server sent an answer that is invalid in its protocol: check its address and protocol')

const valueOf = (data: string): Fields => {
  let value: unknown
  try {
    value = JSON.parse(data)
  } catch {
    // An answer that was cut off; a server that speaks another protocol says so in its first line.
    throw data.trimStart().startsWith('{') ? lost('the answer ended in the middle') : invalid()
  }
  const fields = fieldsOf(value)
  if (!fields) throw invalid()
  const isFault = (fields.error ?? undefined) !== undefined || fields.object === 'error'
  if (isFault || (!('choices' in fields) && !('usage' in fields))) throw streamFault(fields)
  if ((fields.choices ?? undefined) !== undefined && !Array.isArray(fields.choices)) throw invalid()
  return fields
}

/** A piece of an answer with the fields that the package reads, each of its type. */
const chunkOf = (value: Fields): Chunk => {
  const { choices, usage } = value
  return {
    ...(typeof value.id === 'string' && { id: value.id }),
    ...(typeof value.model === 'string' && { model: value.model }),
    ...(typeof value.service_tier === 'string' && { service_tier: value.service_tier }),
    choices: Array.isArray(choices) ? choices.flatMap(choice => choiceOf(choice) ?? []) : [],
    ...(fieldsOf(usage) && { usage: countsOf(fieldsOf(usage)!) }),
  }
}

interface CallPiece {
  readonly index?: unknown
  readonly id?: unknown
  readonly function: { readonly name?: string; readonly arguments: string }
}

interface Delta {
  content?: string
  reasoning_content?: string
  tool_calls?: CallPiece[]
  readonly [name: string]: unknown
}

interface Choice {
  readonly index: number
  readonly delta: Delta
  readonly finish_reason: string | null
}

interface Chunk {
  readonly choices: Choice[]
  readonly [name: string]: unknown
}

/** A choice; what servers without streams, and older ones, say as `message` and `text` is its piece. */
const choiceOf = (choice: unknown): Choice | undefined => {
  const fields = fieldsOf(choice)
  if (!fields) return undefined
  const said = fieldsOf(fields.delta) ?? fieldsOf(fields.message) ?? { content: fields.text }
  const { content, reasoning, reasoning_content: thought = reasoning, refusal, role, tool_calls: calls } = said
  const text = wordsOf(content)
  return {
    index: typeof fields.index === 'number' ? fields.index : 0,
    finish_reason: textOf(fields.finish_reason) || null,
    delta: {
      ...(typeof role === 'string' && { role }),
      ...(text !== undefined && { content: text }),
      ...(typeof thought === 'string' && { reasoning_content: thought }),
      ...(typeof refusal === 'string' && { refusal }),
      ...(Array.isArray(calls) && { tool_calls: calls.flatMap(callOf) }),
    },
  }
}

/** A text, or those of the parts of a message. */
const wordsOf = (content: unknown): string | undefined =>
  Array.isArray(content) ? content.map(part => textOf(fieldsOf(part)?.text) ?? '').join('') : textOf(content)

const callOf = (call: unknown, at: number): CallPiece[] => {
  const fields = fieldsOf(call)
  const made = fieldsOf(fields?.function)
  if (!fields || !made) return []
  const { name, arguments: given } = made
  const text = textOf(given) ?? (fieldsOf(given) ? JSON.stringify(given) : '')
  return [
    {
      ...fields,
      index: typeof fields.index === 'number' ? fields.index : 'index' in fields ? at : fields.index,
      function: { ...(typeof name === 'string' && { name }), arguments: text },
    },
  ]
}

/** Counts of tokens, which some servers write as texts. */
const countsOf = (usage: Fields): Fields =>
  Object.fromEntries(
    Object.entries(usage).flatMap(([name, value]): [string, unknown][] => {
      if (fieldsOf(value)) return [[name, countsOf(fieldsOf(value)!)]]
      const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
      return typeof count === 'number' && Number.isFinite(count) ? [[name, count]] : []
    }),
  )

const OPENS = '<think>'
const CLOSES = '</think>'
/** The most blanks before the mark. */
const MOST_BLANKS = 1000

/** The last characters of a text that can be the beginning of a mark. */
const beginsIn = (text: string, mark: string): number => {
  for (let length = Math.min(mark.length - 1, text.length); length > 0; length--)
    if (mark.startsWith(text.slice(-length))) return length
  return 0
}

/** Finds the thoughts that some models write at the beginning of their answer, between `<think>` and `</think>`. */
class Thoughts {
  #where: 'before' | 'in' | 'after' = 'before'
  #kept = ''

  take(chunk: Chunk): Chunk {
    const [choice] = chunk.choices
    if (!choice || this.#where === 'after') return chunk
    const { content, ...others } = choice.delta
    const calls = others.tool_calls !== undefined || choice.finish_reason !== null
    const said = content === undefined && !calls ? {} : this.#split(content ?? '', calls)
    const delta = { ...others, ...said }
    return { ...chunk, choices: [{ ...choice, delta }, ...chunk.choices.slice(1)] }
  }

  /** What was kept back of an answer that has no end. */
  rest(): Chunk | undefined {
    const delta = this.#split('', true)
    return Object.keys(delta).length === 0 ? undefined : { choices: [{ index: 0, delta, finish_reason: null }] }
  }

  #split(text: string, last: boolean): Delta {
    const all = this.#kept + text
    this.#kept = ''
    if (this.#where === 'after') return text === '' ? {} : { content: text }
    if (this.#where === 'before') {
      const begun = all.trimStart()
      if (begun.startsWith(OPENS)) {
        this.#where = 'in'
        return this.#split(begun.slice(OPENS.length), last)
      }
      if (!last && all.length < MOST_BLANKS && OPENS.startsWith(begun)) {
        this.#kept = all
        return {}
      }
      this.#where = 'after'
      return all === '' ? {} : { content: all }
    }
    const end = all.indexOf(CLOSES)
    if (end < 0) {
      const kept = last ? 0 : beginsIn(all, CLOSES)
      this.#kept = all.slice(all.length - kept)
      const thought = all.slice(0, all.length - kept)
      return thought === '' ? {} : { reasoning_content: thought }
    }
    this.#where = 'after'
    const [thought, content] = [all.slice(0, end), all.slice(end + CLOSES.length).trimStart()]
    return { ...(thought && { reasoning_content: thought }), ...(content && { content }) }
  }
}

/** Puts the names of calls together that come in pieces: a call is passed on with the first of its arguments. */
class CallNames {
  readonly #held = new Map<unknown, CallPiece>()
  readonly #begun = new Set<unknown>()

  take(chunk: Chunk): Chunk {
    const [choice] = chunk.choices
    const calls = choice?.delta.tool_calls
    if (!choice || (!calls && choice.finish_reason === null)) return chunk
    const { tool_calls: _, ...delta } = choice.delta
    const passed = (calls ?? []).flatMap(call => this.#passed(call))
    if (choice.finish_reason !== null) passed.push(...this.#all())
    const named = { ...delta, ...(passed.length > 0 && { tool_calls: passed }) }
    return { ...chunk, choices: [{ ...choice, delta: named }, ...chunk.choices.slice(1)] }
  }

  /** The calls without arguments of an answer that has no end. */
  rest(): Chunk | undefined {
    const calls = this.#all()
    return calls.length === 0
      ? undefined
      : { choices: [{ index: 0, delta: { tool_calls: calls }, finish_reason: null }] }
  }

  #all(): CallPiece[] {
    const all = [...this.#held.values()]
    this.#held.clear()
    return all
  }

  #passed(call: CallPiece): CallPiece[] {
    const { index, id } = call
    const held = this.#held.get(index)
    if (held && id && held.id && id !== held.id) {
      this.#held.delete(index)
      return [held, ...this.#passed(call)]
    }
    if (!held && (call.function.name === undefined || this.#begun.has(id || index))) return [call]
    const before = held?.function.name ?? ''
    const added = call.function.name ?? ''
    // Some servers repeat the whole name in every piece.
    const name = added === before ? before : before + added
    const made = { ...held, ...call, ...(held?.id ? { id: held.id } : {}), function: { ...call.function, name } }
    if (call.function.arguments === '') {
      this.#held.set(index, made)
      return []
    }
    this.#held.delete(index)
    this.#begun.add(id || held?.id || index)
    this.#begun.add(index)
    return [made]
  }
}

/** The reason of the end of a text whose server says none. */
export const UNMARKED = 'unmarked'

/** Ends answers whose server does not say that they are over. */
class Ends {
  #said = false
  #calls = false
  #over = false

  heard({ choices }: Chunk): void {
    for (const { delta, finish_reason: reason } of choices) {
      this.#said ||= (delta.content ?? '') !== ''
      this.#calls ||= (delta.tool_calls ?? []).length > 0
      this.#over ||= reason !== null
    }
  }

  /** The end that an answer lacks: with its mark it is whole, and a text without any may be. */
  missing(marked: boolean): Chunk | undefined {
    if (this.#over || !(this.#said || this.#calls)) return undefined
    const reason = this.#calls ? 'tool_calls' : 'stop'
    if (!marked && this.#calls) return undefined
    return { choices: [{ index: 0, delta: {}, finish_reason: marked ? reason : UNMARKED }] }
  }
}
