import {
  eventOf,
  type AnswerFailure,
  type AnswerItem,
  type AnswerStep,
  type AnswerTokens,
  type AnswerWriter,
  type Ending,
} from './answer-parts.js'
import { errorBody } from './errors.js'

const REASONS: { readonly [E in Ending]: string } = {
  stop: 'stop',
  length: 'length',
  calls: 'tool_calls',
  refused: 'content_filter',
}

/** Writes chat completions. */
export class ChatAnswerWriter implements AnswerWriter {
  readonly #base: { readonly id: string; readonly created: number; readonly model: string }
  readonly #tellsUsage: boolean
  /** The index of each call among the calls. */
  readonly #calls = new Map<number, number>()

  constructor(id: string, model: string, tellsUsage: boolean) {
    this.#base = { id: `chatcmpl-${id}`, created: Math.floor(Date.now() / 1000), model }
    this.#tellsUsage = tellsUsage
  }

  begin(): string {
    return this.#chunk({ role: 'assistant', content: '' })
  }

  step(step: AnswerStep): string {
    switch (step.step) {
      case 'open': {
        const { item, at } = step
        if (item.kind !== 'call') return ''
        const index = this.#calls.size
        this.#calls.set(at, index)
        const made = { name: item.name, arguments: '' }
        return this.#chunk({ tool_calls: [{ index, id: item.id, type: 'function', function: made }] })
      }
      case 'piece':
        return this.#piece(step)
      case 'close': {
        const { item } = step
        return item.kind === 'thought' && item.meta !== undefined
          ? this.#chunk({ reasoning_details: [detailOf(item)] })
          : ''
      }
      case 'end': {
        const usage = this.#tellsUsage ? eventOf({ ...this.#chunkBase, choices: [], usage: usageOf(step.tokens) }) : ''
        return `${this.#chunk({}, REASONS[step.ending])}${usage}data: [DONE]\n\n`
      }
    }
  }

  #piece({ item, at, piece }: Extract<AnswerStep, { step: 'piece' }>): string {
    if (item.kind === 'text') return this.#chunk({ content: piece })
    if (item.kind === 'thought') return this.#chunk({ reasoning_content: piece })
    return this.#chunk({ tool_calls: [{ index: this.#calls.get(at), function: { arguments: piece } }] })
  }

  fail(failure: AnswerFailure): string {
    return eventOf(errorBody('chat', failure))
  }

  whole(items: readonly AnswerItem[], ending: Ending, tokens: AnswerTokens): object {
    const text = items.map(item => (item.kind === 'text' ? item.text : '')).join('')
    const thoughts = items.filter(item => item.kind === 'thought')
    const calls = items.filter(item => item.kind === 'call')
    const details = thoughts.filter(({ meta }) => meta !== undefined).map(detailOf)
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      refusal: null,
      ...(thoughts.length > 0 && { reasoning_content: thoughts.map(each => each.text).join('\n\n') }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && {
        tool_calls: calls.map(({ id, name, input }) => ({
          id,
          type: 'function',
          function: { name, arguments: input || '{}' },
        })),
      }),
    }
    return {
      ...this.#base,
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: REASONS[ending] }],
      usage: usageOf(tokens),
    }
  }

  get #chunkBase() {
    return { ...this.#base, object: 'chat.completion.chunk' }
  }

  #chunk(delta: object, reason: string | null = null): string {
    return eventOf({ ...this.#chunkBase, choices: [{ index: 0, delta, finish_reason: reason }] })
  }
}

/** A thought with what its server needs back. */
const detailOf = ({ text, meta = '' }: Extract<AnswerItem, { kind: 'thought' }>): object =>
  text === ''
    ? { type: 'reasoning.encrypted', data: meta }
    : { type: 'reasoning.text', text, signature: meta, format: null }

const usageOf = ({ input, output, cacheRead, cacheWrite, thought }: AnswerTokens): object => {
  const prompt = input + cacheRead + cacheWrite
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
    completion_tokens_details: { reasoning_tokens: thought },
  }
}
