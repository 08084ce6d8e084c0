import { refuse, Refusal, type Host, type Store } from '../../../sdk/index.js'
import { isOpenOnTheWay } from '../../../sdk/node/network/policy.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import type { Address } from 'viem'
import type { ShownConfig } from '../records/contract.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { dollarsOf, microsOfUnits } from './amounts.js'
import { WalletChain } from './chain.js'
import { walletLimits } from './limits.js'
import { knownDollars, requireChain } from './networks.js'

/** Less than a cent may be lost with a wallet. */
const DUST = 10_000n
const LAST = 'wallet-used/'

/** A wallet as it was used last: the file of connections may have been changed by hand since. */
interface LastUse {
  /** What it held, in millionths of a dollar. */
  readonly micros: string
  readonly config: ShownConfig
}

type WalletHost = Pick<Host, 'call' | 'place' | 'signal'> & { readonly store: Pick<Store, 'get' | 'set' | 'delete'> }

/** The endpoint of a wallet's network: its own, else the deployment's. */
const endpointOf = ({ place }: Pick<Host, 'place'>, { rpcUrl, network }: ShownConfig): string | undefined =>
  typeof rpcUrl === 'string' ? rpcUrl : place.wallet?.networks?.[`eip155:${requireChain(String(network))}`]?.rpcUrl

/** The contract of a wallet's dollars: its own, else the deployment's, else the one that is known. */
export const assetOf = ({ place }: Pick<Host, 'place'>, { asset, network }: ShownConfig): string | undefined => {
  if (typeof asset === 'string') return asset
  const chain = requireChain(String(network))
  return place.wallet?.networks?.[`eip155:${chain}`]?.asset ?? knownDollars(chain)
}

/** Reaches the network of a wallet. */
export const chainOf =
  (host: Pick<Host, 'call' | 'place' | 'signal'>) =>
  (config: ShownConfig): WalletChain =>
    new WalletChain(
      endpointOf(host, config) ?? refuse('unprocessable', NO_ENDPOINT),
      async () => (await host.call('kernel.listeners')).listeners,
      host.signal,
    )

const NO_ENDPOINT = 'config.rpcUrl: expected the endpoint of the network, for the deployment names none for it'

/** Wallets that turns pay with. */
export const walletKind = (host: WalletHost): KindHandler => {
  const chainFor = chainOf(host)
  const placeOf = (config: ShownConfig): string =>
    `${String(config.address)} ${requireChain(String(config.network))} ${assetOf(host, config)}`.toLowerCase()
  const held = async ({ config }: Pick<OpenEntry, 'config'>): Promise<{ micros: bigint; name: string }> => {
    const chain = chainFor(config)
    const asset = assetOf(host, config) as Address
    const { decimals, name } = await chain.currency(asset, requireChain(String(config.network)))
    return { micros: microsOfUnits(await chain.balance(asset, config.address as Address), decimals), name }
  }
  const lastUse = (id: string): Promise<LastUse | undefined> => host.store.get(LAST + id)
  /** Refuses to lose the key to money. */
  const assertEmpty = async (id: string, { micros: before, config }: LastUse, what: string): Promise<void> => {
    const found = await held({ config }).then(
      ({ micros }) => micros,
      () => BigInt(before),
    )
    if (found >= DUST)
      refuse(
        'conflict',
        `the wallet ${id} holds $${dollarsOf(found)}, which ${what} would lose: `
          + 'send it elsewhere first, with its key, which POST /secrets/reveal shows the owner',
      )
  }
  const keep = async ({ id, config }: OpenEntry, micros: bigint): Promise<void> => {
    const last: LastUse = { micros: micros.toString(), config: { ...config, asset: assetOf(host, config)! } }
    await host.store.set(LAST + id, last)
  }
  /** What wallets held when they were connected, until that is recorded. */
  const connected = new Map<string, bigint>()
  return {
    kind: 'wallet',
    secretFields: () => ['key'],
    mainSecret: () => 'key',
    keptSecrets: ['key'],
    claims: async id => (await lastUse(id)) !== undefined,
    label: () => undefined,
    complete: async (entry, before) => {
      // Few sandboxes pay, so the library is loaded on demand.
      const { addressOfKey, newPrivateKey } = await import('./signing.js')
      const key = entry.secrets.key ?? newPrivateKey()
      const address = addressOfKey(key)
      if (address === undefined) return refuse('invalid', 'config.key: expected a private key of 64 hexadecimal digits')
      const named = entry.config.address
      if (named !== undefined && named !== before?.address && String(named).toLowerCase() !== address.toLowerCase())
        refuse('invalid', `config.address: expected ${address}, the address of its key, or none`)
      const config = { ...entry.config, address }
      const last = await lastUse(entry.id)
      if (last && placeOf(last.config) !== placeOf(config))
        await assertEmpty(entry.id, last, last.config.address === address ? 'another network' : 'another key')
      return { config, secrets: { key } }
    },
    check: async ({ config }) => {
      requireChain(String(config.network ?? ''))
      walletLimits(config)
      if (config.rpcUrl !== undefined && isOpenOnTheWay(webAddress(String(config.rpcUrl))))
        refuse('invalid', 'config.rpcUrl: expected https, for what the network says could be changed on the way')
      if (endpointOf(host, config) === undefined) refuse('unprocessable', NO_ENDPOINT)
      const asset = assetOf(host, config)
      if (asset === undefined)
        refuse(
          'unprocessable',
          'config.asset: expected the contract of the dollars, for those of this network are not known',
        )
      const { checkedAddress } = await import('./signing.js')
      if (checkedAddress(asset!) === undefined)
        refuse('invalid', 'config.asset: expected an address such as 0x…, found one whose checksum is wrong')
    },
    apply: async (entry, report) => {
      const { config } = entry
      const expected = requireChain(String(config.network))
      const found = await chainFor(config).id()
      if (found !== expected)
        refuse(
          'dependency',
          `the endpoint is of the chain ${found}: expected ${expected}, that of ${String(config.network)}`,
        )
      const { micros, name } = await held(entry)
      connected.set(entry.id, micros)
      const { perPayment, perDay, unasked } = walletLimits(config)
      report(`its address is ${String(config.address)}: it holds $${dollarsOf(micros)} of ${name}`)
      report(
        `agents pay at most $${dollarsOf(perPayment)} at once and $${dollarsOf(perDay)} a day, `
          + (unasked > 0n ? `below $${dollarsOf(unasked)} without a question` : 'each after your yes'),
      )
      return activeStatus()
    },
    recorded: async entry => {
      await keep(entry, connected.get(entry.id) ?? 0n)
      connected.delete(entry.id)
    },
    probe: async entry => {
      try {
        const { micros, name } = await held(entry)
        await keep(entry, micros)
        const detail = `it holds $${dollarsOf(micros)} of ${name}; its address is ${String(entry.config.address)}`
        return { ...activeStatus(), detail }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return failingStatus(error.message, 'unreachable')
      }
    },
    release: async id => {
      const last = await lastUse(id)
      if (last) await assertEmpty(id, last, 'removing it')
    },
    forget: id => host.store.delete(LAST + id),
    rename: async (id, to) => {
      const last = await lastUse(id)
      if (last) await host.store.set(LAST + to, last)
      await host.store.delete(LAST + id)
    },
  }
}
