import { Refusal, refuse, type Handlers, type Host } from '../../../../sdk/index.js'
import type { CompletionCalls } from '../contract.js'
import { faultFrom, withoutSecrets } from './faults.js'
import type { StreamPart } from './model.js'
import { modelWire } from './wire.js'

interface Candidate {
  readonly endpoint: string
  readonly model: string
}

const PREFIX = 'endpoint/'
const MOST_TEXT = 64 * 1024
const NONE = 'no model server is connected: add one with POST /endpoints'

/** Serves single answers of connected model servers, without tools and without a conversation. */
export const completionCalls = (host: Pick<Host, 'call' | 'serves' | 'log'>): Handlers<CompletionCalls> => ({
  'agent.completes': async ({ models }) => {
    const { found, reason } = await candidates(host, models)
    const [first] = found
    return first ? { available: true, model: keyOf(first) } : { available: false, reason }
  },
  'agent.complete': async ({ models, system, prompt, timeoutMs }, { signal }) => {
    const { found, reason } = await candidates(host, models)
    if (found.length === 0) refuse('dependency', reason)
    const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
    let last = reason
    for (const one of found) {
      if (limit.aborted) break
      try {
        return { text: await answerOf(host, one, system, prompt, limit), model: keyOf(one) }
      } catch (error) {
        last = Refusal.from(error).message
      }
    }
    return refuse('dependency', limit.aborted ? `no model answered within ${timeoutMs} ms` : last)
  },
})

const keyOf = ({ endpoint, model }: Candidate): string => `${PREFIX}${endpoint}:${model}`

/** The models of a list that are connected, or where the list is empty the first of each server. */
const candidates = async (
  host: Pick<Host, 'call' | 'serves'>,
  models: readonly string[],
): Promise<{ found: Candidate[]; reason: string }> => {
  if (!(await host.serves('endpoints.choices'))) return { found: [], reason: NONE }
  const { endpoints } = await host.call('endpoints.choices')
  const ready = endpoints.filter(one => one.ready && (one.default || one.models.length > 0))
  if (models.length === 0) {
    const found = ready.map(({ id, default: usual, models: [first] }) => ({ endpoint: id, model: usual || first!.id }))
    return { found, reason: endpoints.find(({ reason }) => reason !== undefined)?.reason ?? NONE }
  }
  const found = models.flatMap(key => {
    const at = key.indexOf(':')
    const [provider, model] = [key.slice(0, at), key.slice(at + 1)]
    const known = at > 0 && ready.some(({ id }) => provider === `${PREFIX}${id}`)
    return known ? [{ endpoint: provider.slice(PREFIX.length), model }] : []
  })
  return { found, reason: `none of ${models.join(', ').slice(0, 300)} is connected: name endpoint/<id>:<model>` }
}

const answerOf = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  { endpoint, model: id }: Candidate,
  system: string,
  prompt: string,
  signal: AbortSignal,
): Promise<string> => {
  const target = await host.call('endpoints.target', { id: endpoint })
  if (target.problem !== undefined) refuse('dependency', target.problem)
  const { model, options } = await modelWire(target, id, {})
  const startedAt = Date.now()
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(() => {})
  const stop = () => reject(new Refusal('dependency', 'the model did not answer in time'))
  signal.addEventListener('abort', stop, { once: true })
  try {
    const opened = model.doStream({
      ...options,
      prompt: [
        { role: 'system', content: system },
        { role: 'user', content: [{ type: 'text', text: prompt }] },
      ],
      abortSignal: signal,
    })
    const { stream } = await Promise.race([opened, stopped])
    let text = ''
    const reader = stream.getReader()
    for (;;) {
      const { value, done } = await Promise.race([reader.read(), stopped])
      if (done) break
      if (value.type === 'error') throw faultFrom(value.error)
      if (value.type === 'text-delta') text += value.delta
      if (value.type === 'finish') await billed(host, endpoint, id, startedAt, value.usage)
      if (text.length > MOST_TEXT) break
    }
    return text
  } catch (error) {
    if (error instanceof Refusal) throw error
    return refuse('dependency', withoutSecrets(faultFrom(error).message, target.headers))
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

type Usage = Extract<StreamPart, { type: 'finish' }>['usage']

/** Writes what an answer cost into the ledger. */
const billed = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  endpoint: string,
  model: string,
  startedAt: number,
  { inputTokens: input, outputTokens: output }: Usage,
): Promise<void> => {
  try {
    if (!(await host.serves('usage.record'))) return
    const cached = (input.cacheRead ?? 0) + (input.cacheWrite ?? 0)
    await host.call('usage.record', {
      at: Date.now(),
      provider: `${PREFIX}${endpoint}`,
      model,
      harness: 'native',
      turns: 1,
      inputTokens: input.noCache ?? Math.max(0, (input.total ?? 0) - cached),
      outputTokens: output.total ?? 0,
      cacheReadTokens: input.cacheRead ?? 0,
      cacheCreationTokens: input.cacheWrite ?? 0,
      durationMs: Date.now() - startedAt,
      unattended: true,
      outcome: 'ok',
    })
  } catch (error) {
    host.log.error('recording what an answer cost failed', { error: String(error) })
  }
}
