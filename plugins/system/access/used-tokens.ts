import type { Files } from '../../../sdk/index.js'
import { Kept } from '../../../sdk/node/files/kept.js'
import { hashOf } from '../../../sdk/node/access/secret.js'

interface Used {
  readonly tokens: { readonly [hash: string]: number }
}

/** Used identity tokens without a nonce, kept until they expire, also across restarts of the daemon. */
export class UsedTokens {
  readonly #files: Files
  readonly #now: () => number
  #opened: Promise<Kept<Used>> | undefined

  constructor(files: Files, now: () => number) {
    this.#files = files
    this.#now = now
  }

  async has(token: string): Promise<boolean> {
    return Object.hasOwn((await this.#kept()).value.tokens, hashOf(token))
  }

  /** Remembers a token until it expires; false: it was remembered already. */
  async add(token: string, until: number): Promise<boolean> {
    const hash = hashOf(token)
    let fresh = false
    await (
      await this.#kept()
    ).change(used => {
      fresh = !Object.hasOwn(used.tokens, hash)
      return fresh ? { tokens: { ...this.#good(used), [hash]: until } } : used
    })
    return fresh
  }

  async remove(token: string): Promise<void> {
    await (
      await this.#kept()
    ).change(used => {
      const { [hashOf(token)]: gone, ...tokens } = this.#good(used)
      return { tokens }
    })
  }

  #good({ tokens }: Used): Used['tokens'] {
    return Object.fromEntries(Object.entries(tokens).filter(([, until]) => until > this.#now()))
  }

  #kept(): Promise<Kept<Used>> {
    this.#opened ??= Kept.open<Used>(this.#files, 'used-tokens', { tokens: {} })
    return this.#opened
  }
}
