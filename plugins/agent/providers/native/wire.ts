import type { EndpointTarget, ModelRow, ThinkingForm } from '../../../endpoints/contract.js'
import { chatFetch } from './chat-events.js'
import type { ModelCall, ProviderOptions, ServerModel } from '../../../../sdk/node/models/model-call.js'
import { ANSWER_LIMITS, modelFetch, NO_KEY, type AnswerLimits } from './model-fetch.js'
import type { NativeTarget } from './target.js'
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
  /** Whether it sees pictures; undefined: unknown. */
  readonly pictures?: boolean
  /** Requests need cache breakpoints. */
  readonly marksCache: boolean
}

const MOST_OUTPUT = 32_000
/** The largest context window requested from a local server, because its memory grows with it. */
const MOST_LOCAL_WINDOW = 32_768
/** All levels of effort, the lowest first. */
const LEVELS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']
const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const
const BUDGETS: { readonly [effort: string]: number } = { low: 4_000, medium: 10_000 }
const DEFAULT_BUDGET = 16_000

/** Opens a model of a server; the package of its protocol is loaded when it is first needed. */
export const modelWire = async (
  target: NativeTarget,
  id: string,
  settings: AnswerSettings,
  limits: AnswerLimits = ANSWER_LIMITS,
  send: typeof fetch = modelFetch(target.headers, limits),
): Promise<ModelWire> => {
  const row = target.models.find(one => one.id === id)
  const { contextWindow: window, pictures } = row ?? {}
  const { named = '' } = target
  const known = { ...(window && { window }), ...(pictures !== undefined && { pictures }) }
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
      const { fast } = settings
      const effort = effortFor(settings.effort, row)
      const openaiCompatible = {
        ...(effort !== undefined && { reasoningEffort: effort }),
        ...(fast && { service_tier: 'priority' }),
      }
      const options = Object.keys(openaiCompatible).length > 0 ? { providerOptions: { openaiCompatible } } : {}
      return { model, options, marksCache: false, ...known }
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      const model = createAnthropic({ baseURL: apiOf(target), apiKey: NO_KEY, fetch: send })(`${named}${id}`)
      const quarter = Math.floor((window ?? Infinity) / 4)
      const budget = budgetOf(settings, row)
      // The package asks for the budget of thoughts on top, and a model has one limit for both.
      const maxOutputTokens = Math.min(MOST_OUTPUT, quarter, (row?.maxOutput ?? Infinity) - budget)
      const options = { maxOutputTokens, providerOptions: { anthropic: messagesOptions(settings, budget, row) } }
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

/** A level of effort as a model knows it: the wanted one, else the next lower one that it has; without any, none. */
const effortFor = (wanted: string | undefined, row: ModelRow | undefined): string | undefined => {
  // Of an unknown model nothing is left out: its server says what it does not take.
  if (wanted === undefined || row?.thinking === undefined || row.efforts.includes(wanted)) return wanted
  const most = LEVELS.indexOf(wanted)
  const levels = row.efforts.toSorted((one, other) => LEVELS.indexOf(one) - LEVELS.indexOf(other))
  return most < 0 ? undefined : (levels.findLast(level => LEVELS.indexOf(level) <= most) ?? levels[0])
}

const messagesOptions = (
  { effort, thinking, fast }: AnswerSettings,
  budget: number,
  row?: ModelRow,
): ProviderOptions[string] => {
  const level = EFFORTS.find(known => known === effortFor(effort, row))
  return {
    ...(level && { effort: level }),
    ...thinkingOf(thinking, effort, budget, row?.thinking),
    ...(fast && { speed: 'fast' }),
  }
}

/** How a model is asked to think, in the form that it takes. */
const thinkingOf = (
  wanted: boolean | undefined,
  effort: string | undefined,
  budget: number,
  form: ThinkingForm | undefined,
): ProviderOptions[string] => {
  if (form === 'none') return {}
  if (wanted === false) return form === 'always' ? {} : { thinking: { type: 'disabled' } }
  // Such a model spends an effort on thoughts.
  if (isAdaptive(form) && (wanted === true || effort !== undefined))
    return { thinking: { type: 'adaptive', display: 'summarized' } }
  return budget === 0 ? {} : { thinking: { type: 'enabled', budgetTokens: budget } }
}

const isAdaptive = (form: ThinkingForm | undefined): boolean => form === 'adaptive' || form === 'always'

/** The tokens for thoughts that a model is asked for in numbers: at most half of its answer. */
const budgetOf = ({ effort, thinking }: AnswerSettings, row: ModelRow | undefined): number => {
  if (thinking !== true || row?.thinking === 'none' || isAdaptive(row?.thinking)) return 0
  return Math.min(BUDGETS[effort ?? ''] ?? DEFAULT_BUDGET, Math.floor((row?.maxOutput ?? Infinity) / 2))
}

/** The base address of a server's calls. */
export const apiOf = ({ apiBase, baseUrl, protocol }: EndpointTarget): string =>
  apiBase ?? `${baseUrl}/${protocol === 'ollama' ? 'api' : 'v1'}`
