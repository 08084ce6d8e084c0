import { isDeeper, MOST_LEVELS } from '../../../../sdk/node/limits/depth.js'
import type { Frame } from '../../turn/frames/frames.js'
import { UNMARKED } from './chat-events.js'
import { faultFrom, lost, ServerFault } from './faults.js'
import type { ProviderOptions, StreamPart } from '../../../../sdk/node/models/model-call.js'
import type { CallPart, SaidPart, TokenCount } from './session.js'
import type { Spoken } from './spoken.js'

/** A whole answer of a model. */
export interface ModelAnswer {
  readonly parts: readonly (SaidPart | Omit<CallPart, 'frame'>)[]
  readonly usage: TokenCount
  readonly finish: 'stop' | 'length' | 'refused'
  /** Whether it came in the fast mode; left out: the server does not say. */
  readonly fast?: boolean
}

const MOST_CALLS = 256
const MOST_CALL = 1024 * 1024

interface Draft {
  kind: 'text' | 'thought'
  id: string
  text: string
  meta?: ProviderOptions
}

type Finish = Extract<StreamPart, { type: 'finish' }>

/** The tokens of an answer; those of the cache count by themselves. */
export const tokenCountOf = ({ inputTokens: input, outputTokens: output }: Finish['usage']): TokenCount => {
  const cached = (input.cacheRead ?? 0) + (input.cacheWrite ?? 0)
  return {
    input: input.noCache ?? Math.max(0, (input.total ?? 0) - cached),
    output: output.total ?? 0,
    cacheRead: input.cacheRead ?? 0,
    cacheWrite: input.cacheWrite ?? 0,
  }
}

/** Reads one streamed answer: yields frames on the way, and the answer at its end. */
export class AnswerReader {
  readonly #spoken: Spoken
  readonly #parts: (Draft | Omit<CallPart, 'frame'>)[] = []
  readonly #inputs = new Map<string, number>()
  readonly #ids = new Set<string>()
  #finish: Finish | undefined

  constructor(spoken: Spoken) {
    this.#spoken = spoken
  }

  *read(part: StreamPart): Generator<Frame> {
    switch (part.type) {
      case 'text-delta':
        if (!part.delta) return
        this.#draft('text', part.id).text += part.delta
        return yield* this.#spoken.say(part.delta)
      case 'reasoning-start':
        return this.#keep(this.#draft('thought', part.id), part.providerMetadata)
      case 'reasoning-delta': {
        const draft = this.#draft('thought', part.id)
        draft.text += part.delta
        this.#keep(draft, part.providerMetadata)
        if (part.delta) yield* this.#spoken.think(part.delta)
        return
      }
      case 'tool-input-start':
        return this.#count(part.id, 0)
      case 'tool-input-delta':
        return this.#count(part.id, part.delta.length)
      case 'tool-call':
        this.#count(part.toolCallId, 0)
        this.#call(part.toolCallId, part.toolName, part.input, part.providerMetadata)
        return
      case 'error':
        throw faultFrom(part.error)
      case 'finish':
        this.#finish = part
    }
  }

  /**
   * The complete answer.
   *
   * @param unmarked Accept a text whose server did not say that it is over.
   */
  whole(unmarked = false): ModelAnswer {
    const finish = this.#finish
    if (finish?.finishReason.raw === UNMARKED && !unmarked) throw lost('the answer ended in the middle')
    if (!finish || finish.finishReason.unified === 'interrupted') throw lost('the answer ended in the middle')
    if (finish.finishReason.unified === 'error') throw lost('the server ended the answer with an error')
    const { unified } = finish.finishReason
    const speed = finish.usage.raw?.speed ?? finish.providerMetadata?.served?.tier
    return {
      ...(typeof speed === 'string' && { fast: speed === 'fast' || speed === 'priority' }),
      parts: this.parts,
      finish: unified === 'length' ? 'length' : unified === 'content-filter' ? 'refused' : 'stop',
      usage: tokenCountOf(finish.usage),
    }
  }

  /** The parts received so far. */
  get parts(): ModelAnswer['parts'] {
    return this.#parts.flatMap((part): ModelAnswer['parts'] => {
      if (part.kind === 'call') return [part]
      const { kind, text, meta } = part
      return text || meta ? [{ kind, text, ...(meta && { meta }) }] : []
    })
  }

  /** The part that a piece belongs to. */
  #draft(kind: Draft['kind'], id: string): Draft {
    const last = this.#parts.at(-1)
    if (last?.kind === kind && (last as Draft).id === id) return last as Draft
    const draft: Draft = { kind, id, text: '' }
    this.#parts.push(draft)
    return draft
  }

  #keep(draft: Draft, meta: ProviderOptions | undefined): void {
    if (!meta) return
    const merged = Object.entries(meta).map(([key, value]) => [key, { ...draft.meta?.[key], ...value }] as const)
    draft.meta = { ...draft.meta, ...Object.fromEntries(merged) }
  }

  #count(id: string, more: number): void {
    const length = (this.#inputs.get(id) ?? 0) + more
    this.#inputs.set(id, length)
    if (length > MOST_CALL) throw new ServerFault(`the model made a tool call of over ${MOST_CALL} bytes`)
    if (this.#inputs.size > MOST_CALLS) throw tooManyCalls()
  }

  #call(given: string, name: string, text: string, meta: ProviderOptions | undefined): void {
    if (text.length > MOST_CALL) throw new ServerFault(`the model made a tool call of over ${MOST_CALL} bytes`)
    // Several calls may have one id.
    if (this.#ids.size >= MOST_CALLS) throw tooManyCalls()
    // Results name their calls by these ids.
    const id = given && !this.#ids.has(given) ? given : `call_${this.#ids.size + 1}_${this.#parts.length}`
    this.#ids.add(id)
    this.#parts.push({ kind: 'call', id, name, ...inputOf(text), ...(meta && { meta }) })
  }
}

const tooManyCalls = () => new ServerFault(`the model made over ${MOST_CALLS} tool calls in one answer`)

const inputOf = (text: string): Pick<CallPart, 'input' | 'malformed'> => {
  if (!text.trim()) return { input: {} }
  let why = 'it is not an object'
  // Models write marks of their templates behind the arguments, and encode them twice.
  for (const way of [text, text.slice(0, text.lastIndexOf('}') + 1)]) {
    try {
      const once: unknown = JSON.parse(way)
      const value: unknown = typeof once === 'string' ? JSON.parse(once) : once
      if (isDeeper(value)) why = `it is nested deeper than ${MOST_LEVELS} levels`
      else if (typeof value === 'object' && value !== null && !Array.isArray(value))
        return { input: value as { [field: string]: unknown } }
      break
    } catch (error) {
      if (way === text) why = error instanceof Error ? error.message.slice(0, 200) : why
    }
  }
  const begins = JSON.stringify(text.slice(0, 200))
  return { malformed: `the arguments of the call are not a JSON object (${why}); they begin with ${begins}` }
}
