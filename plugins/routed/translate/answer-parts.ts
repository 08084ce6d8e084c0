import type { ProviderOptions, StreamPart } from '../../../sdk/node/models/model-call.js'
import { packedMeta } from './translated.js'

/** Why an answer ended, in words of none of the protocols. */
export type Ending = 'stop' | 'length' | 'calls' | 'refused'

/** Tokens of a request and its answer; those of the cache count by themselves. */
export interface AnswerTokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly thought: number
}

/** A text, a thought or a call of an answer. */
export type AnswerItem =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'thought'; readonly text: string; readonly meta?: string }
  | { readonly kind: 'call'; readonly id: string; readonly name: string; readonly input: string }

/** What happens in an answer, one step at a time. */
export type AnswerStep =
  | { readonly step: 'open'; readonly at: number; readonly item: AnswerItem }
  | { readonly step: 'piece'; readonly at: number; readonly item: AnswerItem; readonly piece: string }
  | { readonly step: 'close'; readonly at: number; readonly item: AnswerItem }
  | { readonly step: 'end'; readonly ending: Ending; readonly tokens: AnswerTokens }

export const NO_ANSWER_TOKENS: AnswerTokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, thought: 0 }

/** A failure in the middle of an answer. */
export class BrokenAnswer extends Error {}

interface Open {
  readonly at: number
  item: AnswerItem
}

/** Puts the parts of packages in order: items open, grow and close one after the other, calls side by side. */
export class AnswerParts {
  readonly #items: AnswerItem[] = []
  readonly #open = new Map<string, Open>()
  #called = false

  /** Everything so far. */
  get items(): readonly AnswerItem[] {
    return this.#items
  }

  /** @throws The error that a part reports. */
  take(part: StreamPart): AnswerStep[] {
    switch (part.type) {
      case 'text-delta':
        return this.#grow(`text ${part.id}`, { kind: 'text', text: '' }, part.delta)
      case 'text-end':
        return this.#close(`text ${part.id}`)
      case 'reasoning-start':
        return this.#thought(part.id, '', part.providerMetadata)
      case 'reasoning-delta':
        return this.#thought(part.id, part.delta, part.providerMetadata)
      case 'reasoning-end': {
        const steps = this.#meta(part.id, part.providerMetadata)
        return [...steps, ...this.#close(`thought ${part.id}`)]
      }
      case 'tool-input-start':
        return this.#grow(`call ${part.id}`, { kind: 'call', id: part.id, name: part.toolName, input: '' }, '')
      case 'tool-input-delta':
        return this.#grow(`call ${part.id}`, undefined, part.delta)
      case 'tool-call': {
        const key = `call ${part.toolCallId}`
        this.#called = true
        if (!this.#open.has(key)) {
          const item = { kind: 'call', id: part.toolCallId, name: part.toolName, input: '' } as const
          return [...this.#grow(key, item, part.input), ...this.#close(key)]
        }
        return this.#close(key)
      }
      case 'error':
        throw part.error
      case 'finish': {
        const rest = [...this.#open.keys()].flatMap(key => this.#close(key))
        const { unified } = part.finishReason
        if (unified === 'error') throw new BrokenAnswer('the provider ended the answer with an error')
        const ending =
          unified === 'length' ? 'length' : unified === 'content-filter' ? 'refused' : this.#called ? 'calls' : 'stop'
        return [...rest, { step: 'end', ending, tokens: tokensOf(part.usage) }]
      }
      default:
        return []
    }
  }

  #thought(id: string, delta: string, meta: ProviderOptions | undefined): AnswerStep[] {
    const steps = this.#grow(`thought ${id}`, { kind: 'thought', text: '' }, delta)
    return [...steps, ...this.#meta(id, meta)]
  }

  #meta(id: string, meta: ProviderOptions | undefined): AnswerStep[] {
    const open = this.#open.get(`thought ${id}`)
    const packed = packedMeta(meta)
    if (open?.item.kind === 'thought' && packed !== undefined) this.#set(open, { ...open.item, meta: packed })
    return []
  }

  #grow(key: string, fresh: AnswerItem | undefined, piece: string): AnswerStep[] {
    const steps: AnswerStep[] = []
    let open = this.#open.get(key)
    if (!open) {
      if (!fresh) return []
      // Texts and thoughts follow each other; calls of one answer may be written at once.
      if (fresh.kind !== 'call')
        for (const other of [...this.#open.keys()]) if (!other.startsWith('call ')) steps.push(...this.#close(other))
      open = { at: this.#items.length, item: fresh }
      this.#items.push(fresh)
      this.#open.set(key, open)
      steps.push({ step: 'open', at: open.at, item: fresh })
    }
    if (piece === '') return steps
    const { item } = open
    this.#set(
      open,
      item.kind === 'call' ? { ...item, input: item.input + piece } : { ...item, text: item.text + piece },
    )
    return [...steps, { step: 'piece', at: open.at, item: open.item, piece }]
  }

  #set(open: Open, item: AnswerItem): void {
    open.item = item
    this.#items[open.at] = item
  }

  #close(key: string): AnswerStep[] {
    const open = this.#open.get(key)
    if (!open) return []
    this.#open.delete(key)
    return [{ step: 'close', at: open.at, item: open.item }]
  }
}

const tokensOf = ({ inputTokens, outputTokens }: Extract<StreamPart, { type: 'finish' }>['usage']): AnswerTokens => {
  const { total = 0, cacheRead = 0, cacheWrite = 0 } = inputTokens
  return {
    input: inputTokens.noCache ?? Math.max(0, total - cacheRead - cacheWrite),
    output: outputTokens.total ?? 0,
    cacheRead,
    cacheWrite,
    thought: outputTokens.reasoning ?? 0,
  }
}

/** What a failure is called, in each protocol: its status and its words. */
export interface AnswerFailure {
  readonly status: number
  readonly message: string
}

/** Writes an answer in one protocol. */
export interface AnswerWriter {
  /** The events at the beginning of a streamed answer. */
  begin(): string
  step(step: AnswerStep): string
  /** The event of a failure in the middle of a streamed answer. */
  fail(failure: AnswerFailure): string
  /** A whole answer. */
  whole(items: readonly AnswerItem[], ending: Ending, tokens: AnswerTokens): object
}

/** One server-sent event. */
export const eventOf = (data: object, event?: string): string =>
  `${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`
