import type { Caller } from '../../sdk/index.js'
import { asData, namesSecret, REDACTED } from '../../sdk/node/access/redact.js'
import type { ActivityEvent, ActivityInput } from './contract.js'

/** An entry before it has its place in the chain. */
export type Facts = Omit<ActivityEvent, 'id' | 'seq' | 'at' | 'prev' | 'hash'>

const TYPE = /^[a-z][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)+$/
const DIRECTIONS: readonly string[] = ['in', 'out', 'system']
const MOST_TYPE = 80
const MOST_NAME = 320
const MOST_LINE = 2000
const MOST_TEXT = 16_384
const MOST_EXTRA = 16_384
const MOST_DEPTH = 6
const MOST_ITEMS = 100

/** A submitted entry as it is stored: bounded, without secrets, each text as data of its field. */
export const factsOf = (told: ActivityInput, caller: Caller): Facts => {
  const { type, direction, audience, actor, content, outcome, error, extra, origin, automationIds } = told
  if (typeof type !== 'string' || type.length > MOST_TYPE || !TYPE.test(type))
    throw new Error(`expected a type such as session.opened, found ${String(type).slice(0, 100)}`)
  if (!DIRECTIONS.includes(direction))
    throw new Error(`expected direction in, out or system, found ${String(direction).slice(0, 100)}`)
  const named = {
    provider: told.provider,
    account: told.account,
    channelId: told.channelId,
    author: told.author,
    method: told.method,
    sessionId: told.sessionId,
    turnId: told.turnId,
    conversationId: told.conversationId,
    title: told.title,
  }
  return {
    actor: asData(actor ?? caller.actor, MOST_NAME),
    direction,
    type,
    ...namesIn(named),
    ...(content !== undefined && { content: asData(content, MOST_TEXT) }),
    ...(told.endpoint !== undefined && { endpoint: endpointOf(told.endpoint) }),
    ...(origin && { origin: namesIn(origin) as typeof origin }),
    ...(automationIds && { automationIds: automationIds.slice(0, MOST_ITEMS).map(id => asData(id, MOST_NAME)) }),
    ...((outcome === 'ok' || outcome === 'error') && { outcome }),
    ...(error !== undefined && { error: asData(error, MOST_LINE) }),
    ...(extra && { extra: extraOf(extra) }),
    audience: audience === 'maintainer' ? 'maintainer' : 'viewer',
  }
}

const namesIn = <T extends object>(given: T): { [key in keyof T]?: string } =>
  Object.fromEntries(
    Object.entries(given).flatMap(([key, text]) =>
      text === undefined ? [] : [[key, asData(String(text), MOST_NAME)]],
    ),
  ) as { [key in keyof T]?: string }

const endpointOf = (address: string): string => asData(address.replace(/[?#].*$/s, ''), MOST_LINE)

const extraOf = (extra: { readonly [key: string]: unknown }): { [key: string]: unknown } => {
  const kept = bounded(extra, 0) as { [key: string]: unknown }
  const size = JSON.stringify(kept).length
  return size > MOST_EXTRA ? { cut: `${size} characters were too many to keep` } : kept
}

/** A JSON value cut to the stored depth and length; values under names of secrets are redacted. */
const bounded = (value: unknown, depth: number): unknown => {
  if (typeof value === 'string') return asData(value, MOST_LINE)
  if (typeof value === 'boolean' || value === null) return value
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value)
  if (typeof value !== 'object') return undefined
  if (depth >= MOST_DEPTH) return '…'
  if (Array.isArray(value)) return value.slice(0, MOST_ITEMS).map(one => bounded(one, depth + 1) ?? null)
  const fields = Object.entries(value)
    .slice(0, MOST_ITEMS)
    .flatMap(([key, inner]) => {
      const kept = namesSecret(key) ? REDACTED : bounded(inner, depth + 1)
      return kept === undefined || key === '__proto__' ? [] : [[asData(key, 100), kept] as const]
    })
  return Object.fromEntries(fields)
}
