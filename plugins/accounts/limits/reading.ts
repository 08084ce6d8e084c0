import type { LimitWindow } from '../../agent/contract.js'
import type { ProviderDefinition } from '../../providers/contract.js'
import { fieldAt } from '../provider-wire.js'

type Limits = NonNullable<ProviderDefinition['limits']>

/** The windows in what a provider says: the paths of its definition into JSON, or the names of headers. */
export const readWindows = ({ from, windows }: Limits, said: unknown, measuredAt: number): LimitWindow[] =>
  windows.flatMap(({ kind, label, percent, limit, remaining, resetsAt }) => {
    const at = (path: string) => (from === 'headers' ? fieldOf(said, path.toLowerCase()) : fieldAt(said, path))
    const used =
      percent === undefined ? usedOf(numberOf(at(limit ?? '')), numberOf(at(remaining ?? ''))) : numberOf(at(percent))
    if (used === undefined) return []
    const opens = resetsAt === undefined ? undefined : readMoment(at(resetsAt), measuredAt)
    return [
      {
        kind,
        ...(label !== undefined && { label }),
        utilization: Math.min(100, Math.max(0, used)),
        ...(opens !== undefined && { resetsAt: opens }),
        measuredAt,
      },
    ]
  })

/** How much is used in percent; undefined: there is no limit. */
const usedOf = (limit: number | undefined, remaining: number | undefined): number | undefined =>
  limit === undefined || remaining === undefined || limit <= 0 ? undefined : ((limit - remaining) / limit) * 100

const fieldOf = (said: unknown, name: string): unknown => (said as { [name: string]: unknown })[name]

const numberOf = (value: unknown): number | undefined => {
  const found = typeof value === 'string' && value.trim() !== '' ? Number(value.replace(/%$/, '')) : value
  return typeof found === 'number' && Number.isFinite(found) ? found : undefined
}

/** Numbers below this are seconds from now, below the next seconds since the epoch, others milliseconds. */
const FAR_S = 100_000_000
const FAR_MS = 100_000_000_000
/** The last moment that a date can be. */
const LAST_MS = 8_640_000_000_000_000

/** A moment as providers write it: a date, seconds from now, or seconds or milliseconds since the epoch. */
export const readMoment = (value: unknown, now: number): number | undefined => {
  const count = numberOf(value)
  const date = typeof value === 'string' ? Date.parse(value) : NaN
  const at =
    count !== undefined && count >= 0
      ? Math.round(count < FAR_S ? now + count * 1000 : count < FAR_MS ? count * 1000 : count)
      : date
  return at >= 0 && at <= LAST_MS ? at : undefined
}

/** The windows that count for a model, without those that opened again. */
export const liveWindows = (
  windows: readonly LimitWindow[],
  { limits }: Pick<ProviderDefinition, 'limits'>,
  now: number,
  model?: string,
): LimitWindow[] =>
  windows.filter(({ kind, resetsAt }) => {
    if (resetsAt !== undefined && resetsAt <= now) return false
    const models = limits?.windows.find(window => window.kind === kind)?.models
    return model === undefined || models === undefined || models.includes(model)
  })
