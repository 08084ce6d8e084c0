import { refuse } from '../../../sdk/index.js'

/** A network whose dollars are known. */
interface DollarNetwork {
  /** Its name in the first version of the protocol. */
  readonly alias: string
  readonly chain: number
  readonly name: string
  /** The contract of USD Coin there. */
  readonly asset: string
}

/** The networks with the contracts that their issuer names. */
export const NETWORKS: readonly DollarNetwork[] = [
  { alias: 'base', chain: 8453, name: 'Base', asset: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
  { alias: 'base-sepolia', chain: 84532, name: 'Base Sepolia', asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' },
  { alias: 'ethereum', chain: 1, name: 'Ethereum', asset: '0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48' },
  { alias: 'avalanche', chain: 43114, name: 'Avalanche', asset: '0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E' },
  { alias: 'polygon', chain: 137, name: 'Polygon', asset: '0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359' },
  { alias: 'arbitrum', chain: 42161, name: 'Arbitrum', asset: '0xaf88d065e77c8cC2239327C5EDb3A432268e5831' },
]

const FORM = `eip155: and the number of a chain, or one of ${NETWORKS.map(({ alias }) => alias).join(', ')}`

/** The number of a network's chain; undefined: it is none that a wallet pays on. */
export const chainIn = (network: string): number | undefined => {
  const found = NETWORKS.find(({ alias }) => alias === network.toLowerCase())
  if (found) return found.chain
  const number = /^eip155:([1-9][0-9]{0,14})$/.exec(network)?.[1]
  return number === undefined ? undefined : Number(number)
}

/** The number of a configured network's chain. */
export const requireChain = (network: string): number =>
  chainIn(network) ?? refuse('invalid', `config.network: expected ${FORM}, found ${JSON.stringify(network)}`)

/** The decimals of USD Coin, the same on each of these networks. */
export const KNOWN_DECIMALS = 6

/** The contract of dollars that is known on a chain. */
export const knownDollars = (chain: number): string | undefined => NETWORKS.find(found => found.chain === chain)?.asset

/** Whether a contract is that of dollars that are known. */
export const isKnownDollars = (chain: number, asset: string): boolean =>
  knownDollars(chain)?.toLowerCase() === asset.toLowerCase()
