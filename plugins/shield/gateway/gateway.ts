import { randomBytes } from 'node:crypto'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import type { Host } from '../../../sdk/index.js'
import type { ShieldedRequest, OutboundVerdict, ShieldPolicy } from '../contract.js'
import type { Searching } from '../detect/find-personal-data.js'
import type { ShieldFile } from '../policy/shield-file.js'
import type { FoundValue, ShieldCounts } from '../stats/shield-counts.js'
import { keyedHash } from '../tokens/sealed.js'
import { shapeOf } from '../tokens/shape.js'
import { TokenTable } from '../tokens/token-table.js'
import type { TokenStore } from '../tokens/token-store.js'
import { MaskCache, type KeptText } from './mask-cache.js'
import { isMasked, maskedText, type MaskedText } from './masked-text.js'
import type { StoredSecrets } from './stored-secrets.js'
import { trustUnder } from './trust.js'

/** The dependencies of the gateway. */
export interface GatewayDeps {
  readonly file: ShieldFile
  readonly tokens: TokenStore
  readonly secrets: StoredSecrets
  readonly counts: ShieldCounts
  readonly log: Host['log']
  /** Called with each refused request. */
  readonly refused: (request: ShieldedRequest, kinds: readonly string[]) => void
}

const LONGEST_STEP_MS = 10

/** What requests wait for before they leave. */
export class Gateway {
  readonly #deps: GatewayDeps
  readonly #cache = new MaskCache()

  constructor(deps: GatewayDeps) {
    this.#deps = deps
  }

  /** Judges a request and masks its texts. */
  async outbound(request: ShieldedRequest): Promise<OutboundVerdict> {
    const began = performance.now()
    const { counts, file, log } = this.#deps
    const policy = await file.outline()
    if (!policy.enabled) return { verdict: 'sent' }
    const { trust } = trustUnder(policy, request)
    if (trust === 'trusted') {
      counts.request(request.provider, 'trusted')
      return { verdict: 'sent' }
    }
    const closed = closedTo(policy, trust, request)
    if (closed !== undefined) return this.#refuse(request, closed, [])
    try {
      return await this.#masked(request, began)
    } catch (error) {
      // The words of the failure may hold what was being masked.
      const kind = error instanceof Error ? error.constructor.name : typeof error
      log.error('masking a request failed', { provider: request.provider, failure: kind, then: policy.onFailure })
      if (policy.onFailure === 'send') {
        counts.request(request.provider, 'masked')
        return { verdict: 'sent' }
      }
      return this.#refuse(request, 'the privacy shield could not read this request, so it was not sent', [])
    }
  }

  /** Forgets what it keeps of a conversation. */
  drop(conversationId: string): void {
    this.#cache.drop(conversationId)
  }

  async #masked(request: ShieldedRequest, began: number): Promise<OutboundVerdict> {
    const { conversationId, provider, texts } = request
    const { counts, file, secrets, tokens } = this.#deps
    const [compiled, { stored, revision }] = [await file.current(), await secrets.now()]
    const searching = { compiled, stored }
    const found: FoundValue[] = []
    const work = async (table: TokenTable, hash: (text: string) => string): Promise<OutboundVerdict> => {
      // Taken while nobody else works with these tokens: a failure drops texts whose tokens were not stored.
      const kept =
        conversationId === undefined
          ? new Map<string, KeptText>()
          : this.#cache.of(conversationId, `${compiled.revision} ${revision}`)
      const done = await this.#texts(texts, searching, table, hash, kept, found)
      const refused = [...new Set(done.flatMap(each => each.refused))]
      if (refused.length > 0) throw new RefusedKinds(refused)
      const perKind = countsOf(done, table)
      return {
        verdict: 'masked',
        texts: done.map(({ masked }) => masked),
        tokens: table.values,
        counts: perKind,
      }
    }
    try {
      const verdict = await (conversationId === undefined
        ? work(new TokenTable(), once())
        : tokens.with(conversationId, work))
      counts.request(provider, 'masked', { found, ms: performance.now() - began })
      return verdict
    } catch (error) {
      if (conversationId !== undefined) this.drop(conversationId)
      if (!(error instanceof RefusedKinds)) throw error
      const { kinds } = error
      return this.#refuse(request, `the privacy shield refuses requests with ${kinds.join(', ')}`, kinds)
    }
  }

  async #texts(
    texts: readonly string[],
    searching: Omit<Searching, 'known'>,
    table: TokenTable,
    hash: (text: string) => string,
    kept: Pick<Map<string, KeptText>, 'get' | 'set'>,
    found: FoundValue[],
  ): Promise<KeptText[]> {
    const done: KeptText[] = []
    let since = performance.now()
    for (const text of texts) {
      const there = kept.get(text)
      if (there) {
        done.push(there)
        continue
      }
      const masked = maskedText(text, searching, table)
      const refused = masked.places.flatMap(({ action, kind }) => (action === 'block' ? [kind] : []))
      const known: KeptText = { masked: masked.masked, uses: masked.uses, refused }
      kept.set(text, known)
      done.push(known)
      if (masked.places.length > 0 && table.countSent(hash(text), masked.uses))
        found.push(...foundIn(text, masked, hash))
      if (performance.now() - since > LONGEST_STEP_MS) {
        await turnOfLoop()
        since = performance.now()
      }
    }
    return done
  }

  #refuse(request: ShieldedRequest, message: string, kinds: readonly string[]): OutboundVerdict {
    this.#deps.counts.request(request.provider, 'refused')
    this.#deps.refused(request, kinds)
    return { verdict: 'refused', message }
  }
}

/** Thrown where a policy refuses what was found; nothing of the request is stored. */
class RefusedKinds extends Error {
  readonly kinds: readonly string[]
  constructor(kinds: readonly string[]) {
    super('the policy refuses what was found')
    this.kinds = kinds
  }
}

/** The hashes of a question without a conversation, which are compared with nothing. */
const once = (): ((text: string) => string) => {
  const key = randomBytes(32)
  return text => keyedHash(key, text)
}

/** Why nothing at all goes to a provider. */
const closedTo = (
  policy: ShieldPolicy,
  trust: 'shielded' | 'blocked',
  { provider, covered, binary }: ShieldedRequest,
): string | undefined => {
  if (trust === 'blocked') return `the privacy shield blocks the provider ${provider}`
  if (!covered)
    return (
      `what the program ${provider} sends does not pass the privacy shield, so its turns are refused `
      + 'while it counts as shielded: an owner may trust it in the policy'
    )
  return binary && policy.binary === 'block'
    ? 'the privacy shield refuses requests with pictures, because it cannot read them'
    : undefined
}

/** How many values of each kind are masked in a request. */
const countsOf = (done: readonly KeptText[], table: TokenTable): { [kind: string]: number } => {
  const tokens = new Set(done.flatMap(({ uses }) => Object.keys(uses)))
  const counts: { [kind: string]: number } = {}
  for (const token of tokens) {
    if (table.isLiteral(token)) continue
    const kind = token.slice(2, token.lastIndexOf('_'))
    counts[kind] = (counts[kind] ?? 0) + 1
  }
  return counts
}

const foundIn = (text: string, { places }: MaskedText, hash: (text: string) => string): FoundValue[] =>
  places.flatMap((place): FoundValue[] => {
    const { action, detector, kind, source, normal, start } = place
    if (action === 'literal' || action === 'block') return []
    const at = detector === 'email' ? text.indexOf('@', start) : -1
    const domain = at < 0 ? undefined : text.slice(at, place.end).toLowerCase()
    return [
      {
        ...{ detector, kind, masked: isMasked(place), value: hash(normal) },
        ...(source !== undefined && { source }),
        ...(domain !== undefined && { domain: hash(domain), hint: shapeOf(domain.slice(1)) }),
      },
    ]
  })
