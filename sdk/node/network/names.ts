import { lookup, type LookupAddress } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import { KeyedMutex } from '../concurrency/keyed-mutex.js'

type Look = (host: string) => Promise<readonly LookupAddress[]>

const KEPT_MS = 5_000
const MOST_KEPT = 500
/** The system looks names up on the threads that also read files, of which there are four. */
const AT_ONCE = 2

const ofSystem: Look = host =>
  new Promise((found, failed) => lookup(host, { all: true }, (error, all) => (error ? failed(error) : found(all))))

const waiting: (() => void)[] = []
let free = AT_ONCE

/** Runs work once fewer than two others do. */
const inSlot = async <T>(work: () => Promise<T>): Promise<T> => {
  if (free > 0) free--
  else await new Promise<void>(resolve => waiting.push(resolve))
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
}

interface Kept {
  readonly at: number
  readonly all: Promise<readonly LookupAddress[]>
}

/**
 * Looks names up for one network, one at a time: names that nobody answers for hold up neither other networks nor the
 * daemon. What was found is kept for five seconds.
 */
export class Names {
  readonly #look: Look
  readonly #turn = new KeyedMutex()
  readonly #kept = new Map<string, Kept>()

  constructor(look = ofSystem) {
    this.#look = look
  }

  /**
   * The addresses a host stands for; an address stands for itself.
   *
   * @throws The system's error where there is no such name.
   */
  find(host: string, signal?: AbortSignal): Promise<readonly LookupAddress[]> {
    const family = isIP(host)
    if (family) return Promise.resolve([{ address: host, family }])
    const known = this.#kept.get(host)
    if (known && performance.now() - known.at < KEPT_MS) return known.all
    if (this.#kept.size >= MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value!)
    this.#kept.delete(host)
    const all = this.#turn.with('names', () => inSlot(() => this.#look(host)), signal)
    const kept = { at: performance.now(), all }
    this.#kept.set(host, kept)
    all.catch(() => void (this.#kept.get(host) === kept && this.#kept.delete(host)))
    return all
  }
}

/** A lookup that finds addresses that were checked: looked up again, a name might stand for others. */
export const lookupOf =
  (addresses: readonly LookupAddress[]): LookupFunction =>
  (_, { all }, found) =>
    all ? found(null, [...addresses]) : found(null, addresses[0]!.address, addresses[0]!.family)

const SOON_MS = 3_000
const LATER_MS = 500
const SLOW_FOR_MS = 60_000
let slowUntil = -Infinity

/**
 * What a lookup finds within three seconds, or nothing: behind a proxy, names of the internet may be known to it alone,
 * and where the lookup of one took too long the next ones get half a second.
 */
export const soonFound = async (found: Promise<readonly LookupAddress[]>): Promise<readonly LookupAddress[]> => {
  const { promise: late, resolve } = Promise.withResolvers<readonly LookupAddress[]>()
  const timer = setTimeout(
    () => {
      slowUntil = performance.now() + SLOW_FOR_MS
      resolve([])
    },
    performance.now() < slowUntil ? LATER_MS : SOON_MS,
  )
  try {
    return await Promise.race([found.catch(() => []), late])
  } finally {
    clearTimeout(timer)
  }
}
