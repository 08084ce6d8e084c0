import type { Journals } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { keyedHash, openedValue, sealedValue, type Sealed } from './sealed.js'
import { TokenTable, type TokenEvent } from './token-table.js'
import type { VaultKey } from './vault-key.js'

type Journal = Pick<Journals, 'append' | 'read' | 'rewrite' | 'remove' | 'stat'>

const MOST_OPEN = 200
const nameOf = (conversationId: string): string => `tokens/${conversationId}`

/** The tokens of all conversations: encrypted logs, of which the latest used are in memory. */
export class TokenStore {
  readonly #journal: Journal
  readonly #key: VaultKey
  readonly #lock = new KeyedMutex()
  readonly #open = new Map<string, TokenTable>()

  constructor(journal: Journal, key: VaultKey) {
    this.#journal = journal
    this.#key = key
  }

  /** Works with the tokens of a conversation, alone; what is new is durable when this returns. */
  with<T>(conversationId: string, work: (table: TokenTable, hash: (text: string) => string) => Promise<T>): Promise<T> {
    return this.#lock.with(conversationId, async () => {
      const key = await this.#key.get()
      const table = await this.#table(conversationId)
      try {
        const done = await work(table, text => keyedHash(key, text))
        const fresh = table.takeFresh()
        if (fresh.length > 0) {
          await this.#journal.append(nameOf(conversationId), this.#sealed(key, conversationId, fresh))
          failpoint('shield.tokens.kept')
        }
        return done
      } catch (error) {
        // What was not stored must not be used.
        this.#open.delete(conversationId)
        throw error
      }
    })
  }

  /** The tokens of a conversation as they are now; an empty table where it has none. */
  async read(conversationId: string): Promise<TokenTable> {
    return this.#lock.with(conversationId, () => this.#table(conversationId))
  }

  /** Destroys the values; later tokens get higher numbers. Returns how many there were. */
  forget(conversationId: string): Promise<number> {
    return this.#lock.with(conversationId, async () => {
      const entries = (await this.#journal.stat(nameOf(conversationId)))?.entries ?? 0
      if (entries === 0) return 0
      const key = await this.#key.get()
      const table = await this.#table(conversationId).catch(() => undefined)
      const above: TokenEvent = { is: 'above', numbers: table?.numbers ?? {}, least: table ? 0 : entries }
      await this.#journal.rewrite(nameOf(conversationId), this.#sealed(key, conversationId, [above]))
      failpoint('shield.tokens.forgotten')
      this.#open.delete(conversationId)
      return table?.size ?? entries
    })
  }

  /** Removes everything about a conversation. */
  purge(conversationId: string): Promise<void> {
    return this.#lock.with(conversationId, async () => {
      this.#open.delete(conversationId)
      await this.#journal.remove(nameOf(conversationId))
    })
  }

  /** Gives a conversation without tokens those of another one. */
  async copy(from: string, to: string): Promise<void> {
    if (!(await this.#journal.stat(nameOf(from)))) return
    const key = await this.#key.get()
    const events = await this.#lock.with(from, () => this.#events(key, from))
    await this.#lock.with(to, async () => {
      if (await this.#journal.stat(nameOf(to))) return
      await this.#journal.rewrite(nameOf(to), this.#sealed(key, to, events))
    })
  }

  async #table(conversationId: string): Promise<TokenTable> {
    const there = this.#open.get(conversationId)
    this.#open.delete(conversationId)
    const table = there ?? (await this.#load(conversationId))
    this.#open.set(conversationId, table)
    if (this.#open.size > MOST_OPEN) this.#open.delete(this.#open.keys().next().value!)
    return table
  }

  async #load(conversationId: string): Promise<TokenTable> {
    if (!(await this.#journal.stat(nameOf(conversationId)))) return new TokenTable()
    return new TokenTable(await this.#events(await this.#key.get(), conversationId))
  }

  async #events(key: Buffer, conversationId: string): Promise<TokenEvent[]> {
    const lines = await this.#journal.read<Sealed>(nameOf(conversationId))
    return lines.map(line => openedValue<TokenEvent>(key, nameOf(conversationId), line))
  }

  #sealed(key: Buffer, conversationId: string, events: readonly TokenEvent[]): Sealed[] {
    return events.map(event => sealedValue(key, nameOf(conversationId), event))
  }
}
