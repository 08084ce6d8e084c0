import { hash } from 'node:crypto'

/** What links an entry to the one before it. */
export interface ChainLink {
  readonly seq: number
  /** SHA-256 of the entry before; of the very first, zeros. */
  readonly prev: string
  /** SHA-256 of this entry in canonical JSON, `prev` included, this field left out. */
  readonly hash: string
}

/** What the first entry of a chain stands on. */
export const BEGINNING = '0'.repeat(64)

/**
 * A JSON value in its canonical form: keys in the order of their UTF-16 units, no blanks (RFC 8785).
 *
 * Numbers and texts are as ECMAScript writes them, which is what the standard asks for; a text must be well-formed
 * Unicode.
 */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(one => canonical(one === undefined ? null : one)).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value)
    .filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}

/** The hash of an entry that has everything but its hash. */
export const hashOfEntry = ({ hash: _, ...entry }: { readonly prev: string; readonly hash?: string }): string =>
  hash('sha256', canonical(entry), 'hex')

/** Checks a chain line by line, from where it begins or from an entry that is trusted. */
export class ChainCheck {
  #last: Pick<ChainLink, 'seq' | 'hash'> | undefined
  /** Lines before the first that says where in the chain it stands. */
  #unread = 0
  /** The first entry that is not what was written. */
  brokenAt: number | undefined
  entries = 0

  /** @param from The entry that the first line must follow; left out: whatever the first line says it follows. */
  constructor(from?: Pick<ChainLink, 'seq' | 'hash'>) {
    this.#last = from
  }

  /** Where the chain has come to. */
  get head(): Pick<ChainLink, 'seq' | 'hash'> | undefined {
    return this.#last
  }

  /** Reads the next line as stored; answers its entry when it is whole and in its place. */
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
    // What follows is held against what this line says of itself, so that one wrong entry counts once.
    this.#last = { seq: entry && entry.seq > seq ? entry.seq : seq, hash: entry?.hash ?? '' }
    return undefined
  }

  /** Says that nothing follows: lines of which none could be read are the beginning, and broken. */
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
