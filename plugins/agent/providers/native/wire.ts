import type { EndpointTarget } from '../../../endpoints/contract.js'
import { chatFetch } from './chat-events.js'
import type { ModelCall, ProviderOptions, ServerModel } from './model.js'
import { ANSWER_LIMITS, modelFetch, NO_KEY, type AnswerLimits } from './model-fetch.js'
import { ollamaFetch } from './ollama-lines.js'

/** The options of a turn for its model. */
export interface AnswerSettings {
  readonly effort?: string
  readonly thinking?: boolean
  readonly fast?: boolean
}

/** A model of a server, ready to be asked. */
export interface ModelWire {
  readonly model: ServerModel
  /** The fields of every request besides messages and tools. */
  readonly options: Pick<ModelCall, 'maxOutputTokens' | 'providerOptions'>
  /** The context window in tokens; undefined: unknown. */
  readonly window?: number
  /** Requests need cache breakpoints. */
  readonly marksCache: boolean
}

const MOST_OUTPUT = 32_000
/** The largest context window requested from a local server, because its memory grows with it. */
const MOST_LOCAL_WINDOW = 32_768
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const
const BUDGETS: { readonly [effort: string]: number } = { low: 4_000, medium: 10_000 }
const DEFAULT_BUDGET = 16_000

/** Opens a model of a server; the package of its protocol is loaded when it is first needed. */
export const modelWire = async (
  target: EndpointTarget,
  id: string,
  settings: AnswerSettings,
  limits: AnswerLimits = ANSWER_LIMITS,
  send: typeof fetch = modelFetch(target.headers, limits),
): Promise<ModelWire> => {
  const window = target.models.find(row => row.id === id)?.contextWindow
  const known = window ? { window } : {}
  switch (target.protocol) {
    case 'openai': {
      const { OpenAICompatibleChatLanguageModel } = await import('@ai-sdk/openai-compatible')
      const model = new OpenAICompatibleChatLanguageModel(id, {
        provider: 'openaiCompatible',
        url: ({ path }) => `${apiOf(target)}${path}`,
        includeUsage: true,
        fetch: chatFetch(send),
        metadataExtractor: { extractMetadata: async () => undefined, createStreamExtractor: servedTier },
      })
      const { effort, fast } = settings
      const openaiCompatible = {
        ...(effort !== undefined && { reasoningEffort: effort }),
        ...(fast && { service_tier: 'priority' }),
      }
      const options = Object.keys(openaiCompatible).length > 0 ? { providerOptions: { openaiCompatible } } : {}
      return { model, options, marksCache: false, ...known }
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      const model = createAnthropic({ baseURL: apiOf(target), apiKey: NO_KEY, fetch: send })(id)
      const maxOutputTokens = Math.min(MOST_OUTPUT, Math.floor((window ?? Infinity) / 4))
      const options = { maxOutputTokens, providerOptions: { anthropic: messagesOptions(settings) } }
      return { model, options, marksCache: true, ...known }
    }
    case 'ollama': {
      const { createOllama } = await import('ollama-ai-provider-v2')
      const think = settings.thinking ?? (settings.effort === undefined ? undefined : true)
      const model = createOllama({ baseURL: apiOf(target), fetch: ollamaFetch(send, think) })(id)
      const room = window && Math.min(window, MOST_LOCAL_WINDOW)
      const ollama = { ...(think !== undefined && { think }), ...(room && { options: { num_ctx: room } }) }
      return { model, options: { providerOptions: { ollama } }, marksCache: false, ...(room && { window: room }) }
    }
  }
}

/** The service tier that an answer names beside its text, as `served.tier` in its metadata. */
const servedTier = () => {
  let tier: string | undefined
  return {
    processChunk: (chunk: unknown) => {
      const named = (chunk as { service_tier?: unknown } | undefined)?.service_tier
      if (typeof named === 'string') tier = named
    },
    buildMetadata: () => (tier === undefined ? undefined : { served: { tier } }),
  }
}

const messagesOptions = ({ effort, thinking, fast }: AnswerSettings): ProviderOptions[string] => {
  const level = EFFORTS.find(known => known === effort)
  return {
    ...(level && { effort: level }),
    ...(thinking === true && {
      thinking: { type: 'enabled', budgetTokens: BUDGETS[effort ?? ''] ?? DEFAULT_BUDGET },
    }),
    ...(thinking === false && { thinking: { type: 'disabled' } }),
    ...(fast && { speed: 'fast' }),
  }
}

/** The base address of a server's calls. */
export const apiOf = ({ apiBase, baseUrl, protocol }: EndpointTarget): string =>
  apiBase ?? `${baseUrl}/${protocol === 'ollama' ? 'api' : 'v1'}`
