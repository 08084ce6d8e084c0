import { Refusal, refuse, type Handlers, type Input } from '../../../../sdk/index.js'
import { valueMasker } from '../../../../sdk/node/access/value-masker.js'
import type { WireProtocol } from '../../../endpoints/contract.js'
import type { Embedding, EmbeddingCalls } from '../contract.js'
import { askedTarget, billAnswer, type AskedProvider, type ProviderLink } from './completion.js'
import { faultFrom, ServerFault, withoutSecrets } from './faults.js'
import { ANSWER_LIMITS, modelFetch } from './model-fetch.js'
import { shieldedTexts } from './model-shield.js'
import type { NativeTarget } from './target.js'
import { apiOf } from './wire.js'

/** An answer has at most so many numbers for a text. */
const MOST_NUMBERS = 8_192

/** What an answer of a model server says, in any of the protocols. */
interface Answered {
  readonly embeddings: unknown
  readonly tokens: unknown
}

interface EmbeddingForm {
  readonly path: string
  readonly body: (model: string, texts: readonly string[]) => object
  readonly read: (answer: { readonly [field: string]: unknown }) => Answered
}

/** The calls for embeddings of the protocols that have one. */
const FORMS: { readonly [protocol in WireProtocol]?: EmbeddingForm } = {
  openai: {
    path: '/embeddings',
    body: (model, input) => ({ model, input, encoding_format: 'float' }),
    read: ({ data, usage }) => ({ embeddings: ordered(data), tokens: fieldOf(usage, 'prompt_tokens') }),
  },
  ollama: {
    path: '/embed',
    body: (model, input) => ({ model, input, truncate: true }),
    read: ({ embeddings, prompt_eval_count: tokens }) => ({ embeddings, tokens }),
  },
}

/** Serves embeddings of connected model servers and accounts. */
export const embeddingCalls = (host: ProviderLink): Handlers<EmbeddingCalls> => ({
  'agent.embed': async (asked, { signal }) => ({ embeddings: await embedded(host, asked, signal) }),
})

const embedded = async (
  host: ProviderLink,
  { model: key, texts, cut = false, timeoutMs }: Input<EmbeddingCalls, 'agent.embed'>,
  signal: AbortSignal,
): Promise<Embedding[]> => {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  const provider = providerOf(key)
  await admitted(host, provider)
  const target = await askedTarget(host, provider)
  let failure: ServerFault | undefined
  let answered = false
  try {
    const form =
      FORMS[target.protocol]
      ?? refuse(
        'unprocessable',
        `${target.label} has no embeddings: its protocol ${target.protocol} has no call for them`,
      )
    const masker = await valueMasker(host)
    const masked = texts.map(text => (cut ? masker.settled(text).masked : masker.mask(text)))
    const { account, local } = target
    const sent = await shieldedTexts(host, { provider: provider.provider, account, local }, masked)
    const startedAt = Date.now()
    const { embeddings, tokens } = await answerOf(target, form, provider.model, sent, limit)
    const input = typeof tokens === 'number' && Number.isSafeInteger(tokens) && tokens >= 0 ? tokens : 0
    await billAnswer(host, provider, account, startedAt, { input, output: 0, cacheRead: 0, cacheWrite: 0 })
    const read = embeddingsIn(embeddings, texts.length)
    answered = true
    return read
  } catch (error) {
    if (error instanceof Refusal) throw error
    if (limit.aborted && !signal.aborted)
      return refuse('dependency', `${target.label} did not answer within ${timeoutMs} ms`)
    failure = faultFrom(error)
    const { retryAfterMs } = failure.details
    return refuse('dependency', withoutSecrets(failure.message, target.headers), {
      ...(retryAfterMs !== undefined && { retryAfter: Math.ceil(retryAfterMs / 1000) }),
    })
  } finally {
    const code = failure?.details.code
    target.over?.(failure && { message: failure.message, ...(code && { code }) }, !answered && !failure)
  }
}

const providerOf = (key: string): AskedProvider => {
  const at = key.indexOf(':')
  const [provider, model] = [key.slice(0, at), key.slice(at + 1)]
  if (at < 1 || model === '')
    refuse('unprocessable', `model: expected <provider>:<model>, found ${JSON.stringify(key)}`)
  if (provider.startsWith('agent/')) refuse('unprocessable', `${provider} is an agent program, which has no embeddings`)
  return { provider, model }
}

/** Asks the budgets; nobody could answer a card for a background request, so a held one is refused. */
const admitted = async (host: ProviderLink, { provider, model }: AskedProvider): Promise<void> => {
  if (!(await host.serves('usage.admit'))) return
  const { verdict, message } = await host.call('usage.admit', { provider, model, unattended: true })
  if (verdict === 'hold' || verdict === 'refuse') refuse('too-many', message ?? 'a budget of this sandbox is used up')
}

const answerOf = async (
  target: NativeTarget,
  { path, body, read }: EmbeddingForm,
  model: string,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<Answered> => {
  const send = target.send ?? modelFetch(target.headers, ANSWER_LIMITS)
  const answer = await send(`${apiOf(target)}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body(model, texts)),
    signal,
  })
  const value: unknown = parsed(await answer.text())
  if (typeof value !== 'object' || value === null) throw new ServerFault('the model server sent no JSON object')
  return read(value as { [field: string]: unknown })
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new ServerFault('the model server sent an answer that is not JSON: check its address and protocol')
  }
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null ? (value as { [name: string]: unknown })[name] : undefined

/** The embeddings of a list whose entries say which text they belong to. */
const ordered = (data: unknown): unknown => {
  if (!Array.isArray(data)) return undefined
  const all: unknown[] = []
  for (const [at, entry] of data.entries()) {
    const index = fieldOf(entry, 'index')
    const place = index === undefined ? at : index
    if (typeof place !== 'number' || !(place in data) || place in all) return undefined
    all[place] = fieldOf(entry, 'embedding')
  }
  return all
}

/** The embeddings of so many texts: each a list of as many numbers as the others. */
const embeddingsIn = (value: unknown, count: number): Embedding[] => {
  const found = Array.isArray(value) ? value.length : 0
  if (!Array.isArray(value) || found !== count)
    return refuse(
      'dependency',
      `the model server sent ${found} embeddings for ${count} texts: is it an embedding model?`,
    )
  const length = Array.isArray(value[0]) ? value[0].length : 0
  for (const one of value as unknown[]) {
    const fits = Array.isArray(one) && one.length === length && one.every(each => Number.isFinite(each))
    if (!fits || length === 0 || length > MOST_NUMBERS)
      refuse('dependency', `the model server sent an embedding that is not a list of 1 to ${MOST_NUMBERS} numbers`)
  }
  return value as Embedding[]
}
