import type { Abi, Address, Hex } from 'viem'
import { refuse } from '../../../sdk/index.js'
import type { Listener } from '../../../sdk/node/network/addresses.js'
import { askOutside } from '../../../sdk/node/network/outbound.js'
import { isKnownDollars, KNOWN_DECIMALS } from './networks.js'

const TIMEOUT_MS = 10_000
const MOST_BYTES = 1024 * 1024
const MOST_DECIMALS = 24

/** How signatures of a currency are made. */
export interface SigningDomain {
  readonly name: string
  readonly version: string
  readonly chainId: number
  readonly verifyingContract: Address
}
/** What became of a transfer, as of the latest block. */
export interface TransferState {
  readonly collected: boolean
  /** When the block was made, in seconds. */
  readonly at: number
}
/** A currency as its contract describes itself. */
export interface Currency {
  readonly name: string
  readonly decimals: number
  readonly domain: SigningDomain
}

/** Few sandboxes pay, so the library is loaded on demand. */
const library = () => import('./signing.js')

/** A function of a contract that only reads. */
const read = (name: string, inputs: readonly string[], output: string): Abi => [
  {
    ...{ type: 'function', name, stateMutability: 'view' },
    inputs: inputs.map(type => ({ type, name: '' })),
    outputs: [{ type: output, name: '' }],
  },
]

/** An endpoint of a network, as the owner gave it. */
export class WalletChain {
  readonly #url: string
  readonly #listeners: () => Promise<readonly Listener[]>
  readonly #signal: AbortSignal

  constructor(url: string, listeners: () => Promise<readonly Listener[]>, signal: AbortSignal) {
    this.#url = url
    this.#listeners = listeners
    this.#signal = signal
  }

  /** The number of its chain. */
  async id(): Promise<number> {
    const answer = await this.#ask('eth_chainId', [])
    return numberIn(answer) ?? refuse('dependency', `${this.#host} does not say the number of its chain`)
  }

  async balance(asset: Address, of: Address): Promise<bigint> {
    const balance = await this.#call(asset, read('balanceOf', ['address'], 'uint256'), [of])
    if (typeof balance !== 'bigint') return refuse('dependency', `${this.#host}: ${asset} is no currency there`)
    return balance
  }

  /** Whether a transfer was collected; refused where the endpoint does not say. */
  async transfer(asset: Address, from: Address, nonce: Hex): Promise<TransferState> {
    const block = await this.#ask('eth_getBlockByNumber', ['latest', false])
    const { number, timestamp } = (block ?? {}) as { readonly number?: unknown; readonly timestamp?: unknown }
    const state = read('authorizationState', ['address', 'bytes32'], 'bool')
    const collected = await this.#call(asset, state, [from, nonce], String(number))
    if (typeof collected !== 'boolean')
      return refuse('dependency', `${this.#host} does not say whether a payment was collected`)
    return { collected, at: numberIn(timestamp) ?? 0 }
  }

  /** What a currency says of itself; refused where a signature for it would not be understood. */
  async currency(asset: Address, chainId: number, named: { readonly version?: string } = {}): Promise<Currency> {
    const [name, version, decimals, separator] = await Promise.all([
      this.#call(asset, read('name', [], 'string'), []),
      this.#call(asset, read('version', [], 'string'), []),
      this.#call(asset, read('decimals', [], 'uint8'), []),
      this.#call(asset, read('DOMAIN_SEPARATOR', [], 'bytes32'), []),
    ])
    if (typeof name !== 'string' || typeof decimals !== 'number' || decimals > MOST_DECIMALS)
      return refuse('dependency', `${this.#host}: ${asset} is no currency there`)
    if (decimals !== KNOWN_DECIMALS && isKnownDollars(chainId, asset))
      return refuse('dependency', `${this.#host}: ${asset} has ${KNOWN_DECIMALS} decimals, and it says ${decimals}`)
    const signed = typeof version === 'string' ? version : (named.version ?? '1')
    const domain = { name, version: signed, chainId, verifyingContract: asset }
    const { separatorOf } = await library()
    if (typeof separator === 'string' && separatorOf(domain) !== separator)
      refuse('unprocessable', `${asset} takes signatures of another form than ${name}, version ${signed}`)
    return { name: name.slice(0, 80).toWellFormed(), decimals, domain }
  }

  get #host(): string {
    return new URL(this.#url).host
  }

  /** The value that a contract answers; undefined: it has no such function. */
  async #call(to: Address, abi: Abi, args: readonly unknown[], block = 'latest'): Promise<unknown> {
    const { answeredWith, calledWith } = await library()
    const result = await this.#ask('eth_call', [{ to, data: calledWith(abi, args) }, block], true)
    return typeof result !== 'string' || result === '0x' ? undefined : answeredWith(abi, result as Hex)
  }

  /** What the endpoint answers; with `mayFail` undefined where it answers with an error. */
  async #ask(method: string, params: readonly unknown[], mayFail = false): Promise<unknown> {
    const { status, body } = await askOutside({
      url: this.#url,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      reach: { near: true, listeners: [...(await this.#listeners())] },
      signal: this.#signal,
      timeoutMs: TIMEOUT_MS,
      redirects: 0,
      maxBytes: MOST_BYTES,
    })
    const answer = answerIn(body.toString('utf8'))
    if (answer && 'result' in answer) return answer.result
    if (mayFail && answer && 'error' in answer) return undefined
    return refuse('dependency', `the endpoint of the network at ${this.#host} answered ${status} and no result`)
  }
}

/** A number that an endpoint answers. */
const numberIn = (answer: unknown): number | undefined =>
  typeof answer === 'string' && /^0x[0-9a-f]{1,12}$/i.test(answer) ? Number(answer) : undefined

const answerIn = (text: string): object | undefined => {
  try {
    const answer: unknown = JSON.parse(text)
    return typeof answer === 'object' && answer !== null ? answer : undefined
  } catch {
    return undefined
  }
}
