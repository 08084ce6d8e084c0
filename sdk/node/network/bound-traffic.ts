import type { Masker } from '../access/masker.js'
import { normalHost } from './host-form.js'

/** Where a request goes that holds placeholders. */
export interface BoundTarget {
  readonly host: string
  readonly port: number
  readonly method: string
  /** It goes over TLS, to a server whose certificate was verified. */
  readonly secure: boolean
}

/** The values that are put into the requests of a conversation on their way, and into those to some hosts alone. */
export interface BoundTraffic {
  /** Whether a value may go to a host: what goes there is opened. */
  opens(host: string): boolean
  /** The values in place of these placeholders in a request; those that may not go there are left out. */
  fill(placeholders: readonly string[], to: BoundTarget): Promise<ReadonlyMap<string, string>>
  /** Finds the values in what a host answers. */
  masker(host: string): Promise<Masker>
}

const LENGTH = 32
const PLACEHOLDER = new RegExp(`sbxs_[A-Za-z0-9]{${LENGTH}}`, 'g')
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** A placeholder made of at least 48 random bytes. */
export const placeholderOf = (random: Uint8Array): string =>
  `sbxs_${[...random.subarray(0, LENGTH)].map(byte => LETTERS[byte % LETTERS.length]).join('')}`

/** The placeholders in a text, each once. */
export const placeholdersIn = (text: string): string[] => [...new Set(text.match(PLACEHOLDER))]

/** The text with values in place of the placeholders that stand for one. */
export const withValues = (
  text: string,
  values: ReadonlyMap<string, string>,
  encode: (value: string) => string = value => value,
): string =>
  text.replace(PLACEHOLDER, found => {
    const value = values.get(found)
    return value === undefined ? found : encode(value)
  })

/** Whether a host is one of those that a value is bound to: a name, or with `*.` before it every name below it. */
export const isBoundTo = (hosts: readonly string[], host: string): boolean => {
  const name = normalHost(host)
  if (name === undefined) return false
  return hosts.some(entry => {
    if (!entry.startsWith('*.')) return name === normalHost(entry)
    const above = normalHost(entry.slice(2))
    return above !== undefined && name.endsWith(`.${above}`)
  })
}
