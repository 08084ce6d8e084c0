import {
  eventOf,
  NO_ANSWER_TOKENS,
  type AnswerFailure,
  type AnswerItem,
  type AnswerStep,
  type AnswerTokens,
  type AnswerWriter,
  type Ending,
} from './answer-parts.js'
import { errorBody } from './errors.js'
import { callInput, UNSIGNED } from './translated.js'

const REASONS: { readonly [E in Ending]: string } = {
  stop: 'end_turn',
  length: 'max_tokens',
  calls: 'tool_use',
  refused: 'refusal',
}

/** Writes answers in the protocol of messages. */
export class MessagesAnswerWriter implements AnswerWriter {
  readonly #base: object
  /** Calls that are written while another block is open; a block has to be whole before the next one. */
  readonly #waiting: AnswerStep[] = []
  #open: number | undefined
  #blocks = 0

  constructor(id: string, model: string) {
    this.#base = { id: `msg_${id}`, type: 'message', role: 'assistant', model }
  }

  begin(): string {
    const message = {
      ...this.#base,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: usageOf(NO_ANSWER_TOKENS),
    }
    return eventOf({ type: 'message_start', message }, 'message_start')
  }

  step(step: AnswerStep): string {
    if (step.step === 'end') {
      const delta = { stop_reason: REASONS[step.ending], stop_sequence: null }
      const over = { type: 'message_delta', delta, usage: usageOf(step.tokens) }
      return eventOf(over, 'message_delta') + eventOf({ type: 'message_stop' }, 'message_stop')
    }
    if (this.#open !== undefined && this.#open !== step.at) {
      this.#waiting.push(step)
      return ''
    }
    const text = this.#write(step)
    return step.step === 'close' ? text + this.#next() : text
  }

  /** Writes the steps that waited for the end of a block. */
  #next(): string {
    const [first] = this.#waiting
    if (!first || first.step === 'end') return ''
    const own = this.#waiting.filter(step => step.step !== 'end' && step.at === first.at)
    const others = this.#waiting.filter(step => !own.includes(step))
    this.#waiting.splice(0, this.#waiting.length, ...others)
    const text = own.map(step => this.#write(step)).join('')
    return own.at(-1)?.step === 'close' ? text + this.#next() : text
  }

  #write(step: AnswerStep): string {
    const index = this.#blocks
    switch (step.step) {
      case 'open':
        this.#open = step.at
        return eventOf({ type: 'content_block_start', index, content_block: startOf(step.item) }, 'content_block_start')
      case 'piece':
        return this.#delta(deltaOf(step.item, step.piece))
      case 'close': {
        const { item } = step
        const signature =
          item.kind === 'thought' ? this.#delta({ type: 'signature_delta', signature: item.meta ?? UNSIGNED }) : ''
        this.#open = undefined
        this.#blocks++
        return signature + eventOf({ type: 'content_block_stop', index }, 'content_block_stop')
      }
      case 'end':
        return ''
    }
  }

  #delta(delta: object): string {
    return eventOf({ type: 'content_block_delta', index: this.#blocks, delta }, 'content_block_delta')
  }

  fail(failure: AnswerFailure): string {
    return eventOf(errorBody('messages', failure), 'error')
  }

  whole(items: readonly AnswerItem[], ending: Ending, tokens: AnswerTokens): object {
    return {
      ...this.#base,
      content: items.map(blockOf),
      stop_reason: REASONS[ending],
      stop_sequence: null,
      usage: usageOf(tokens),
    }
  }
}

const startOf = (item: AnswerItem): object =>
  item.kind === 'text'
    ? { type: 'text', text: '' }
    : item.kind === 'thought'
      ? { type: 'thinking', thinking: '', signature: '' }
      : { type: 'tool_use', id: item.id, name: item.name, input: {} }

const deltaOf = ({ kind }: AnswerItem, piece: string): object =>
  kind === 'text'
    ? { type: 'text_delta', text: piece }
    : kind === 'thought'
      ? { type: 'thinking_delta', thinking: piece }
      : { type: 'input_json_delta', partial_json: piece }

const blockOf = (item: AnswerItem): object =>
  item.kind === 'text'
    ? { type: 'text', text: item.text }
    : item.kind === 'thought'
      ? { type: 'thinking', thinking: item.text, signature: item.meta ?? UNSIGNED }
      : { type: 'tool_use', id: item.id, name: item.name, input: callInput(item.input) }

const usageOf = ({ input, output, cacheRead, cacheWrite }: AnswerTokens): object => ({
  input_tokens: input,
  cache_creation_input_tokens: cacheWrite,
  cache_read_input_tokens: cacheRead,
  output_tokens: output,
})
