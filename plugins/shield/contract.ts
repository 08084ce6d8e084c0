import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive } from '../../sdk/types.js'

/** What finds personal data: by checksum, by value, by form, or by a word beside it. */
export type DetectorId =
  | 'email'
  | 'phone'
  | 'iban'
  | 'card'
  | 'ip'
  | 'mac'
  | 'national-id'
  | 'vat'
  | 'bic'
  | 'passport'
  | 'birth-date'
  | 'crypto-address'
  | 'geo'
  | 'secret-stored'
  | 'secret-pattern'
  | 'secret-entropy'
  | 'list'
  | 'pattern'
/** The national numbers that are known; those without a checksum are found only where their country is chosen. */
export type NationalId =
  | 'at-svnr'
  | 'be-rrn'
  | 'br-cpf'
  | 'ch-ahv'
  | 'de-steuerid'
  | 'dk-cpr'
  | 'es-dni'
  | 'fi-hetu'
  | 'fr-nir'
  | 'gb-nhs'
  | 'gb-nino'
  | 'ie-pps'
  | 'in-aadhaar'
  | 'it-cf'
  | 'nl-bsn'
  | 'pl-pesel'
  | 'pt-nif'
  | 'ro-cnp'
  | 'se-pnr'
  | 'us-itin'
  | 'us-ssn'
/** `mask`: a token leaves instead; `block`: the request is refused; `report`: counted, and sent as it is. */
export type DetectorAction = 'mask' | 'block' | 'report' | 'off'
/** Whether a provider gets real values, tokens, or nothing. */
export type ProviderTrust = 'trusted' | 'shielded' | 'blocked'
/** How sure a finding is, the surest first. */
export type FindingConfidence = 'checksum' | 'exact' | 'pattern' | 'context'
/** The word of a token, such as PERSON. */
export type TokenKind = string & tags.MinLength<1> & tags.MaxLength<24> & tags.Pattern<'^[A-Z][A-Z0-9_]*$'>

/** Names, clients or projects that are personal data here. */
export interface ShieldList {
  id: string & tags.MaxLength<60> & tags.Pattern<'^[a-z0-9][a-z0-9-]*$'>
  label: string & tags.MinLength<1> & tags.MaxLength<60>
  kind: TokenKind
  values: (string & tags.MinLength<2> & tags.MaxLength<200>)[] & tags.MaxItems<20000>
  wholeWord: boolean
  caseSensitive: boolean
}
/** A form of personal data that the owner describes. */
export interface ShieldPattern {
  id: string & tags.MinLength<1> & tags.MaxLength<60>
  label: string & tags.MinLength<1> & tags.MaxLength<60>
  kind: TokenKind
  /** RE2 syntax, which has no backreferences. */
  regex: string & tags.MinLength<1> & tags.MaxLength<500>
  action: DetectorAction
}
/** What leaves for which provider. */
export interface ShieldPolicy {
  enabled: boolean
  /** By `<provider>/<account>` or provider; a model server is `endpoint/<id>`. The most exact one holds. */
  providers: { [provider: string]: ProviderTrust }
  /** Holds for providers that are not named; model servers on this machine are trusted unless named. */
  defaultTrust: 'shielded' | 'trusted'
  /** Detectors that are not named: `secret-entropy` and `geo` report, all others mask. */
  detectors: { [detector: string]: DetectorAction }
  /** For forms of telephone numbers and national numbers; empty: all national numbers with a checksum. */
  countries: (string & tags.Pattern<'^[A-Z]{2}$'>)[] & tags.MaxItems<40>
  /** Languages of the words beside a finding, such as `en`; empty: all that are known. */
  languages: (string & tags.MinLength<2> & tags.MaxLength<20>)[] & tags.MaxItems<20>
  lists: ShieldList[] & tags.MaxItems<50>
  patterns: ShieldPattern[] & tags.MaxItems<100>
  /** Never masked: exact values, `@domain` for mail addresses, CIDR for network addresses. */
  allow: (string & tags.MinLength<1> & tags.MaxLength<200>)[] & tags.MaxItems<2000>
  /** Whether pictures go to shielded providers; they are not read. */
  binary: 'send' | 'block'
  /** What happens to a request when the shield itself fails. */
  onFailure: 'block' | 'send'
}

/** Personal data in a text. */
export interface Finding {
  detector: DetectorId
  kind: string
  start: Count
  end: Count
  /** Empty where nothing is masked. */
  token: string
  action: DetectorAction
  confidence: FindingConfidence
  /** The national number, the list or the pattern. */
  source?: string
}
/** One token of a conversation, without its value. */
export interface ShieldTokenRow {
  token: string
  kind: string
  detector: DetectorId
  /** The first character and the shape of the value. */
  hint: string
  firstSeen: Millis
  /** How many places it stands for in texts that were sent; a text that is sent again counts once. */
  uses: Count
  restored: Count
}
/** A provider, and what it gets. */
export interface ShieldProvider {
  id: string
  label: string
  trust: ProviderTrust
  why: 'policy' | 'default' | 'local'
  /** False: its program sends past the shield, so its turns are refused while it counts as shielded. */
  covered: boolean
}
/** One detector as it is set now. */
export interface DetectorEntry {
  id: DetectorId
  label: string
  action: DetectorAction
  confidence: FindingConfidence
  examples: string[]
}
/** One national number. */
export interface NationalIdEntry {
  id: NationalId
  country: string
  label: string
}
/** The policy in force, with what it makes of each provider and detector. */
export interface ShieldState {
  policy: ShieldPolicy
  revision: string
  providers: ShieldProvider[]
  detectors: DetectorEntry[]
  nationalIds: NationalIdEntry[]
}
/** What would leave of a text. */
export interface ShieldPreview {
  trust: ProviderTrust
  masked: string
  findings: Finding[]
  /** A request with this text would be refused. */
  blocked: boolean
  restored: string
  ms: number & tags.Minimum<0>
}
/** How many requests were made, and what became of them. */
export interface ShieldRequests {
  total: Count
  shielded: Count
  trusted: Count
  blocked: Count
}
export interface MaskedCount {
  kind: string
  detector: DetectorId
  count: Count
  distinct: Count
}
export interface ProviderCount {
  provider: string
  requests: Count
  masked: Count
  blocked: Count
}
export interface ShieldDay {
  /** In UTC. */
  day: string
  masked: Count
  blocked: Count
}
/** The time that the shield added to requests, in milliseconds. */
export interface ShieldOverhead {
  p50: number & tags.Minimum<0>
  p95: number & tags.Minimum<0>
}
/** What a person might change, with counts and shapes alone. */
export interface ShieldSuggestion {
  /**
   * `mask`: a detector that only reports finds much; `allow`: most mail addresses have one domain, likely the owner's;
   * `unused`: a list or pattern found nothing in 90 days.
   */
  kind: 'mask' | 'allow' | 'unused'
  detector: DetectorId
  source?: string
  count: Count
  distinct: Count
  /** The first character and the shape. */
  hint?: string
  text: string & tags.MinLength<1> & tags.MaxLength<300>
}
/** What the shield did. */
export interface ShieldStats {
  requests: ShieldRequests
  masked: MaskedCount[]
  restored: Count
  /** Tokens of ours that came back altered beyond recognition. */
  unrestored: Count
  perProvider: ProviderCount[]
  perDay: ShieldDay[]
  overheadMs: ShieldOverhead
  /** Empty for tokens and below maintainer. */
  suggestions: ShieldSuggestion[] & tags.MaxItems<20>
}
export interface ReplayedDetector {
  detector: DetectorId
  source?: string
  masked: Count
  /** Masked now, and not under the saved policy. */
  added: Count
  /** Masked under the saved policy, and not now. */
  dropped: Count
  blocked: Count
  reported: Count
  distinct: Count
  hints: string[] & tags.MaxItems<5>
}
export interface ReplayedProvider {
  provider: string
  was: ProviderTrust
  now: ProviderTrust
  requests: Count
}
export interface ReplayedRefusal {
  conversationId: string
  requests: Count
  kinds: string[]
}
/** What a policy would have done with what past conversations sent. */
export interface ShieldReplay {
  conversations: Count
  requests: Count
  characters: Count
  /** Not all of it was replayed. */
  truncated: boolean
  ms: Count
  detectors: ReplayedDetector[]
  /** Those whose trust would change. */
  providers: ReplayedProvider[]
  refused: ReplayedRefusal[] & tags.MaxItems<100>
}

type ConversationName = string & tags.MinLength<1> & tags.MaxLength<200>
type UtcDay = string & tags.Pattern<'^\\d{4}-\\d{2}-\\d{2}$'>

/** A request of a turn to a model, before it leaves. */
export interface ShieldedRequest {
  /** Left out: a single question without a conversation. */
  conversationId?: string
  provider: string
  account?: string
  /** This machine runs the model. */
  local: boolean
  /** False: what is sent does not pass here. */
  covered: boolean
  /** Every text of the request, in order. */
  texts: string[]
  /** It contains pictures or other bytes. */
  binary: boolean
}
/** A token and the value that it stands for. */
export interface TokenValue {
  token: string
  value: string
}
/** What may leave. */
export interface OutboundVerdict {
  verdict: 'sent' | 'masked' | 'refused'
  /** Why it was refused, as a sentence without values. */
  message?: string
  /** The texts to send, where they were masked. */
  texts?: string[]
  /** The tokens of the conversation, where they were masked. */
  tokens?: TokenValue[]
  /** The places that were masked in this request, per kind. */
  counts?: { [kind: string]: Count }
}
/** What came back in an answer. */
export interface InboundReport {
  conversationId: string
  restored: { [token: string]: Count }
  unrestored: Count
}

/** The shield for other groups; in process only. */
export interface ShieldServices {
  /** Judges a request to a model and masks its texts; new tokens are durable before it answers. */
  'shield.outbound'(input: ShieldedRequest): OutboundVerdict
  /** Counts the tokens that were restored in an answer. */
  'shield.inbound'(input: InboundReport): Ok
  /** Says what a provider gets. */
  'shield.trustOf'(input: { provider: string; account?: string; local: boolean }): {
    enabled: boolean
    trust: ProviderTrust
    why: ShieldProvider['why']
  }
  /** Destroys the tokens of a conversation that is removed for good. */
  'shield.purge'(input: { conversationId: string }): Ok
  /** Gives a fork the tokens of its source, unless it has some. */
  'shield.copy'(input: { from: string; to: string }): Ok
  /** The tokens of a conversation with their values, for reductions of its texts. */
  'shield.known'(input: { conversationId: string }): { tokens: TokenValue[] }
}

export interface ShieldCalls extends ShieldServices {
  /**
   * Read the policy with its lists, what every connected provider gets now and why, and the catalogue of detectors.
   *
   * A change of `.sandbox/config/shield.json` by hand counts once an owner saves it here.
   *
   * - 503: the vault with the lists is locked
   */
  'GET /shield'(): ShieldState

  /**
   * Replace the policy whole; it holds from the next request on, also of running turns.
   *
   * The tokens of conversations are kept, so that earlier ones are still restored. With `revision` it is refused after
   * another change.
   *
   * - 400: an unknown detector, a pattern that does not compile, a bad word for tokens, or an id that is used twice
   * - 409: the policy has changed since that revision
   * - 413: more than the file or the vault takes
   * - 503: the vault that keeps lists and tokens is not set up or is locked
   */
  'POST /shield'(input: { policy: ShieldPolicy; revision?: string & tags.MaxLength<60> }): {
    ok: true
    revision: string
  }

  /**
   * Show what would leave of a text for a provider, what was found where, and the text restored from it.
   *
   * Nothing is stored or sent, and no number of a token is taken. With `conversationId` the tokens of that conversation
   * are used. Stored secrets are marked for the owner alone; only the owner may give a `policy` that is not saved. Left
   * out, `provider` is one that is shielded.
   *
   * - 400: an empty text, or a policy that does not compile
   * - 403: a policy given by somebody else than the owner
   * - 404: no such conversation
   * - 413: more than 200,000 characters
   * - 429: more than 60 in a minute
   * - 503: the vault is locked
   */
  'POST /shield/preview'(input: {
    text: string
    provider?: string & tags.MaxLength<200>
    conversationId?: ConversationName
    policy?: ShieldPolicy
  }): ShieldPreview

  /**
   * List the tokens of a conversation, in the order in which they were first needed, without their values.
   *
   * - 404: no such conversation
   * - 503: the vault is locked
   */
  'GET /shield/conversations/{id}'(input: {
    id: ConversationName
    /** At most 1,000; 200 when left out. */
    limit?: Positive
    /** The last token of the page before. */
    after?: string & tags.MaxLength<60>
  }): { tokens: ShieldTokenRow[]; next?: string }

  /**
   * Destroy the tokens of a conversation: no log of a provider can be resolved any more.
   *
   * The record here keeps the real text; the next turn numbers its tokens above the old ones.
   *
   * - 409: a turn is running in it
   * - 503: the vault is locked
   */
  'DELETE /shield/conversations/{id}'(input: { id: ConversationName }): { ok: true; forgotten: Count }

  /**
   * Put the real values into a text of that conversation, such as a log of its provider.
   *
   * Tokens that were never given out, and those of stored secrets and keys, stay as they are and are listed.
   *
   * - 400: an empty text
   * - 404: no such conversation, or none that the caller may read
   * - 413: more than 200,000 characters
   * - 503: the vault is locked
   */
  'POST /shield/restore'(input: { conversationId: ConversationName; text: string }): {
    text: string
    restored: Count
    unknown: string[]
  }

  /**
   * Compare a policy that is not saved with the saved one, over what past conversations sent.
   *
   * At most 20 MiB of text and 60 s. Nothing is stored or sent, no number of a token is taken, and the answer has no
   * value in it. Left out, `conversations` are the newest 20.
   *
   * - 400: an unknown detector, a pattern that does not compile, a bad word for tokens, or an id that is used twice
   * - 404: no such conversation
   * - 409: another replay is running
   * - 429: more than 10 in an hour
   * - 503: the vault is locked
   */
  'POST /shield/replay'(input: {
    policy: ShieldPolicy
    conversations?: ConversationName[] & tags.MinItems<1> & tags.MaxItems<50>
  }): ShieldReplay

  /**
   * Count what was masked per kind, provider and day, and what a person might change.
   *
   * Days are in UTC; left out, `from` is 90 days ago and `to` today. No value and no text is in it.
   *
   * - 400: not a date
   */
  'GET /shield/stats'(input: { from?: UtcDay; to?: UtcDay }): ShieldStats
}

export const shieldContract: Contract<ShieldCalls> = {
  schema: () => typia.json.application<ShieldCalls>(),
  request: typia.misc.createValidatePrune<Requests<ShieldCalls>>(),
  reply: () => typia.createValidate<Replies<ShieldCalls>>(),
}
