import { hash } from 'node:crypto'

/** What links an entry to the one before it. */
export interface Link {
  readonly seq: number
  /** SHA-256 of the entry before; of the very first, zeros. */
  readonly prev: string
  /** SHA-256 of this entry in canonical JSON, `prev` included, this field left out. */
  readonly hash: string
}

/** What the first entry of a chain stands on. */
export const BEGINNING = '0'.repeat(64)

/**
 * A JSON value in one form only, whoever writes it: keys in the order of their UTF-16 units, no blanks (RFC 8785).
 *
 * Numbers and texts are as ECMAScript writes them, which is what the standard asks for; a text must be well-formed Unicode.
 */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(one => canonical(one === undefined ? null : one)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}

/** The hash of an entry that has everything but its hash. */
export const hashOfEntry = ({ hash: _, ...entry }: { readonly prev: string; readonly hash?: string }): string =>
  hash('sha256', canonical(entry), 'hex')

/** Checks a chain line by line, from where it begins or from an entry that is trusted. */
export class ChainCheck {
  #last: { seq: number; hash: string } | undefined
  /** The first entry that is not what was written. */
  brokenAt: number | undefined
  entries = 0

  /** @param from The entry that the first line must follow; left out: whatever the first line says it follows. */
  constructor(from?: { readonly seq: number; readonly hash: string }) {
    this.#last = from
  }

  get head(): { readonly seq: number; readonly hash: string } | undefined {
    return this.#last
  }

  /** Reads the next line as stored; answers its entry when it is whole and in its place. */
  read(line: string): Link | undefined {
    this.entries++
    const entry = parsed(line)
    const before = this.#last ?? (entry && { seq: entry.seq - 1, hash: entry.seq === 1 ? BEGINNING : entry.prev })
    const fits = entry && before && entry.seq === before.seq + 1 && entry.prev === before.hash && hashOfEntry(entry) === entry.hash
    if (fits) {
      this.#last = entry
      return entry
    }
    const seq = (before?.seq ?? 0) + 1
    this.brokenAt ??= seq
    // What follows is held against what this line says of itself, so that one wrong entry counts once.
    this.#last = { seq: entry && entry.seq > seq ? entry.seq : seq, hash: entry?.hash ?? '' }
    return undefined
  }
}

const parsed = (line: string): Link | undefined => {
  try {
    const { seq, prev, hash } = JSON.parse(line) as Partial<Link>
    if (!Number.isSafeInteger(seq) || typeof prev !== 'string' || typeof hash !== 'string') return undefined
    return JSON.parse(line) as Link
  } catch {
    return undefined
  }
}
