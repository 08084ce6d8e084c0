import { Refusal, refuse, type Handlers, type Host, type Input, ignored } from '../../../../sdk/index.js'
import { valueMasker } from '../../../../sdk/node/access/value-masker.js'
import type { CompletionCalls } from '../contract.js'
import { leasedTarget } from './account-adapter.js'
import { faultFrom, withoutSecrets, type ServerFault } from './faults.js'
import { ModelShield } from './model-shield.js'
import { tokenCountOf } from './answer.js'
import type { TokenCount } from './session.js'
import { NativeOver } from './over.js'
import type { NativeTarget } from './target.js'
import { routedTarget } from '../routed/routed-target.js'
import { modelWire } from './wire.js'

/** A model of a provider, for a single question. */
export interface AskedProvider {
  readonly provider: string
  readonly model: string
}

/** What single questions need of the group. */
export type ProviderLink = Pick<Host, 'call' | 'serves' | 'emit' | 'log'>

const PREFIX = 'endpoint/'
const MOST_TEXT = 64 * 1024
const NONE = 'no model is connected: add a server with POST /endpoints, or an account of a provider'

/** A question to the first of some models that answers. */
type Question = Input<CompletionCalls, 'agent.complete'>

/** Serves single answers of connected model servers and accounts, without tools and without a conversation. */
export const completionCalls = (host: ProviderLink): Handlers<CompletionCalls> => ({
  'agent.completes': asked => completes(host, asked),
  'agent.complete': (question, { signal }) => completeOnce(host, question, signal),
})

/** Which of some models would answer now. */
export const completes = async (
  host: ProviderLink,
  { models, role }: Input<CompletionCalls, 'agent.completes'>,
): Promise<ReturnType<CompletionCalls['agent.completes']>> => {
  const { found, reason } = await candidates(host, models, role)
  const [first] = found
  return first ? { available: true, model: keyOf(first) } : { available: false, reason }
}

/** One answer of the first of some models that answers; refused where none does. */
export const completeOnce = async (
  host: ProviderLink,
  { models, role, system, prompt, timeoutMs }: Question,
  signal: AbortSignal,
): Promise<ReturnType<CompletionCalls['agent.complete']>> => {
  const { found, reason } = await candidates(host, models, role)
  if (found.length === 0) refuse('dependency', reason)
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])
  // A question may hold what no turn sees, such as a patch with a value that a program wrote into a file.
  const masker = await valueMasker(host)
  const [rules, words] = [masker.mask(system), masker.mask(prompt)]
  let last = reason
  for (const one of found) {
    if (limit.aborted) break
    try {
      return { text: await answerOf(host, one, rules, words, limit), model: keyOf(one) }
    } catch (error) {
      last = Refusal.from(error).message
    }
  }
  return refuse('dependency', limit.aborted ? `no model answered within ${timeoutMs} ms` : last)
}

const keyOf = ({ provider, model }: AskedProvider): string => `${provider}:${model}`

/** The models that can be used now, in order: those of a list, or where it is empty those of the settings. */
const candidates = async (
  host: ProviderLink,
  models: string[],
  role = 'quickModel',
): Promise<{ found: readonly AskedProvider[]; reason: string }> => {
  if (!(await host.serves('models.ladder'))) return { found: [], reason: 'models are not chosen here: group settings' }
  const { configured, resolved } = await host.call('models.ladder', { role, models })
  const found = resolved.filter(({ usable }) => usable)
  const why = resolved.find(({ reason }) => reason !== undefined)?.reason
  if (configured.length === 0) return { found, reason: why ?? NONE }
  const named = configured.join(', ').slice(0, 300)
  return { found, reason: `none of ${named} is connected and usable now: ${why ?? 'it does not answer'}` }
}

/** The server of a provider; a credential that was lent for it is given back with `over`. */
export const askedTarget = async (host: ProviderLink, { provider, model }: AskedProvider): Promise<NativeTarget> => {
  if (provider.startsWith(PREFIX)) {
    const target = await host.call('endpoints.target', { id: provider.slice(PREFIX.length) })
    return target.problem === undefined ? target : refuse('dependency', target.problem)
  }
  const { definition } = await host.call('definitions.get', { provider })
  if (!definition) return refuse('dependency', `${provider} answers no single questions`)
  const target =
    definition.serving === 'routed'
      ? routedTarget(host, definition, { run: 'question', model })
      : leasedTarget(host, definition, { model })
  return target.catch((error: unknown) => {
    if (error instanceof NativeOver) refuse('dependency', error.message)
    throw error
  })
}

const answerOf = async (
  host: ProviderLink,
  candidate: AskedProvider,
  system: string,
  prompt: string,
  signal: AbortSignal,
): Promise<string> => {
  const { model: id } = candidate
  const target = await askedTarget(host, candidate)
  const wire = await modelWire(target, id, {}, undefined, target.send)
  const { account, local } = target
  const model = new ModelShield(host, { provider: candidate.provider, account, local }).over(wire.model)
  const { options } = wire
  let fault: ServerFault | undefined
  let answered = false
  const startedAt = Date.now()
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(ignored('the caller that awaits it gets the failure'))
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
      if (value.type === 'finish')
        await billAnswer(host, candidate, target.account, startedAt, tokenCountOf(value.usage))
      if (text.length > MOST_TEXT) break
    }
    answered = true
    return text
  } catch (error) {
    if (error instanceof Refusal) throw error
    fault = faultFrom(error)
    return refuse('dependency', withoutSecrets(fault.message, target.headers))
  } finally {
    const code = fault?.details.code
    target.over?.(fault && { message: fault.message, ...(code && { code }) }, !answered && !fault)
    signal.removeEventListener('abort', stop)
  }
}

/** Writes what an answer cost into the ledger. */
export const billAnswer = async (
  host: ProviderLink,
  { provider, model }: AskedProvider,
  account: string | undefined,
  startedAt: number,
  { input, output, cacheRead, cacheWrite }: TokenCount,
): Promise<void> => {
  try {
    if (!(await host.serves('usage.record'))) return
    await host.call('usage.record', {
      at: Date.now(),
      provider,
      model,
      ...(account !== undefined && { account }),
      harness: 'native',
      turns: 1,
      inputTokens: input,
      outputTokens: output,
      cacheReadTokens: cacheRead,
      cacheCreationTokens: cacheWrite,
      durationMs: Date.now() - startedAt,
      unattended: true,
      outcome: 'ok',
    })
  } catch (error) {
    host.log.error('recording what an answer cost failed', { error: String(error) })
  }
}
