import { randomBytes } from 'node:crypto'
import { hashOf } from '../../../sdk/node/access/secret.js'
import type { TranslatorCounts } from '../contract.js'
import type { CountedTokens, TableGrant } from '../link/messages.js'

/** What a run may ask. */
export interface GrantAsked {
  readonly provider: string
  readonly account?: string
  readonly run: string
  readonly conversationId?: string
  readonly shielded: boolean
}
/** A bearer without its text. */
export interface RunGrant extends GrantAsked {
  readonly id: string
  readonly hash: string
}

const NONE: TranslatorCounts = {
  answers: 0,
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheCreationTokens: 0,
}

/** The bearers of running turns, in memory: they die with their runs and with the daemon. */
export class RunGrants {
  readonly #grants = new Map<string, { readonly grant: RunGrant; counts: TranslatorCounts }>()

  get size(): number {
    return this.#grants.size
  }

  get(id: string): RunGrant | undefined {
    return this.#grants.get(id)?.grant
  }

  /** The grants as the process knows them: by the hashes of their bearers. */
  get table(): TableGrant[] {
    return [...this.#grants.values()].map(({ grant: { id, hash, provider, account } }) => ({
      id,
      hash,
      provider,
      named: account !== undefined,
    }))
  }

  open(asked: GrantAsked): string {
    const bearer = randomBytes(32).toString('base64url')
    const hash = hashOf(bearer)
    const id = randomBytes(12).toString('hex')
    this.#grants.set(id, { grant: { ...asked, id, hash }, counts: NONE })
    return bearer
  }

  /** Counts an answer for its run. */
  count(id: string, { input, output, cacheRead, cacheWrite }: CountedTokens): void {
    const held = this.#grants.get(id)
    if (!held) return
    const { counts } = held
    held.counts = {
      answers: counts.answers + 1,
      inputTokens: counts.inputTokens + input,
      outputTokens: counts.outputTokens + output,
      cacheReadTokens: counts.cacheReadTokens + cacheRead,
      cacheCreationTokens: counts.cacheCreationTokens + cacheWrite,
    }
  }

  /** Ends a bearer; gives what was asked with it. */
  close(bearer: string): TranslatorCounts | undefined {
    const hash = hashOf(bearer)
    const held = [...this.#grants.values()].find(({ grant }) => grant.hash === hash)
    if (held) this.#grants.delete(held.grant.id)
    return held?.counts
  }
}
