import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { OpenAICompatibleChatLanguageModel } from '@ai-sdk/openai-compatible'
import type { ModelCall, ModelPrompt, ProviderOptions, ServerModel } from '../../../sdk/node/models/model-call.js'
import type { TranslatedResult, TranslatedProtocol, TranslatedRequest, UserPart } from './translated.js'

/** A placeholder for packages that require a key; requests carry the headers of a lease in its place. */
const NO_KEY = 'not-sent'
/** What a model is asked for that takes a limit and whose request names none. */
const USUAL_OUTPUT = 32_000

/** The server that answers. */
export interface AnsweringServer {
  readonly protocol: TranslatedProtocol
  /** Where its calls are, such as `…/v1` of `…/v1/messages`. */
  readonly base: string
  readonly model: string
  readonly maxOutput?: number
  readonly send: typeof fetch
}

/** The model of a server. */
export const upstreamModel = ({ protocol, base, model, send }: AnsweringServer): ServerModel => {
  switch (protocol) {
    case 'chat':
      return new OpenAICompatibleChatLanguageModel(model, {
        provider: 'openaiCompatible',
        url: ({ path }) => base + path,
        includeUsage: true,
        supportsStructuredOutputs: true,
        fetch: send,
      })
    case 'messages':
      return createAnthropic({ baseURL: base, apiKey: NO_KEY, fetch: send })(model) as ServerModel
    case 'responses':
      return createOpenAI({ baseURL: base, apiKey: NO_KEY, fetch: send }).responses(model) as ServerModel
  }
}

/** A request as the package of a protocol takes it. */
export const callFor = (
  { protocol, maxOutput }: Pick<AnsweringServer, 'protocol' | 'maxOutput'>,
  { call, parallel }: TranslatedRequest,
): ModelCall => {
  const options = optionsFor(protocol, call, parallel)
  return {
    ...call,
    prompt: protocol === 'chat' ? withoutFilesInResults(call.prompt) : call.prompt,
    ...(protocol === 'messages' && { maxOutputTokens: call.maxOutputTokens ?? maxOutput ?? USUAL_OUTPUT }),
    ...(options && { providerOptions: options }),
  }
}

const optionsFor = (
  protocol: TranslatedProtocol,
  { reasoning }: ModelCall,
  parallel: boolean | undefined,
): ProviderOptions | undefined => {
  switch (protocol) {
    case 'chat':
      return parallel === undefined ? undefined : { openaiCompatible: { parallel_tool_calls: parallel } }
    case 'messages':
      return parallel === false ? { anthropic: { disableParallelToolUse: true } } : undefined
    case 'responses':
      return {
        openai: {
          store: false,
          ...(parallel !== undefined && { parallelToolCalls: parallel }),
          ...(reasoning !== undefined && reasoning !== 'none' && { forceReasoning: true, reasoningSummary: 'auto' }),
          include: ['reasoning.encrypted_content'],
        },
      }
  }
}

/** Results of a chat have text alone: their pictures follow as a message. */
const withoutFilesInResults = (prompt: ModelPrompt): ModelPrompt =>
  prompt.flatMap((message): ModelPrompt => {
    if (message.role !== 'tool') return [message]
    const shown: UserPart[] = []
    const content = message.content.map(part => {
      if (part.type !== 'tool-result' || part.output.type !== 'content') return part
      const files = part.output.value.filter(each => each.type === 'file')
      if (files.length > 0)
        shown.push({ type: 'text', text: `[files of the result of ${part.toolName}:]` }, ...(files as UserPart[]))
      return { ...part, output: textIn(part.output) }
    })
    return [{ ...message, content }, ...(shown.length > 0 ? [{ role: 'user' as const, content: shown }] : [])]
  })

const textIn = (output: Extract<TranslatedResult['output'], { type: 'content' }>): TranslatedResult['output'] => ({
  type: 'text',
  value: output.value.map(each => (each.type === 'text' ? each.text : '')).join('\n') || '(see the files below)',
})
