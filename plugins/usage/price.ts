import type { Host } from '../../sdk/index.js'
import type { TokenPrice } from '../endpoints/contract.js'
import type { UsageTurn } from './contract.js'

const MILLION = 1_000_000

/** What tokens are counted of a turn. */
type Tokens = Pick<UsageTurn, 'inputTokens' | 'outputTokens'>
  & Partial<Pick<UsageTurn, 'cacheReadTokens' | 'cacheCreationTokens'>>

/** Dollars for tokens at a price; a cache without a price of its own costs what other input costs. */
export const costOf = (price: TokenPrice, tokens: Tokens): number =>
  (tokens.inputTokens * price.input
    + tokens.outputTokens * price.output
    + (tokens.cacheReadTokens ?? 0) * (price.cacheRead ?? price.input)
    + (tokens.cacheCreationTokens ?? 0) * (price.cacheWrite ?? price.input))
  / MILLION

/** The price of a model, where somebody knows it. */
export const priceOf = async (
  host: Pick<Host, 'call' | 'serves' | 'log'>,
  provider: string,
  model: string | undefined,
): Promise<TokenPrice | undefined> => {
  if (model === undefined || !(await host.serves('definitions.price'))) return undefined
  try {
    return (await host.call('definitions.price', { provider, model })).price
  } catch (error) {
    // What was used is written down without its price rather than not at all.
    host.log.warn('the price of a model could not be read', { provider, model, error: String(error) })
    return undefined
  }
}
