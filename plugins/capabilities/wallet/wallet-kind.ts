import { refuse, Refusal, type Host, type Store } from '../../../sdk/index.js'
import { webAddress } from '../../../sdk/node/network/outbound.js'
import type { Address } from 'viem'
import type { ShownConfig } from '../records/contract.js'
import { activeStatus, failingStatus, type KindHandler, type OpenEntry } from '../records/kinds.js'
import { dollarsOf, microsOfUnits } from './amounts.js'
import { WalletChain } from './chain.js'
import { walletLimits } from './limits.js'
import { knownDollars, requireChain } from './networks.js'
import { addressOfKey, newPrivateKey } from './signing.js'

/** Less than a cent may be lost with a wallet. */
const DUST = 10_000n
const BALANCE = 'wallet-balance/'
const FIELDS = [
  ...['network', 'rpcUrl', 'asset', 'address', 'key'],
  ...['perPaymentMaxUsd', 'autoApproveUnderUsd', 'dailyCapUsd', 'allow', 'deny'],
]

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
  const held = async ({ config }: Pick<OpenEntry, 'config'>): Promise<{ micros: bigint; name: string }> => {
    const chain = chainFor(config)
    const asset = assetOf(host, config) as Address
    const { decimals, name } = await chain.currency(asset, requireChain(String(config.network)))
    return { micros: microsOfUnits(await chain.balance(asset, config.address as Address), decimals), name }
  }
  /** Refuses to lose the key to money. */
  const assertEmpty = async (id: string, config: ShownConfig, what: string): Promise<void> => {
    const found = await held({ config }).then(
      ({ micros }) => micros,
      async () => BigInt((await host.store.get<string>(BALANCE + id)) ?? '0'),
    )
    if (found >= DUST)
      refuse(
        'conflict',
        `the wallet ${id} holds $${dollarsOf(found)}, which ${what} would lose: `
          + 'send it elsewhere first, with its key, which POST /secrets/reveal shows the owner',
      )
  }
  const probed = async (entry: OpenEntry): Promise<{ micros: bigint; name: string }> => {
    const found = await held(entry)
    await host.store.set(BALANCE + entry.id, found.micros.toString())
    return found
  }
  return {
    kind: 'wallet',
    secretFields: () => ['key'],
    mainSecret: () => 'key',
    keptSecrets: ['key'],
    label: () => undefined,
    complete: async (entry, before) => {
      const key = entry.secrets.key ?? (await newPrivateKey())
      const address = await addressOfKey(key)
      if (address === undefined) return refuse('invalid', 'config.key: expected a private key of 64 hexadecimal digits')
      const named = entry.config.address
      if (named !== undefined && named !== before?.address && String(named).toLowerCase() !== address.toLowerCase())
        refuse('invalid', `config.address: expected ${address}, the address of its key, or none`)
      if (before?.address !== undefined && before.address !== address)
        await assertEmpty(entry.id, before, 'another key')
      return { config: { ...entry.config, address }, secrets: { key } }
    },
    check: async ({ config }) => {
      const other = Object.keys(config).find(field => !FIELDS.includes(field))
      if (other !== undefined)
        refuse('invalid', `config.${other}: expected only ${FIELDS.join(', ')} for a connection of kind wallet`)
      requireChain(String(config.network ?? ''))
      walletLimits(config)
      if (config.rpcUrl !== undefined) webAddress(String(config.rpcUrl))
      if (endpointOf(host, config) === undefined) refuse('unprocessable', NO_ENDPOINT)
      const asset = assetOf(host, config)
      if (asset === undefined)
        refuse(
          'unprocessable',
          'config.asset: expected the contract of the dollars, for those of this network are not known',
        )
      if (!/^0x[0-9a-fA-F]{40}$/.test(asset!)) refuse('invalid', 'config.asset: expected an address such as 0x…')
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
      const { micros, name } = await probed(entry)
      const { perPayment, perDay, unasked } = walletLimits(config)
      report(`its address is ${String(config.address)}: it holds $${dollarsOf(micros)} of ${name}`)
      report(
        `agents pay at most $${dollarsOf(perPayment)} at once and $${dollarsOf(perDay)} a day, `
          + (unasked > 0n ? `below $${dollarsOf(unasked)} without a question` : 'each after your yes'),
      )
      return activeStatus()
    },
    probe: async entry => {
      try {
        const { micros, name } = await probed(entry)
        return { ...activeStatus(), detail: `it holds $${dollarsOf(micros)} of ${name}` }
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        return failingStatus(error.message, 'unreachable')
      }
    },
    release: (id, config) => assertEmpty(id, config, 'removing it'),
    forget: id => host.store.delete(BALANCE + id),
    rename: async (id, to) => {
      const balance = await host.store.get<string>(BALANCE + id)
      if (balance !== undefined) await host.store.set(BALANCE + to, balance)
      await host.store.delete(BALANCE + id)
    },
  }
}
