import type { tags } from 'typia'
import type { Millis } from '../../../sdk/types.js'

/** An amount of dollars in words, such as `0.25`. */
export type Dollars = string & tags.Pattern<'^[0-9]{1,9}([.][0-9]{1,6})?$'>

/** A request to a server that asks for a payment, and the one that is paid for. */
export interface PaidRequest {
  /** The address that is asked: redirects are not followed. */
  url: string
  method: string
  /** A digest of headers and body: an equal request is paid once. */
  digest: string
}
/** What a server asks for, as the wallet read it. */
export interface PaymentTerms extends PaidRequest {
  /** The connection that pays. */
  wallet: string
  description?: string
  /** The address that gets the money. */
  payTo: string
  /** As `eip155:<chain>`. */
  network: string
  /** The contract of the dollars. */
  asset: string
  assetName: string
  /** The amount in the smallest unit of the dollars. */
  units: string
  amountUsd: string
  /** The seconds that the server has to collect it. */
  seconds: number
  /** What the answer repeats of the option that the server offered, as JSON. */
  accepted: string
  /** The protocol's version. */
  version: 1 | 2
}
/** What a person is shown. */
export interface PaymentQuote {
  terms: PaymentTerms
  spentTodayUsd: string
  dailyCapUsd: string
  /** The wallet's own limit lets it be paid without a question. */
  small: boolean
}
/** A header that pays. */
export interface PaymentHeader {
  name: string
  value: string
}
/** What became of a payment; `open`: the server has it, and the chain has not said that it can collect it no more. */
export interface PaymentOutcome {
  outcome: 'paid' | 'open' | 'failed'
  amountUsd: string
  network: string
  /** The offer that a person said yes to; left out: the wallet's own limit let it be paid. */
  card?: string
  transaction?: string
  /** Until when the server may still collect it. */
  until?: Millis
  /** Why it is not paid, as the server says it. */
  reason?: string
}
/** A payment that this call, or one for an equal request, signed before. */
export interface EarlierPayment extends PaymentOutcome {
  /** The call that signed it. */
  key: string
  header: PaymentHeader
  /** What the server answered. */
  answer?: string
}

/** Payments of turns, by key: the run and the call, so that a call that is repeated pays once. */
export interface WalletCalls {
  /** Lists the wallets that a turn may pay with; left out: all. */
  'wallets.usable'(input: { capabilities?: string[] }): { wallets: string[] }
  /** The payment that this call signed, or an open one of the conversation for an equal request. */
  'wallets.earlier'(input: { key: string; conversationId: string; request?: PaidRequest }): { payment?: EarlierPayment }
  /**
   * Reads what a server asks for with status 402. 403: a limit of the wallet, or its lists, forbid it; 409: none or
   * several wallets fit; 422: it asks for nothing that a wallet can pay.
   */
  'wallets.quote'(input: {
    request: PaidRequest
    /** The header `payment-required`. */
    required?: string
    body: string
    wallet?: string
    capabilities?: string[]
  }): PaymentQuote
  /** Signs one payment within the limits, kept when it answers. `card`: the offer that a person said yes to. */
  'wallets.sign'(input: { key: string; terms: PaymentTerms; card?: string; conversationId: string; run: string }): {
    header: PaymentHeader
  }
  /** Keeps what the server answered: its header `payment-response`, and its text. */
  'wallets.settle'(input: { key: string; settled?: string; status: number; answer: string }): PaymentOutcome
}
