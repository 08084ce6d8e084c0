import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, MostCharacters, Ok, Text } from '../../sdk/types.js'
import type { LimitWindow } from '../agent/contract.js'
import type { DefinedProvider, SignInFlow } from '../providers/contract.js'

/** Names an account for as long as it is connected. */
export type AccountId = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z0-9_-]+$'>
/** Names one attempt to sign in; holds no secret of it. */
export type SignInHandshake = string & tags.MinLength<22> & tags.MaxLength<64> & tags.Pattern<'^[A-Za-z0-9_-]+$'>
type AccountName = string & MostCharacters<80>

/** How full the limits of an account are. */
export interface AccountUsage {
  windows: LimitWindow[]
  /** When the newest window was measured. */
  measuredAt: Millis
}
/** An account of a provider. */
export interface ProviderAccount {
  id: AccountId
  /** The name a person gave it, else its e-mail, else the provider's name and a number. */
  label: string
  /** Who it signs in as; for maintainers and the owner alone. */
  email?: string
  organization?: string
  /** What the provider granted. */
  scope?: string
  connectedAt: Millis
  /** Its credential can no longer be renewed: sign in again. */
  needsReauth: boolean
  /** What is wrong with it, and what to do. */
  detail?: string
  /** Left out: not measured, or the provider does not tell. */
  usage?: AccountUsage
  /** Its limits by the minute, as its last answer to a turn told them; no allowance, and gone when they are whole. */
  rates?: LimitWindow[]
}
/** How an attempt to sign in stands. */
export type SignInProgress = 'waiting' | 'exchanging' | 'done' | 'failed' | 'expired' | 'abandoned'
/** An attempt to sign in. */
export interface ProviderSignIn {
  handshake: SignInHandshake
  provider: DefinedProvider
  flow: SignInFlow
  state: SignInProgress
  startedAt: Millis
  expiresAt: Millis
  /** The account that it renews. */
  reconnects?: AccountId
  /** The account that it connected. */
  account?: AccountId
  /** Why it failed. */
  detail?: string
  /** While it waits for what a page shows: the address of that page. */
  page?: string
}
/** What a person needs to sign in. */
export interface SignInStart {
  /** The page to open. */
  url: string
  handshake: SignInHandshake
  expiresAt: Millis
  flow: SignInFlow
  /** What to type on that page. */
  code?: string
  /** What finishing it still needs; `none`: the sandbox does the rest. */
  finish: 'none' | 'code' | 'redirect-url' | 'key'
}
/** The same, for clients that know one way to sign in. */
export interface PlainSignInStart {
  url: string
  handshake: SignInHandshake
  expiresAt: Millis
}
/** A refusal of a provider, in its words. */
export interface StandingRefusal {
  at: Millis
  kind: 'limit' | 'auth' | 'entitlement'
  message: string
  account?: AccountId
}
/** Whether an account can serve a turn. */
export type AccountStanding = 'room' | 'unmeasured' | 'spent' | 'refused' | 'needs-reauth'
/** How much room an account has. */
export interface AccountLimits {
  account: AccountId
  label: string
  /** 100 less the fullest window; 100 where nothing was measured. */
  room: number & tags.Minimum<0> & tags.Maximum<100>
  standing: AccountStanding
  /** For `spent`: when its fullest window opens again. */
  reopensAt?: Millis
  windows: LimitWindow[]
  /** The last refusal of this account, while it stands. */
  refusal?: StandingRefusal
}
/** The accounts of a provider in the order in which turns get them. */
export interface ProviderLimits {
  limits: AccountLimits[]
  /** The account of a turn that names none; left out: none can serve. */
  next?: AccountId
  /** When the first account can serve again. */
  reopensAt?: Millis
  /** The last refusal of the provider. */
  refusal?: StandingRefusal
  /** The provider tells how full its limits are. */
  publishes: boolean
}
/** The accounts and attempts to sign in of a provider. */
export interface AccountList {
  accounts: ProviderAccount[]
  /** Of the last hour; for maintainers and the owner alone. */
  signIns: ProviderSignIn[]
}
/** What a group is lent to speak with a provider; it is in memory alone. */
export interface AccountLease {
  /** Names the lease until it is released. */
  lease: string
  account: AccountId
  label: string
  kind: 'bearer' | 'key'
  /** What requests carry: the credential in its header. */
  headers: { [name: string]: string }
  value: string
  expiresAt?: Millis
}
/** How the accounts of a provider stand together. */
export interface ProviderStanding {
  provider: string
  accounts: Count
  ready: 'yes' | 'no-account' | 'needs-reauth' | 'spent' | 'refused'
  detail?: string
  reopensAt?: Millis
}
/** A credential that is held, without its value. */
export interface HeldCredential {
  provider: string
  account: AccountId
  label: string
  needsReauth: boolean
}

/** What accounts are for other groups. */
export interface AccountServices {
  /**
   * Lends the credential of an account: of the named one, of `prefer` while it is connected, else of the one with most
   * room for the model, apart from those of `besides`.
   *
   * - 404: no such account
   * - 409: no account can serve: none is connected, or each needs a new sign-in
   * - 424: its credential could not be renewed now
   * - 429: each account is spent
   */
  'accounts.lease'(input: {
    provider: string
    account?: string
    prefer?: string
    model?: string
    /** Accounts that refused already. */
    besides?: string[]
  }): AccountLease
  /**
   * Lends the credential anew after the provider refused it (status 401): renewed, if nobody did so meanwhile.
   *
   * - 404: the account is not connected any more
   * - 409: it cannot be renewed: sign in again
   * - 424: the provider did not renew it now
   */
  'accounts.renew'(input: { lease: string; provider: string; account: string; refused: string }): AccountLease
  /** Gives a lease back. */
  'accounts.release'(input: { lease: string }): Ok
  /** Whether an account is connected; without `account`: any of the provider. */
  'accounts.holds'(input: { provider: string; account?: string }): { holds: boolean }
  /** Gives how each provider with accounts stands. */
  'accounts.standing'(): { providers: ProviderStanding[] }
  /**
   * Lists the accounts of a provider as the caller sees them, without waiting for it: limits are read afterwards.
   *
   * - 404: no such provider
   */
  'accounts.known'(input: { provider: string }): { accounts: ProviderAccount[] }
  /** Lists the credentials that are held. */
  'accounts.inventory'(): { credentials: HeldCredential[] }
  /** Reads how full limits are from the headers of an ordinary answer, and returns what they say. */
  'limits.heard'(input: {
    provider: string
    account: string
    headers: { [name: string]: string }
    /** The limits by the minute that they tell. */
    rates?: LimitWindow[]
  }): { windows: LimitWindow[] }
}

/** What happens to accounts. */
export interface AccountEvents {
  /** An account was connected, or signed in again. */
  'account.connected': { provider: string; account: string }
  'account.disconnected': { provider: string; account: string }
  /** The accounts of a provider, or what they can do, changed. */
  'accounts.changed': { provider: string }
}

export interface AccountsCalls extends AccountServices {
  /**
   * Begin to sign in at a provider; answers where to send the person.
   *
   * `device` and `redirect` complete by themselves, `code` and `key` with what the page shows. Where the browser of a
   * redirect is on another machine, paste the address it ends at to finish. One attempt a person and provider: a newer
   * one abandons the one before. It ends by itself at `expiresAt`.
   *
   * - 404: no such provider, or no such account
   * - 409: the loopback port that the provider fixes is in use
   * - 424: the provider did not answer, or refused to begin
   * - 422: the provider has no such sign-in, or its client id is not configured
   * - 429: more than 10 starts in 10 minutes
   */
  'POST /accounts/{provider}/login/start'(input: {
    provider: DefinedProvider
    /** Left out: the first of the provider. */
    flow?: SignInFlow
    /** Sign in to this account again. */
    account?: AccountId
    /** A name for the account. */
    label?: AccountName
    /** Your client at the provider, where its definition names none (`client` of its row in `GET /providers`). */
    clientId?: Text & tags.MaxLength<200>
  }): SignInStart

  /**
   * Hand over what the sign-in page gave; answers the connected account.
   *
   * Finishing what is finished answers the same account. An identity that is connected already is renewed. A refused
   * code or key can be given anew until `expiresAt`.
   *
   * - 404: no such provider, or no such attempt
   * - 409: the attempt is abandoned, expired or being completed, or has nothing to finish
   * - 422: the state is not that of this attempt
   * - 424: the provider refused the code or key, or did not answer
   */
  'POST /accounts/{provider}/login/finish'(input: {
    provider: DefinedProvider
    handshake: SignInHandshake
    /** The code of the page, or `code#state`. */
    code?: string & tags.MinLength<1> & tags.MaxLength<4096>
    /** The address that the browser ended at. */
    redirectUrl?: string & tags.MinLength<1> & tags.MaxLength<8192>
    key?: string & tags.MinLength<1> & tags.MaxLength<4096>
    label?: AccountName
  }): ProviderAccount

  /**
   * Abandon an attempt to sign in.
   *
   * - 404: no such provider, or no such attempt
   * - 409: it is done: disconnect the account instead
   */
  'POST /accounts/{provider}/login/cancel'(input: { provider: DefinedProvider; handshake: SignInHandshake }): Ok

  /**
   * List the accounts of a provider, oldest first, with how full their limits are.
   *
   * A provider that is slow to tell does not delay the list: it shows the last reading.
   *
   * - 404: no such provider
   */
  'GET /accounts/{provider}'(input: {
    provider: DefinedProvider
    /** `1` or `true`: measure first. */
    force?: string
  }): AccountList

  /**
   * Name an account; an empty label restores the derived one.
   *
   * - 404: no such provider or account
   */
  'POST /accounts/{provider}/rename'(input: {
    provider: DefinedProvider
    id: AccountId
    label: AccountName
  }): ProviderAccount

  /**
   * Disconnect an account: the provider is asked to revoke the credential, which is then destroyed.
   *
   * A turn that uses it runs on until its credential is refused. Disconnecting what is gone is a success.
   *
   * - 404: no such provider
   */
  'POST /accounts/{provider}/disconnect'(input: { provider: DefinedProvider; id: AccountId }): Ok

  /**
   * List how much room each account has, in the order in which turns get them.
   *
   * - 404: no such provider
   */
  'GET /accounts/{provider}/limits'(input: {
    provider: DefinedProvider
    /** `1` or `true`: measure first. */
    force?: string
    /** Only what counts for this model. */
    model?: string & tags.MaxLength<200>
  }): ProviderLimits

  /**
   * Begin to sign in at a provider in the first way that the sandbox completes by itself, else in its first way.
   *
   * Where a code or a key is to be given, the address is that of the console, which takes it; or it is given with
   * `POST /accounts/{provider}/login/finish`.
   *
   * - 404: no such provider
   * - 409: the loopback port that the provider fixes is in use
   * - 424: the provider did not answer, or refused to begin
   * - 422: the provider has no sign-in, or its client id is not configured
   * - 429: more than 10 starts in 10 minutes
   */
  'POST /{provider}/login/start'(input: { provider: string }): PlainSignInStart

  /**
   * Abandon an attempt to sign in.
   *
   * - 404: no such provider, or no such attempt
   * - 409: it is done: disconnect the account instead
   */
  'POST /{provider}/login/cancel'(input: { provider: string; handshake: SignInHandshake }): Ok

  /**
   * List the accounts of a provider.
   *
   * - 404: no such provider
   */
  'GET /{provider}/accounts'(input: {
    provider: string
    /** `1` or `true`: measure first. */
    force?: string
  }): { accounts: ProviderAccount[] }

  /**
   * Name an account; an empty label restores the derived one.
   *
   * - 404: no such provider or account
   */
  'POST /{provider}/account/rename'(input: { provider: string; id: AccountId; label: AccountName }): ProviderAccount

  /**
   * Disconnect an account; others stay connected.
   *
   * - 404: no such provider
   */
  'POST /{provider}/account/disconnect'(input: { provider: string; id: AccountId }): Ok
}

export const accountsContract: Contract<AccountsCalls> = {
  schema: () => typia.json.application<AccountsCalls>(),
  request: typia.misc.createValidatePrune<Requests<AccountsCalls>>(),
  reply: () => typia.createValidate<Replies<AccountsCalls>>(),
}
