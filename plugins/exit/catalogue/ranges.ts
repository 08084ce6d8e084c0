import { isIPv4 } from 'node:net'
import { readFile } from 'node:fs/promises'
import { ignored } from '../../../sdk/index.js'

/** Where Debian's package tor-geoipdb keeps the file. */
export const RANGES = '/usr/share/tor/geoip'
/** It takes a few megabytes, so it is not kept for long. */
const KEPT_MS = 60_000

const numberOf = (address: string): number => address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)

/** Ranges of IPv4 addresses in order, each with its country. */
export class Ranges {
  readonly #first: readonly number[]
  readonly #last: readonly number[]
  readonly #countries: readonly string[]

  /** Reads lines with the first address as a number, the last one and two letters; others are left out. */
  constructor(text: string) {
    const rows = [...text.matchAll(/^(\d{1,10}),(\d{1,10}),([A-Z]{2})\s*$/gm)]
      .map(([, first, last, country]) => ({ first: Number(first), last: Number(last), country: country! }))
      .sort((one, other) => one.first - other.first)
    this.#first = rows.map(({ first }) => first)
    this.#last = rows.map(({ last }) => last)
    this.#countries = rows.map(({ country }) => country)
  }

  /** The country of an address in capitals; undefined: nobody knows. */
  countryOf(address: string): string | undefined {
    if (!isIPv4(address)) return undefined
    const wanted = numberOf(address)
    let [low, high] = [0, this.#first.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#first[middle]! <= wanted) low = middle + 1
      else high = middle
    }
    return low > 0 && wanted <= this.#last[low - 1]! ? this.#countries[low - 1] : undefined
  }
}

/** A file of ranges, read when it is asked for. */
export class RangeFile {
  readonly path: string
  #read: Promise<Ranges> | undefined

  constructor(path = RANGES) {
    this.path = path
  }

  /** What it holds; nothing where there is no such file. */
  ranges(): Promise<Ranges> {
    if (this.#read) return this.#read
    const read = readFile(this.path, 'latin1').then(
      text => new Ranges(text),
      () => new Ranges(''),
    )
    this.#read = read
    setTimeout(() => (this.#read = undefined), KEPT_MS).unref()
    read.catch(ignored('the caller that awaits it gets the failure'))
    return read
  }
}
