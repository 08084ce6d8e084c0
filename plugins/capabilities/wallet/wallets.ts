import { randomBytes } from 'node:crypto'
import type { Address, Hex } from 'viem'
import { refuse, type Handlers, type Host } from '../../../sdk/index.js'
import { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Entries } from '../records/entries.js'
import type { OpenEntry } from '../records/kinds.js'
import { dollarsOf, microsOfUnits } from './amounts.js'
import type { WalletChain } from './chain.js'
import { jsonInHeader, paymentOptions, type PaymentOption } from './challenge.js'
import type {
  EarlierPayment,
  PaidRequest,
  PaymentOutcome,
  PaymentQuote,
  PaymentTerms,
  WalletCalls,
} from './contract.js'
import { assertListed, walletLimits } from './limits.js'
import { chainIn, requireChain } from './networks.js'
import { spentOn, WalletPayments, type WalletPayment } from './payments.js'

/** The longest time that a server has to collect a payment. */
const MOST_SECONDS = 600
/** How many seconds after it expired a block in which it is not collected may still be replaced by another one. */
const LATE = 60
const MOST_ANSWER = 32 * 1024
const MOST_REASON = 300

export interface WalletsDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'store'>
  readonly entries: () => Pick<Entries, 'all' | 'open'>
  /** The endpoint of a wallet's network. */
  readonly chain: (config: OpenEntry['config']) => WalletChain
  /** The contract of a wallet's dollars. */
  readonly asset: (config: OpenEntry['config']) => string | undefined
  readonly now?: () => number
}

/** Pays what servers ask turns for, within the limits of the wallets. */
export class Wallets {
  readonly #deps: WalletsDeps
  readonly #payments: WalletPayments
  readonly #signing = new KeyedMutex()
  readonly #now: () => number

  constructor(deps: WalletsDeps) {
    this.#deps = deps
    this.#payments = new WalletPayments(deps.host.store)
    this.#now = deps.now ?? Date.now
  }

  readonly calls: Handlers<WalletCalls> = {
    'wallets.usable': async ({ capabilities }) => ({
      wallets: (await this.#usable(capabilities)).map(({ id }) => id),
    }),
    'wallets.earlier': async ({ key, conversationId, request }) => {
      const found =
        (await this.#payments.get(key))
        ?? (request && (await this.#payments.openFor(conversationId, request, this.#now())))
      return found ? { payment: earlierOf(found) } : {}
    },
    'wallets.quote': input => this.#quote(input),
    'wallets.sign': input => this.#sign(input),
    'wallets.settle': input => this.#settle(input),
  }

  /** Removes payments of long ago. */
  sweep(): Promise<void> {
    return this.#payments.sweep(this.#now())
  }

  async #usable(capabilities: readonly string[] | undefined): Promise<OpenEntry[]> {
    const all = await this.#deps.entries().all()
    const wanted = all.filter(({ id, kind }) => kind === 'wallet' && (capabilities?.includes(id) ?? true))
    const opened = await Promise.all(wanted.map(entry => this.#deps.entries().open(entry)))
    return opened.flatMap(({ entry, problem }) => (problem ? [] : [entry]))
  }

  async #wallet(id: string): Promise<OpenEntry> {
    const found = (await this.#usable([id]))[0]
    return found ?? refuse('conflict', `the wallet ${id} cannot be used now: its connection says why`)
  }

  async #quote({
    request,
    required,
    body,
    wallet,
    capabilities,
  }: Parameters<Handlers<WalletCalls>['wallets.quote']>[0]): Promise<PaymentQuote> {
    const options = paymentOptions(required, body)
    const usable = await this.#usable(capabilities)
    if (wallet !== undefined && usable.every(({ id }) => id !== wallet))
      refuse('conflict', `this turn has no wallet ${wallet}: expected one of ${names(usable)}`)
    const fitting = usable
      .filter(({ id }) => wallet === undefined || id === wallet)
      .flatMap(entry => options.filter(option => this.#fits(entry, option)).map(option => ({ entry, option })))
    if (fitting.length === 0)
      refuse(
        'unprocessable',
        `the server takes ${described(options)}, and no wallet of this turn pays so (${names(usable)})`,
      )
    if (new Set(fitting.map(({ entry }) => entry.id)).size > 1)
      refuse('conflict', `several wallets can pay this: name one of ${names(fitting.map(({ entry }) => entry))}`)
    const { entry, option } = fitting[0]!
    return this.#quoteOf(entry, option, request)
  }

  /** Whether a server takes the dollars of a wallet: units of any other contract are worth what they are worth. */
  #fits({ config }: OpenEntry, { network, asset }: Pick<PaymentOption, 'network' | 'asset'>): boolean {
    const chain = requireChain(String(config.network))
    return chainIn(network) === chain && this.#deps.asset(config)?.toLowerCase() === asset.toLowerCase()
  }

  async #quoteOf(entry: OpenEntry, option: PaymentOption, request: PaidRequest): Promise<PaymentQuote> {
    const { config, id } = entry
    const from = addressIn(entry)
    const chain = this.#deps.chain(config)
    const number = requireChain(String(config.network))
    const { checkedAddress } = await import('./signing.js')
    const asset = checkedAddress(option.asset.toLowerCase())!
    const payTo =
      checkedAddress(option.payTo)
      ?? refuse('unprocessable', `${option.payTo} is not paid: its checksum is wrong, so it may be mistyped`)
    const currency = await chain.currency(asset, number, namedIn(option))
    const micros = microsOfUnits(option.units, currency.decimals)
    const url = new URL(request.url)
    if (micros === 0n) refuse('unprocessable', 'the server asks for a payment of nothing')
    if (payTo.toLowerCase() === from.toLowerCase())
      refuse('unprocessable', `the server asks for a payment to the wallet ${id} itself`)
    assertListed(config, id, url, payTo)
    const limits = walletLimits(config)
    const amountUsd = dollarsOf(micros)
    const most = dollarsOf(limits.perPayment)
    if (micros > limits.perPayment)
      refuse('forbidden', `${url.host} asks for $${amountUsd}, and the wallet ${id} pays at most $${most} at once`)
    const spent = await this.#signing.with(from, () => this.#spent(entry, chain))
    assertWithin(spent, micros, limits.perDay, id)
    const balance = await chain.balance(asset, from)
    if (balance < option.units) {
      const held = dollarsOf(microsOfUnits(balance, currency.decimals))
      refuse('conflict', `the wallet ${id} holds $${held} of ${currency.name}, and ${url.host} asks for $${amountUsd}`)
    }
    return {
      terms: {
        ...request,
        wallet: id,
        ...(option.description !== undefined && { description: option.description }),
        payTo,
        network: `eip155:${number}`,
        asset,
        assetName: currency.name,
        units: option.units.toString(),
        amountUsd,
        seconds: Math.min(option.seconds, MOST_SECONDS),
        accepted: option.accepted,
        version: option.version,
      },
      spentTodayUsd: dollarsOf(spent),
      dailyCapUsd: dollarsOf(limits.perDay),
      small: micros < limits.unasked,
    }
  }

  /** What was spent today, after payments that expired uncollected are given back; its wallet is held. */
  async #spent(entry: OpenEntry, chain: WalletChain): Promise<bigint> {
    const now = this.#now()
    for (const payment of await this.#payments.of(addressIn(entry))) {
      const { state, until } = payment
      if (state !== 'open' || !isOnChain(entry, payment) || (until + LATE) * 1000 > now) continue
      await this.#payments.put({ ...payment, state: await stateOn(chain, payment) })
    }
    return spentOn(await this.#payments.of(addressIn(entry)), now)
  }

  async #sign({ key, terms, card, conversationId, run }: Parameters<Handlers<WalletCalls>['wallets.sign']>[0]) {
    const entry = await this.#wallet(terms.wallet)
    const from = addressIn(entry)
    return this.#signing.with(from, async () => {
      const before = await this.#payments.get(key)
      if (before) return { header: before.header }
      const chain = this.#deps.chain(entry.config)
      const number = requireChain(String(entry.config.network))
      const asset = terms.asset as Address
      if (!this.#fits(entry, terms)) refuse('conflict', `the wallet ${entry.id} pays on another network by now`)
      const currency = await chain.currency(asset, number, namedIn(terms))
      const units = BigInt(terms.units)
      const micros = microsOfUnits(units, currency.decimals)
      const limits = walletLimits(entry.config)
      if (micros > limits.perPayment)
        refuse('forbidden', `the wallet ${entry.id} pays at most $${dollarsOf(limits.perPayment)} at once by now`)
      if (dollarsOf(micros) !== terms.amountUsd)
        refuse('conflict', `$${terms.amountUsd} was offered, and $${dollarsOf(micros)} would be paid`)
      if (card === undefined && micros >= limits.unasked)
        refuse('forbidden', `a payment of $${terms.amountUsd} needs a person's yes`)
      assertListed(entry.config, entry.id, new URL(terms.url), terms.payTo)
      assertWithin(await this.#spent(entry, chain), micros, limits.perDay, entry.id)
      const nonce: Hex = `0x${randomBytes(32).toString('hex')}`
      const at = this.#now()
      const until = Math.floor(at / 1000) + terms.seconds
      const to = terms.payTo as Address
      const { signTransfer } = await import('./signing.js')
      const transfer = await signTransfer(entry.secrets.key!, currency.domain, { to, units, until, nonce })
      const header = headerOf(terms, transfer)
      const { url, method, digest, payTo, network, amountUsd } = terms
      const payment: WalletPayment = {
        ...{ key, wallet: entry.id, from, url, method, digest, payTo, network, asset, amountUsd, nonce, at, until },
        ...{ micros: micros.toString(), header, state: 'open', conversationId, run },
        ...(card !== undefined && { card }),
      }
      await this.#payments.put(payment)
      failpoint('capabilities.payment.signed')
      await this.#record('capability.paying', payment)
      return { header }
    })
  }

  async #settle({
    key,
    settled,
    status,
    answer,
  }: Parameters<Handlers<WalletCalls>['wallets.settle']>[0]): Promise<PaymentOutcome> {
    const payment = (await this.#payments.get(key)) ?? refuse('not-found', 'nothing was signed for this call')
    if (payment.state !== 'open') return outcomeOf(payment)
    const said = settled === undefined ? undefined : jsonInHeader(settled)
    const transaction = typeof said?.transaction === 'string' ? said.transaction.slice(0, 200) : undefined
    const reason = typeof said?.errorReason === 'string' ? said.errorReason.slice(0, MOST_REASON) : undefined
    const state = said?.success === true && status < 400 ? 'paid' : await this.#stateOf(payment)
    return this.#signing.with(payment.from, async () => {
      const kept = (await this.#payments.get(key)) ?? payment
      if (kept.state !== 'open') return outcomeOf(kept)
      const now: WalletPayment = {
        ...kept,
        state,
        ...(state === 'paid' && transaction && { transaction }),
        ...(reason !== undefined && { reason: reason.toWellFormed() }),
        ...(state === 'paid' && { answer: answer.slice(0, MOST_ANSWER).toWellFormed() }),
      }
      await this.#payments.put(now)
      failpoint('capabilities.payment.settled')
      await this.#record(state === 'paid' ? 'capability.paid' : 'capability.unpaid', now)
      return outcomeOf(now)
    })
  }

  /** Whether the money is gone, as the chain says; a server may take it and fail then. */
  async #stateOf(payment: WalletPayment): Promise<WalletPayment['state']> {
    const { wallet, from } = payment
    try {
      const found =
        (await this.#usable(undefined)).find(entry => entry.config.address === from && isOnChain(entry, payment))
        ?? refuse('conflict', `no wallet has the address ${from} on ${payment.network} any more`)
      return await stateOn(this.#deps.chain(found.config), payment)
    } catch (error) {
      this.#deps.host.log.warn('asking the chain for a payment failed', { wallet, error: String(error) })
      return 'open'
    }
  }

  #record(type: string, payment: WalletPayment): Promise<void> {
    const { wallet, url, payTo, network, amountUsd, transaction, conversationId, run, card } = payment
    return record(this.#deps.host, {
      ...{ type, actor: `conversation:${conversationId}`, conversationId, turnId: run },
      extra: {
        ...{ id: wallet, kind: 'wallet', amountUsd, payTo, network, host: new URL(url).host },
        ...{ approved: card === undefined ? 'by its limit' : 'by a person', ...(transaction && { transaction }) },
      },
    })
  }
}

const isOnChain = ({ config }: OpenEntry, { network }: WalletPayment): boolean =>
  chainIn(network) === chainIn(String(config.network))

/** What the chain says of a payment: it failed once no block can collect it any more. */
const stateOn = async (
  chain: WalletChain,
  { asset, from, nonce, until }: WalletPayment,
): Promise<WalletPayment['state']> => {
  const { collected, at } = await chain.transfer(asset, from, nonce)
  return collected ? 'paid' : at >= until + LATE ? 'failed' : 'open'
}

const names = (entries: readonly OpenEntry[]): string => [...new Set(entries.map(({ id }) => id))].join(', ') || 'none'

const described = (options: readonly PaymentOption[]): string =>
  options
    .slice(0, 5)
    .map(({ network, asset }) => `${asset} on ${network}`)
    .join(', ') || 'nothing that a wallet can pay'

const addressIn = ({ config, id }: OpenEntry): Address =>
  typeof config.address === 'string'
    ? (config.address as Address)
    : refuse('conflict', `the wallet ${id} has no address`)

const assertWithin = (spent: bigint, micros: bigint, perDay: bigint, wallet: string): void => {
  if (spent + micros > perDay)
    refuse(
      'forbidden',
      `the wallet ${wallet} has spent $${dollarsOf(spent)} of $${dollarsOf(perDay)} today, `
        + `and $${dollarsOf(micros)} more is too much: its day begins at 00:00 UTC`,
    )
}

/** The version of the currency's signatures, as the server says it. */
const namedIn = ({ accepted }: Pick<PaymentOption, 'accepted'>): { readonly version?: string } => {
  const { extra } = JSON.parse(accepted) as { extra?: { version?: unknown } }
  return typeof extra?.version === 'string' ? { version: extra.version } : {}
}

const headerOf = ({ version, accepted, url, network }: PaymentTerms, payload: object) => {
  const option = JSON.parse(accepted) as { network?: string }
  const sent =
    version === 2
      ? { x402Version: 2, resource: { url }, accepted: option, payload }
      : { x402Version: 1, scheme: 'exact', network: option.network ?? network, payload }
  return {
    name: version === 2 ? 'payment-signature' : 'x-payment',
    value: Buffer.from(JSON.stringify(sent)).toString('base64'),
  }
}

const outcomeOf = ({ state, amountUsd, network, transaction, reason, until, card }: WalletPayment): PaymentOutcome => ({
  ...{ outcome: state, amountUsd, network },
  ...(card !== undefined && { card }),
  ...(transaction !== undefined && { transaction }),
  ...(state === 'open' && { until: until * 1000 }),
  ...(state !== 'paid' && reason !== undefined && { reason }),
})

const earlierOf = (payment: WalletPayment): EarlierPayment => {
  const { key, header, answer } = payment
  return { ...outcomeOf(payment), key, header: { ...header }, ...(answer !== undefined && { answer }) }
}
