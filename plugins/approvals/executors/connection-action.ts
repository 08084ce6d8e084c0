import { refuse, Refusal, type Host } from '../../../sdk/index.js'
import { valueMasker } from '../../../sdk/node/access/value-masker.js'
import type { StoredApproval } from '../stored-approval.js'
import { UnknownOutcome, type CarriedOut, type Executor, type Missing } from './executor.js'
import { withSecrets } from './with-secrets.js'

type ConnectionHost = Pick<Host, 'call' | 'serves'>

/** Failures before anything was sent. */
const UNSENT = new Set(['not-found', 'conflict', 'forbidden', 'invalid', 'unprocessable', 'unavailable', 'dependency'])

/** Lets a connection do what the action says; undefined: the action means none. */
export const connectionAction = async (
  host: ConnectionHost,
  item: StoredApproval,
  asks: boolean,
): Promise<Executor | Missing | undefined> => {
  const { key, args, capability: named } = item.action!
  if (!(await host.serves('capabilities.checkAction')))
    return named === undefined ? undefined : { problem: 'this sandbox has no connections' }
  const asked = { key, args, asks, ...(named !== undefined && { capability: named }) }
  const { capability, tool, problem } = await host.call('capabilities.checkAction', asked)
  if (problem !== undefined) return { problem }
  if (capability === undefined) return undefined
  const [provider = '', ...type] = key.split('.')
  const text = JSON.stringify(args).slice(0, 20_000).toWellFormed()
  return {
    lane: `connection ${capability}`,
    subjects: [
      ...(tool === undefined ? [] : [{ kind: 'tool' as const, text: tool }]),
      { kind: 'action', provider: provider.slice(0, 60), type: type.join('.').slice(0, 60), text },
    ],
    carryOut: (idempotencyKey, signal) => sent(host, item, { capability, idempotencyKey }, signal),
  }
}

const sent = async (
  host: ConnectionHost,
  item: StoredApproval,
  attempt: { readonly capability: string; readonly idempotencyKey: string },
  signal: AbortSignal,
): Promise<CarriedOut> => {
  const { key, args } = item.action!
  const filled = (await withSecrets(host, item, args)) as typeof args
  const masker = await valueMasker(host)
  try {
    const asked = { ...attempt, key, args: filled }
    const {
      outcome,
      error = 'it did not say why',
      ...end
    } = await host.call('capabilities.carryOut', asked, { signal })
    const words = masker.mask(error)
    if (outcome === 'failed') refuse('dependency', words)
    if (outcome === 'unknown') throw new UnknownOutcome(words)
    const { url, result } = end
    return {
      ...(url !== undefined && { url: masker.mask(url) }),
      ...(result !== undefined && { result: [...masker.mask(result)].slice(0, 4000).join('') }),
    }
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof Refusal)) throw error
    if (UNSENT.has(error.reason)) return refuse(error.reason, masker.mask(error.message))
    throw new UnknownOutcome(masker.mask(error.message))
  }
}
