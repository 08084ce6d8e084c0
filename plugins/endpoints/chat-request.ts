import type { WireProtocol } from './contract.js'

/** One short question to a model. */
export interface ChatRequest {
  readonly path: string
  readonly body: { readonly [field: string]: unknown }
}

const QUESTION = 'Reply with the word ok.'
const MOST_TOKENS = 16
const TOOL = { name: 'note', description: 'Notes a word.' }
const INPUT = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] }

const messages = [{ role: 'user', content: QUESTION }]
const functions = [{ type: 'function', function: { ...TOOL, parameters: INPUT } }]

/** The request that asks a model for a few tokens as they come, with a tool or without. */
export const chatRequest = (
  protocol: WireProtocol,
  model: string,
  { tool = false, renamed = false }: { tool?: boolean; renamed?: boolean } = {},
): ChatRequest => {
  switch (protocol) {
    case 'openai': {
      // Newer servers refuse the older name of the limit.
      const limit = renamed ? { max_completion_tokens: MOST_TOKENS } : { max_tokens: MOST_TOKENS }
      return {
        path: '/chat/completions',
        body: { model, messages, stream: true, ...limit, ...(tool && { tools: functions }) },
      }
    }
    case 'anthropic':
      return {
        path: '/messages',
        body: {
          model,
          messages,
          stream: true,
          max_tokens: MOST_TOKENS,
          ...(tool && { tools: [{ ...TOOL, input_schema: INPUT }] }),
        },
      }
    case 'ollama':
      return {
        path: '/chat',
        body: {
          model,
          messages,
          stream: true,
          options: { num_predict: MOST_TOKENS },
          ...(tool && { tools: functions }),
        },
      }
  }
}
