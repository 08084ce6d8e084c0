import type { Masker } from '../../../sdk/node/access/masker.js'
import { REDACTED, redacted } from '../../../sdk/node/access/redact.js'
import { CLOSED_KEYS } from '../../../sdk/node/files/json.js'
import { isObject } from './envelope.js'

/** Names of fields whose values are credentials. */
const SECRET_FIELD = new RegExp(
  String.raw`pass(?:word|wd|phrase|code)|^pwd$|secret|token|cookie|auth(?:orization)?$|credential|apikey`
    + String.raw`|(?:^|[^a-z])key$`,
  'i',
)
/** A name such as `apiKey`. */
const KEY_FIELD = /[a-z]Key$/
const MOST_DEPTH = 8
const MOST_ENTRIES = 100
const MOST_TEXT = 4_000
const SHORTEST_PERSONAL = 4

export const namesCredential = (field: string): boolean => SECRET_FIELD.test(field) || KEY_FIELD.test(field)

/** Removes credentials, and who used the program, from what a stranger reports. */
export class Scrubber {
  readonly #masker: Masker
  readonly #personal: readonly string[]

  /** @param personal Texts that name the user. */
  constructor(masker: Masker, personal: readonly string[]) {
    this.#masker = masker
    this.#personal = personal.filter(text => text.length >= SHORTEST_PERSONAL)
  }

  /** A text of at most `most` characters without credentials. */
  text(text: string, most = MOST_TEXT): string {
    // What is cut first could begin in the middle of a credential, so it is cut again.
    const clean = this.#masker.mask(redacted(text.slice(0, 4 * most).toWellFormed()))
    const without = this.#personal.reduce((done, word) => done.replaceAll(word, REDACTED), clean)
    return without.length > most ? `${without.slice(0, most - 1).toWellFormed()}…` : without
  }

  /** The text of a field; a credential is replaced. */
  field(name: string, text: string, most?: number): string {
    return namesCredential(name) ? REDACTED : this.text(text, most)
  }

  /** Any value of a field, without credentials at any depth. */
  value(name: string, value: unknown, depth = 0): unknown {
    if (namesCredential(name) && value !== null) return REDACTED
    if (typeof value === 'string') return this.text(value)
    if (typeof value !== 'object' || value === null) return value
    if (depth >= MOST_DEPTH) return '…'
    if (Array.isArray(value)) return value.slice(0, MOST_ENTRIES).map(each => this.value('', each, depth + 1))
    return this.object(value, depth)
  }

  /** An object without credentials. */
  object(given: object, depth = 0): { [field: string]: unknown } {
    const entries = Object.entries(given).filter(([field]) => !CLOSED_KEYS.has(field))
    return Object.fromEntries(
      entries
        .slice(0, MOST_ENTRIES)
        .map(([field, value]) => [this.text(field, 200), this.value(field, value, depth + 1)]),
    )
  }
}

/** An object as it is reported, or an empty one. */
export const reportedFields = (value: unknown): { readonly [field: string]: unknown } => (isObject(value) ? value : {})
