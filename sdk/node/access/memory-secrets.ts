import { holds, newSecret, readSecret, type Prefix } from './secret.js'

/** Credentials in memory alone, each with what it stands for: a process that ended has none. */
export class MemorySecrets<T> {
  readonly #prefix: Prefix
  readonly #active = new Map<string, { readonly hash: string; readonly value: T }>()

  constructor(prefix: Prefix) {
    this.#prefix = prefix
  }

  /** Makes a credential; only this result contains its text. */
  mint(value: (id: string) => T): { id: string; token: string } {
    const { id, text, hash } = newSecret(this.#prefix)
    this.#active.set(id, { hash, value: value(id) })
    return { id, token: text }
  }

  /** What a credential stands for, until it ends. */
  check(text: string): T | undefined {
    const presented = readSecret(this.#prefix, text)
    const found = presented && this.#active.get(presented.id)
    const proven = presented !== undefined && holds(found ? [found.hash] : [], presented.hash)
    return proven ? found?.value : undefined
  }

  /** Ends a credential; false if there is none. */
  end(id: string): boolean {
    return this.#active.delete(id)
  }
}
