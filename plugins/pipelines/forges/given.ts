import { asData } from '../../../sdk/node/access/redact.js'
import type { PipelineStatus } from '../contract.js'

/** A JSON object of a forge: nothing of it is believed before it was read with the functions here. */
export interface GivenJson {
  readonly [field: string]: unknown
}

const MOST_TEXT = 500
const MOST_URL = 2_000
const MOST_COUNT = 0xffffffff
const MOST_NEEDS = 100
/** More than any page that is asked for has. */
const MOST_ROWS = 200

/** An object, an empty one in place of anything else. */
export const givenObject = (value: unknown): GivenJson =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as GivenJson) : {}

/** The first objects of a list, as many as a page has. */
export const givenList = (value: unknown): GivenJson[] =>
  Array.isArray(value) ? value.slice(0, MOST_ROWS).map(givenObject) : []

/** One line of text; empty where there is none. */
export const givenText = (value: unknown, most = MOST_TEXT): string =>
  typeof value === 'string' ? asData(value, most) : typeof value === 'number' ? String(value) : ''

/** An address of the web; empty where there is none. */
export const givenUrl = (value: unknown): string => {
  const url = typeof value === 'string' && value.length <= MOST_URL ? URL.parse(value) : null
  return url && (url.protocol === 'https:' || url.protocol === 'http:') ? url.href : ''
}

/** A whole number from 0; undefined: it is none. */
export const givenCount = (value: unknown, most = MOST_COUNT): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= most ? value : undefined

/** A time as text; undefined: there is none. Forges write the year 1 or the epoch for none. */
export const givenTime = (value: unknown): number | undefined => {
  const at = typeof value === 'string' ? Date.parse(value) : NaN
  return at > 0 ? at : undefined
}

/** The names of a list of texts; undefined: it is no list. */
export const givenNames = (value: unknown): string[] | undefined =>
  Array.isArray(value) ? value.slice(0, MOST_NEEDS).map(each => givenText(each)) : undefined

/** Only the fields with a value. */
export const givenFields = <T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== '')) as never

/** The whole seconds between two times. */
export const secondsBetween = (from: number | undefined, to: number | undefined): number | undefined =>
  from === undefined || to === undefined ? undefined : Math.max(0, Math.round((to - from) / 1000))

const CONCLUSIONS: ReadonlyMap<string, PipelineStatus> = new Map([
  ['success', 'success'],
  ['neutral', 'success'],
  ['failure', 'failed'],
  ['failed', 'failed'],
  ['timed_out', 'failed'],
  ['startup_failure', 'failed'],
  ['cancelled', 'canceled'],
  ['canceled', 'canceled'],
  ['stale', 'canceled'],
  ['skipped', 'skipped'],
])

/** What a forge's word for an end means; every other word means that it has not ended. */
export const statusOfWord = (word: string): PipelineStatus => CONCLUSIONS.get(word) ?? 'running'
