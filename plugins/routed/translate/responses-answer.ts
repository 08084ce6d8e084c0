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

/** Writes responses. */
export class ResponsesAnswerWriter implements AnswerWriter {
  readonly #id: string
  readonly #base: object
  readonly #done: object[] = []
  #sequence = 0

  constructor(id: string, model: string) {
    this.#id = id
    this.#base = {
      id: `resp_${id}`,
      object: 'response',
      created_at: Math.floor(Date.now() / 1000),
      model,
      error: null,
      incomplete_details: null,
      instructions: null,
      metadata: {},
      parallel_tool_calls: true,
      temperature: null,
      tool_choice: 'auto',
      tools: [],
      top_p: null,
    }
  }

  begin(): string {
    const response = { ...this.#base, status: 'in_progress', output: [], usage: null }
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response })
  }

  step(step: AnswerStep): string {
    switch (step.step) {
      case 'open':
        return this.#opened(step.at, step.item)
      case 'piece':
        return this.#piece(step)
      case 'close':
        return this.#closed(step.at, step.item)
      case 'end': {
        const response = this.#response(this.#done.filter(Boolean), step.ending, step.tokens)
        return this.#event(step.ending === 'length' ? 'response.incomplete' : 'response.completed', { response })
      }
    }
  }

  #opened(at: number, item: AnswerItem): string {
    const added = this.#event('response.output_item.added', {
      output_index: at,
      item: { ...itemOf(item, this.#itemId(at, item)), ...emptied(item) },
    })
    const place = { item_id: this.#itemId(at, item), output_index: at }
    if (item.kind === 'text') {
      const part = { type: 'output_text', text: '', annotations: [] }
      return added + this.#event('response.content_part.added', { ...place, content_index: 0, part })
    }
    if (item.kind !== 'thought') return added
    const part = { type: 'summary_text', text: '' }
    return added + this.#event('response.reasoning_summary_part.added', { ...place, summary_index: 0, part })
  }

  #piece({ at, item, piece: delta }: Extract<AnswerStep, { step: 'piece' }>): string {
    const place = { item_id: this.#itemId(at, item), output_index: at, delta }
    if (item.kind === 'text')
      return this.#event('response.output_text.delta', { ...place, content_index: 0, logprobs: [] })
    return item.kind === 'thought'
      ? this.#event('response.reasoning_summary_text.delta', { ...place, summary_index: 0 })
      : this.#event('response.function_call_arguments.delta', place)
  }

  #closed(at: number, item: AnswerItem): string {
    const id = this.#itemId(at, item)
    const place = { item_id: id, output_index: at }
    const whole = itemOf(item, id)
    this.#done[at] = whole
    return this.#ends(place, item) + this.#event('response.output_item.done', { output_index: at, item: whole })
  }

  #ends(place: object, item: AnswerItem): string {
    if (item.kind === 'call')
      return this.#event('response.function_call_arguments.done', {
        ...place,
        name: item.name,
        arguments: item.input || '{}',
      })
    const { text } = item
    if (item.kind === 'text') {
      const part = { type: 'output_text', text, annotations: [] }
      return (
        this.#event('response.output_text.done', { ...place, content_index: 0, text, logprobs: [] })
        + this.#event('response.content_part.done', { ...place, content_index: 0, part })
      )
    }
    const part = { type: 'summary_text', text }
    return (
      this.#event('response.reasoning_summary_text.done', { ...place, summary_index: 0, text })
      + this.#event('response.reasoning_summary_part.done', { ...place, summary_index: 0, part })
    )
  }

  fail({ status, message }: AnswerFailure): string {
    const { error } = errorBody('responses', { status, message }) as { error: { code: string | null; type: string } }
    const code = error.code ?? error.type
    const response = { ...this.#base, status: 'failed', output: this.#done.filter(Boolean), error: { code, message } }
    return (
      this.#event('error', { code, message, param: null })
      + this.#event('response.failed', { response: { ...response, usage: null } })
    )
  }

  whole(items: readonly AnswerItem[], ending: Ending, tokens: AnswerTokens): object {
    return this.#response(
      items.map((item, at) => itemOf(item, this.#itemId(at, item))),
      ending,
      tokens,
    )
  }

  #response(output: readonly object[], ending: Ending, tokens: AnswerTokens): object {
    const cut = ending === 'length' ? 'max_output_tokens' : ending === 'refused' ? 'content_filter' : undefined
    return {
      ...this.#base,
      status: ending === 'length' ? 'incomplete' : 'completed',
      incomplete_details: cut === undefined ? null : { reason: cut },
      output,
      usage: usageOf(tokens),
    }
  }

  #itemId(at: number, { kind }: AnswerItem): string {
    return `${kind === 'text' ? 'msg' : kind === 'thought' ? 'thought' : 'fc'}_${this.#id}_${at}`
  }

  #event(type: string, fields: object): string {
    return eventOf({ type, sequence_number: this.#sequence++, ...fields }, type)
  }
}

const itemOf = (item: AnswerItem, id: string): object => {
  if (item.kind === 'call')
    return {
      ...{ type: 'function_call', id, call_id: item.id, name: item.name },
      ...{ arguments: item.input || '{}', status: 'completed' },
    }
  if (item.kind === 'text')
    return {
      ...{ type: 'message', id, role: 'assistant', status: 'completed' },
      content: [{ type: 'output_text', text: item.text, annotations: [], logprobs: [] }],
    }
  return {
    type: 'reasoning',
    id,
    summary: item.text === '' ? [] : [{ type: 'summary_text', text: item.text }],
    ...(item.meta !== undefined && { encrypted_content: item.meta }),
  }
}

/** What an item lacks while it is written. */
const emptied = ({ kind }: AnswerItem): object =>
  kind === 'call'
    ? { arguments: '', status: 'in_progress' }
    : kind === 'text'
      ? { content: [], status: 'in_progress' }
      : { summary: [] }

const usageOf = ({ input, output, cacheRead, cacheWrite, thought }: AnswerTokens): object => {
  const whole = input + cacheRead + cacheWrite
  return {
    input_tokens: whole,
    input_tokens_details: { cached_tokens: cacheRead },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: thought },
    total_tokens: whole + output,
  }
}
