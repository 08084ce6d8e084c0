import { SecretCheck } from './secret-check.js'
import { newSecret, type Prefix } from './secret.js'

/** Credentials in memory alone, each with what it stands for: a process that ended has none. */
export class MemorySecrets<T> {
  readonly #prefix: Prefix
  readonly #secrets: SecretCheck
  readonly #active = new Map<string, { readonly hash: string; readonly value: T }>()

  constructor(prefix: Prefix) {
    this.#prefix = prefix
    this.#secrets = new SecretCheck(prefix, id => {
      const found = this.#active.get(id)
      return found ? [found.hash] : []
    })
  }

  /** Makes a credential; only this result contains its text. */
  mint(value: (id: string) => T): { id: string; token: string } {
    const { id, text, hash } = newSecret(this.#prefix)
    this.#active.set(id, { hash, value: value(id) })
    return { id, token: text }
  }

  /** What a credential stands for, until it ends. */
  check(text: string): T | undefined {
    const id = this.#secrets.check(text)
    return id === undefined ? undefined : this.#active.get(id)?.value
  }

  /** Changes what a credential stands for, unless it has ended. */
  change(id: string, to: (value: T) => T): void {
    const found = this.#active.get(id)
    if (found) this.#active.set(id, { ...found, value: to(found.value) })
  }

  /** Ends a credential; false if there is none. */
  end(id: string): boolean {
    return this.#active.delete(id)
  }
}
