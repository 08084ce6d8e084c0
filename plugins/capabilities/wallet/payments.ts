import type { Address, Hex } from 'viem'
import type { Store } from '../../../sdk/index.js'
import type { PaidRequest, PaymentHeader } from './contract.js'

/** One payment, kept before it can be collected. */
export interface WalletPayment extends PaidRequest {
  readonly key: string
  readonly wallet: string
  readonly from: Address
  readonly payTo: string
  readonly network: string
  readonly asset: Address
  readonly amountUsd: string
  /** In millionths of a dollar. */
  readonly micros: string
  readonly nonce: Hex
  /** When it was signed. */
  readonly at: number
  /** Until when it can be collected, in seconds. */
  readonly until: number
  readonly header: PaymentHeader
  readonly state: 'open' | 'paid' | 'failed'
  readonly transaction?: string
  readonly reason?: string
  readonly answer?: string
  readonly conversationId: string
  readonly run: string
  /** The offer that a person said yes to. */
  readonly card?: string
}

const PREFIX = 'payment/'
const DAY_MS = 86_400_000
/** How long a payment is kept. */
const KEPT_MS = 40 * DAY_MS

/** The payments of all wallets. */
export class WalletPayments {
  readonly #store: Pick<Store, 'get' | 'set' | 'delete' | 'all'>

  constructor(store: Pick<Store, 'get' | 'set' | 'delete' | 'all'>) {
    this.#store = store
  }

  get(key: string): Promise<WalletPayment | undefined> {
    return this.#store.get(PREFIX + key)
  }

  /** Keeps a payment; durable when it returns. */
  put(payment: WalletPayment): Promise<void> {
    return this.#store.set(PREFIX + payment.key, payment)
  }

  async of(from: Address): Promise<WalletPayment[]> {
    return (await this.#all()).filter(payment => payment.from === from)
  }

  /** The payment of a conversation for an equal request that the chain has not said to be over, for a day. */
  async openFor(
    conversationId: string,
    { url, method, digest }: PaidRequest,
    now: number,
  ): Promise<WalletPayment | undefined> {
    return (await this.#all()).find(
      one =>
        one.state === 'open'
        && one.conversationId === conversationId
        && one.until * 1000 + DAY_MS > now
        && one.url === url
        && one.method === method
        && one.digest === digest,
    )
  }

  /** Removes payments of long ago. */
  async sweep(now: number): Promise<void> {
    for (const { key, at } of await this.#all()) if (now - at > KEPT_MS) await this.#store.delete(PREFIX + key)
  }

  async #all(): Promise<WalletPayment[]> {
    return (await this.#store.all<WalletPayment>(PREFIX)).map(([, payment]) => payment)
  }
}

/** What was spent on the day of `now`, in UTC: an open payment counts. */
export const spentOn = (payments: readonly WalletPayment[], now: number): bigint => {
  const day = new Date(now).toISOString().slice(0, 10)
  return payments
    .filter(({ state, at }) => state !== 'failed' && new Date(at).toISOString().slice(0, 10) === day)
    .reduce((sum, { micros }) => sum + BigInt(micros), 0n)
}
