import type { TokenRow } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import { Kept, type KeptFiles } from '../../sdk/node/files/kept.js'
import { LastUse } from './last-use.js'
import { SecretCheck } from '../../sdk/node/access/secret-check.js'
import { newSecret } from '../../sdk/node/access/secret.js'

const DAY = 24 * 60 * 60_000
const LISTED = 30 * DAY
const ACTIVE = 100

/** One stored control token, without its secret. */
export interface TokenRecord extends TokenRow {
  readonly hash: string
}

/** The fields of a new token. */
export interface Minted extends Pick<TokenRow, 'label' | 'scope' | 'expiresAt' | 'createdBy'> {}

interface Kind {
  readonly tokens: { readonly [id: string]: TokenRecord }
}

/** All control tokens. */
export class Tokens {
  readonly #kept: Kept<Kind>
  readonly #now: () => number
  readonly #secrets = new SecretCheck('sbc', id => {
    const found = this.#kept.value.tokens[id]
    return found ? [found.hash] : []
  })
  readonly #uses = new LastUse(() => this.#kept.change(kind => this.#current(kind)))

  private constructor(kept: Kept<Kind>, now: () => number) {
    this.#kept = kept
    this.#now = now
  }

  static async open(files: KeptFiles, now: () => number): Promise<Tokens> {
    return new Tokens(await Kept.open<Kind>(files, 'tokens', { tokens: {} }), now)
  }

  /** The token of a secret, if it is active. */
  check(text: string, address: string): TokenRecord | undefined {
    const now = this.#now()
    const id = this.#secrets.check(text)
    const found = id === undefined ? undefined : this.#kept.value.tokens[id]
    if (!found || !isActive(found, now)) return undefined
    this.#uses.mark(found.id, { at: now, address })
    return found
  }

  /** Mints a token; only this result contains its secret. */
  async mint({ label, scope, expiresAt, createdBy }: Minted): Promise<{ id: string; token: string }> {
    const { id, text, hash } = newSecret('sbc')
    await this.#kept.change(kind => {
      const now = this.#now()
      const current = this.#current(kind)
      if (expiresAt !== undefined && expiresAt <= now) {
        const errors = [{ path: 'expiresAt', expected: 'a time to come', value: String(expiresAt) }]
        refuse('invalid', `expiresAt: expected a time to come, found ${expiresAt}`, { errors })
      }
      if (Object.values(current.tokens).filter(token => isActive(token, now)).length >= ACTIVE) {
        refuse('too-many', `expected at most ${ACTIVE} active control tokens; revoke one first`)
      }
      const end = expiresAt !== undefined && { expiresAt }
      const record = { id, label, scope, createdAt: now, createdBy, ...end, hash }
      return { tokens: { ...current.tokens, [id]: record } }
    })
    return { id, token: text }
  }

  /** All tokens that were not revoked, newest first; expired ones for 30 days. */
  list(): TokenRow[] {
    return Object.values(this.#current(this.#kept.value).tokens)
      .reverse()
      .map(({ hash, ...row }) => row)
  }

  /** Revokes a token; resolves once that is durable. */
  async revoke(id: string): Promise<void> {
    await this.#kept.change(kind => {
      const current = this.#current(kind)
      if (!Object.hasOwn(current.tokens, id)) {
        refuse('not-found', `expected the id of a control token, found none called ${JSON.stringify(id.slice(0, 40))}`)
      }
      const { [id]: gone, ...tokens } = current.tokens
      return { tokens }
    })
    this.#uses.delete(id)
  }

  /** Id and expiry of each token that expires after a moment. */
  endsAfter(moment: number): { id: string; expiresAt: number }[] {
    const { tokens } = this.#kept.value
    return Object.values(tokens).flatMap(({ id, expiresAt }) =>
      expiresAt !== undefined && expiresAt > moment ? [{ id, expiresAt }] : [],
    )
  }

  /** Saves pending last uses. */
  flush(): Promise<void> {
    return this.#uses.flush()
  }

  /** The document with current last uses, without tokens that expired more than 30 days ago. */
  #current({ tokens }: Kind): Kind {
    const now = this.#now()
    const listed = Object.values(tokens).filter(({ expiresAt }) => expiresAt === undefined || expiresAt + LISTED > now)
    const used = listed.map(record => {
      const use = this.#uses.get(record.id)
      return [record.id, use ? { ...record, lastUsedAt: use.at, lastUsedFrom: use.address } : record] as const
    })
    return { tokens: Object.fromEntries(used) }
  }
}

const isActive = ({ expiresAt }: TokenRow, now: number): boolean => expiresAt === undefined || expiresAt > now
