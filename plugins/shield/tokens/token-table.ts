import { PhraseMatcher } from '../../../sdk/node/access/phrase-matcher.js'
import type { DetectorId, ShieldTokenRow, TokenValue } from '../contract.js'
import type { Candidate } from '../detect/candidate.js'
import { LITERAL } from '../policy/compiled-shield.js'
import { shapeOf } from './shape.js'

/** A token as it was given out. */
export interface GivenToken {
  readonly is: 'token'
  readonly kind: string
  readonly number: number
  readonly detector: DetectorId
  readonly source?: string
  readonly value: string
  readonly normal: string
  readonly at: number
}

/** What happened to the tokens of a conversation; the order is that of its log. */
export type TokenEvent =
  | GivenToken
  /** A text was sent for the first time; the text is named by a keyed hash. */
  | { readonly is: 'sent'; readonly text: string; readonly uses: { readonly [token: string]: number } }
  | { readonly is: 'restored'; readonly tokens: { readonly [token: string]: number } }
  /** Numbers begin above these; `least` holds for every kind. */
  | { readonly is: 'above'; readonly numbers: { readonly [kind: string]: number }; readonly least: number }

interface Row extends GivenToken {
  readonly token: string
  uses: number
  restored: number
}

const MOST_KNOWN = 2_000
const LEAST_KNOWN = 5

/** The tokens of one conversation in memory. */
export class TokenTable {
  readonly #rows = new Map<string, Row>()
  readonly #byNormal = new Map<string, Row>()
  readonly #numbers = new Map<string, number>()
  readonly #sent = new Set<string>()
  #least = 0
  #fresh: TokenEvent[] = []
  #known: { readonly size: number; readonly matcher: PhraseMatcher<Candidate> } | undefined

  constructor(events: Iterable<TokenEvent> = []) {
    for (const event of events) this.#apply(event)
  }

  /**
   * A copy that takes numbers of its own.
   *
   * @param secrets False: without the tokens of stored secrets, so that it does not tell what is one.
   */
  draft(secrets: boolean): TokenTable {
    const copy = new TokenTable([{ is: 'above', numbers: this.numbers, least: this.#least }])
    for (const row of this.#rows.values()) if (secrets || row.detector !== 'secret-stored') copy.#apply(row)
    return copy
  }

  /** The token of a finding; a new one if the value has none. */
  tokenFor({ detector, kind, normal, source }: Candidate, value: string, now: number): string {
    const there = this.#byNormal.get(normal)
    if (there) return there.token
    const number = (this.#numbers.get(kind) ?? this.#least) + 1
    this.#change({
      ...{ is: 'token', kind, number, detector, value, normal, at: now },
      ...(source !== undefined && { source }),
    })
    return tokenNamed(kind, number)
  }

  /** Counts the tokens of a text, unless this text was counted before. */
  countSent(text: string, uses: { readonly [token: string]: number }): boolean {
    if (this.#sent.has(text)) return false
    this.#change({ is: 'sent', text, uses })
    return true
  }

  countRestored(tokens: { readonly [token: string]: number }): void {
    const ours = Object.entries(tokens).filter(([token]) => this.#rows.has(token))
    if (ours.length > 0) this.#change({ is: 'restored', tokens: Object.fromEntries(ours) })
  }

  valueOf(token: string): string | undefined {
    return this.#rows.get(token)?.value
  }

  /** The values of tokens in other spellings: in JSON, in an address, without the word that was beside them. */
  get known(): PhraseMatcher<Candidate> {
    if (this.#known?.size === this.#rows.size) return this.#known.matcher
    const rows = [...this.#rows.values()].slice(-MOST_KNOWN)
    const phrases = rows.flatMap(row => {
      if (row.kind === LITERAL || row.value.length < LEAST_KNOWN) return []
      const { kind, detector, source, value, normal } = row
      const id: Candidate = {
        ...{ start: 0, end: 0, detector, kind, confidence: 'exact', normal },
        ...(source !== undefined && { source }),
      }
      return [...spellingsOf(value)].map(text => ({ text, id, wholeWord: true, caseSensitive: true }))
    })
    const matcher = new PhraseMatcher(phrases)
    this.#known = { size: this.#rows.size, matcher }
    return matcher
  }

  /** The tokens that a person may be shown, in the order in which they were given out. */
  get rows(): ShieldTokenRow[] {
    return [...this.#rows.values()]
      .filter(({ kind }) => kind !== LITERAL)
      .map(({ token, kind, detector, value, at, uses, restored }) => ({
        ...{ token, kind, detector, hint: shapeOf(value), firstSeen: at, uses, restored },
      }))
  }

  /** Tokens with their values. */
  get values(): TokenValue[] {
    return [...this.#rows.values()].map(({ token, value }) => ({ token, value }))
  }

  /** The detector of a token that was given out. */
  detectorOf(token: string): DetectorId | undefined {
    return this.#rows.get(token)?.detector
  }

  /** Whether a token stands for text that only reads as a token. */
  isLiteral(token: string): boolean {
    return this.#rows.get(token)?.kind === LITERAL
  }

  get size(): number {
    return this.#rows.size
  }

  /** The highest number of each kind. */
  get numbers(): { [kind: string]: number } {
    return Object.fromEntries(this.#numbers)
  }

  /** Everything that has to be stored since the last call. */
  takeFresh(): TokenEvent[] {
    const fresh = this.#fresh
    this.#fresh = []
    return fresh
  }

  #change(event: TokenEvent): void {
    this.#fresh.push(event)
    this.#apply(event)
  }

  #apply(event: TokenEvent): void {
    switch (event.is) {
      case 'token': {
        const token = tokenNamed(event.kind, event.number)
        const row: Row = { uses: 0, restored: 0, ...event, token }
        this.#rows.set(token, row)
        this.#byNormal.set(event.normal, row)
        this.#numbers.set(event.kind, Math.max(this.#numbers.get(event.kind) ?? this.#least, event.number))
        return
      }
      case 'sent':
        this.#sent.add(event.text)
        return this.#count(event.uses, 'uses')
      case 'restored':
        return this.#count(event.tokens, 'restored')
      case 'above':
        this.#least = Math.max(this.#least, event.least)
        for (const [kind, number] of Object.entries(event.numbers))
          this.#numbers.set(kind, Math.max(this.#numbers.get(kind) ?? 0, number))
    }
  }

  #count(tokens: { readonly [token: string]: number }, what: 'uses' | 'restored'): void {
    for (const [token, count] of Object.entries(tokens)) {
      const row = this.#rows.get(token)
      if (row) row[what] += count
    }
  }
}

const tokenNamed = (kind: string, number: number): string => `[[${kind}_${number}]]`

const spellingsOf = (value: string): Set<string> => {
  const inJson = JSON.stringify(value).slice(1, -1)
  return new Set([value, inJson, encodeURIComponent(value.toWellFormed()), encodeURI(value.toWellFormed())])
}
