import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok } from '../../sdk/types.js'
import type { AccountUsage } from '../accounts/contract.js'
import type { DefinedProvider } from '../providers/contract.js'

/** A connected subscription of a routed provider. */
export interface RoutedAccount {
  /** The account's id, which `disconnect` takes. */
  name: string
  label: string
  /** How full its limits are; left out: the provider does not tell. */
  usage?: AccountUsage
  /** Its credential can no longer be renewed: sign in again. */
  needsReauth?: boolean
  /** What is wrong with it, and what to do. */
  detail?: string
}
/** The accounts of each routed provider; none: an empty list. */
export interface RoutedAccounts {
  [provider: string]: RoutedAccount[]
}
/** What a person needs to sign in. */
export interface RoutedStart {
  /** The page to open. */
  url: string
  /** What to type on that page; "" where there is nothing to type. */
  code: string
  /** Names the attempt; it is not the state of OAuth. */
  state: string
  /** `redirect`: the address that the browser ends at goes into `complete`, unless it reached the sandbox itself. */
  flow: 'device' | 'redirect'
  expiresAt: Millis
}
/** A provider or a model server in the table of the translator. */
export interface TranslatorServed {
  /** A routed provider, or `endpoint/<id>`. */
  provider: string
  protocol: 'openai' | 'anthropic'
  accounts: Count
  models: Count
}
/** Requests since the translator's process started. */
export interface TranslatorRequests {
  total: Count
  /** Answered with an error. */
  failed: Count
  /** Sent again to another account, or with a renewed credential. */
  retried: Count
  inFlight: Count
}
/** How the translator stands. */
export interface TranslatorStatus {
  /** `stopped`: there is nothing to serve. */
  state: 'stopped' | 'starting' | 'running' | 'failed'
  /** Where chat completions are, while it runs. */
  chatCompletions?: string
  /** Where messages are, while it runs. */
  messages?: string
  /** Since when it runs. */
  since?: Millis
  /** How often it was started again since the daemon started. */
  restarts: Count
  /** For `failed`: when it is started again. */
  nextTryAt?: Millis
  /** The last words of a process that ended. */
  detail?: string
  serves: TranslatorServed[]
  requests: TranslatorRequests
}
/** The protocol in which a program or a loop asks. */
export type AskedProtocol = 'chat' | 'messages' | 'responses'
/** Where a run asks, and with what. */
export interface TranslatorAccess {
  /** Without a version segment: `<baseUrl>/v1/messages`. */
  baseUrl: string
  /** Belongs to one run and one provider, and dies with the run. */
  bearer: string
  /** The model as it is named there: `<provider>/<model>`. */
  model: string
}
/** What a run asked through the translator. */
export interface TranslatorCounts {
  answers: Count
  inputTokens: Count
  outputTokens: Count
  cacheReadTokens: Count
  cacheCreationTokens: Count
}

/** What the translator is for other groups. */
export interface TranslatorServices {
  /**
   * Gives a run the address and the bearer with which its loop asks a routed provider or a model server.
   *
   * A translator that is not running is started and waited for, at most 15 s.
   *
   * - 404: it serves no such provider
   * - 503: the translator does not run: the message has its last words
   */
  'translator.endpointFor'(input: {
    /** A routed provider, or `endpoint/<id>`. */
    provider: string
    /** Only this account; left out: the one with most room at each request. */
    account?: string
    model: string
    protocol: AskedProtocol
    run: string
    /** Left out: a single question. */
    conversationId?: string
    /** The loop asks the privacy shield itself before each request. */
    shielded?: boolean
  }): TranslatorAccess
  /** Ends a bearer, and gives what was asked with it. One that has ended gives nothing. */
  'translator.release'(input: { bearer: string }): { counts?: TranslatorCounts }
}

export interface RoutedCalls extends TranslatorServices {
  /**
   * Show whether the translator runs, where, and what it serves.
   *
   * Its addresses need a bearer that only turns hold.
   */
  'GET /translator'(): TranslatorStatus

  /**
   * List the connected subscriptions of each routed provider, with how full their limits are.
   *
   * It is complete while the translator is down, and waits for no provider: readings are refreshed behind the answer.
   */
  'GET /translator/accounts'(): RoutedAccounts

  /**
   * Begin to sign in at a routed provider; a further account of one provider adds room.
   *
   * `device` completes by itself. `redirect` does so where the browser is on this machine; elsewhere the page that it
   * ends at does not load, and its address goes into `complete`.
   *
   * - 404: not a routed provider
   * - 409: the loopback port that the provider fixes is in use
   * - 422: the provider has neither of these sign-ins, or its client id is not configured
   * - 424: the provider did not answer, or refused to begin
   * - 429: more than 10 starts in 10 minutes
   */
  'POST /translator/{provider}/connect'(input: { provider: DefinedProvider }): RoutedStart

  /**
   * Complete a sign-in with the address that the browser ended at; answers once the account is stored.
   *
   * Completing what is complete is a success.
   *
   * - 404: not a routed provider, or no such attempt
   * - 409: the attempt is abandoned, expired or being completed, or has nothing to complete
   * - 422: the address belongs to another attempt
   * - 424: the provider refused the code, or did not answer
   */
  'POST /translator/{provider}/complete'(input: {
    provider: DefinedProvider
    redirectUrl: string & tags.MinLength<1> & tags.MaxLength<8192>
    state: string & tags.MinLength<1> & tags.MaxLength<64>
  }): Ok

  /**
   * Disconnect one account; requests that begin after the answer are not served from it.
   *
   * Those that are being answered end as usual. Disconnecting what is gone is a success.
   *
   * - 404: not a routed provider
   * - 409: it is an account of another provider
   */
  'POST /translator/{provider}/disconnect'(input: {
    provider: DefinedProvider
    name: string & tags.MinLength<1> & tags.MaxLength<60>
  }): Ok
}

export const routedContract: Contract<RoutedCalls> = {
  schema: () => typia.json.application<RoutedCalls>(),
  request: typia.misc.createValidatePrune<Requests<RoutedCalls>>(),
  reply: () => typia.createValidate<Replies<RoutedCalls>>(),
}
