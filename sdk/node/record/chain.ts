import { hash } from 'node:crypto'

/** Links an entry to the previous one. */
export interface ChainLink {
  readonly seq: number
  /** SHA-256 of the previous entry; zeros for the first one. */
  readonly prev: string
  /** SHA-256 of this entry in canonical JSON, with `prev` and without this field. */
  readonly hash: string
}

/** `prev` of the first entry of a chain. */
export const BEGINNING = '0'.repeat(64)

/**
 * A JSON value in canonical form: keys sorted by their UTF-16 units, no whitespace (RFC 8785).
 *
 * The standard uses ECMAScript's serialisation of numbers and strings; strings must be well-formed Unicode.
 */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(one => canonical(one === undefined ? null : one)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}

/** The hash of an entry; ignores its field `hash`. */
export const hashOfEntry = ({ hash: _, ...entry }: { readonly prev: string; readonly hash?: string }): string =>
  hash('sha256', canonical(entry), 'hex')

/** Verifies a chain line by line, from its beginning or from a trusted entry. */
export class ChainCheck {
  #last: Pick<ChainLink, 'seq' | 'hash'> | undefined
  /** The number of unreadable lines before the first entry. */
  #unread = 0
  /** The first entry that was changed or is missing. */
  brokenAt: number | undefined
  entries = 0

  /** @param from The entry that the first line must follow; default: any. */
  constructor(from?: Pick<ChainLink, 'seq' | 'hash'>) {
    this.#last = from
  }

  /** The last entry read. */
  get head(): Pick<ChainLink, 'seq' | 'hash'> | undefined {
    return this.#last
  }

  /** Reads the next stored line; returns its entry if it is valid and in order. */
  read(line: string): ChainLink | undefined {
    this.entries++
    const entry = parsed(line)
    if (!this.#last && !entry) {
      this.#unread++
      return undefined
    }
    const before = this.#last ?? beforeOf(entry!)
    if (this.#unread > 0) {
      this.brokenAt ??= Math.max(1, entry!.seq - this.#unread)
      this.#unread = 0
    }
    this.#last = entry
    if (entry && entry.seq === before.seq + 1 && entry.prev === before.hash && hashOfEntry(entry) === entry.hash)
      return entry
    const seq = before.seq + 1
    this.brokenAt ??= seq
    // Compares later lines with this entry's own hash, so that one wrong entry is reported once.
    this.#last = { seq: entry && entry.seq > seq ? entry.seq : seq, hash: entry?.hash ?? '' }
    return undefined
  }

  /** Ends the check; if no line could be read, the chain is broken at its beginning. */
  end(): void {
    if (this.#unread > 0) this.brokenAt ??= 1
  }
}

const beforeOf = ({ seq, prev }: ChainLink): Pick<ChainLink, 'seq' | 'hash'> => ({
  seq: seq - 1,
  hash: seq === 1 ? BEGINNING : prev,
})

const parsed = (line: string): ChainLink | undefined => {
  try {
    const entry = JSON.parse(line) as ChainLink
    return Number.isSafeInteger(entry.seq) && typeof entry.prev === 'string' && typeof entry.hash === 'string'
      ? entry
      : undefined
  } catch {
    return undefined
  }
}
