import { holds, readSecret, type Prefix } from './secret.js'

/** How many proven credentials are remembered, of 70 characters each. */
const MOST = 512

/** Checks credentials of one kind against the stored hashes of their secrets. */
export class SecretCheck {
  readonly #prefix: Prefix
  readonly #stored: (id: string) => readonly string[]
  /**
   * The id and hash of credentials that were valid before, by their text: looking one up is several times faster than
   * hashing it. The hash must still be stored, so a credential that has ended is refused at once.
   */
  readonly #proven = new Map<string, { readonly id: string; readonly hash: string }>()

  /** @param stored The valid hashes of an id, now. */
  constructor(prefix: Prefix, stored: (id: string) => readonly string[]) {
    this.#prefix = prefix
    this.#stored = stored
  }

  /** The id of a credential whose secret is valid. */
  check(text: string): string | undefined {
    const proven = this.#proven.get(text)
    if (proven && this.#stored(proven.id).includes(proven.hash)) return proven.id
    const presented = readSecret(this.#prefix, text)
    if (!presented || !holds(this.#stored(presented.id), presented.hash)) return undefined
    this.#remember(text, presented)
    return presented.id
  }

  #remember(text: string, presented: { readonly id: string; readonly hash: string }): void {
    const [oldest] = this.#proven.keys()
    if (this.#proven.size >= MOST && oldest !== undefined) this.#proven.delete(oldest)
    this.#proven.set(text, presented)
  }
}
