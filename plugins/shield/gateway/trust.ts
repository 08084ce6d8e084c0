import type { ProviderTrust, ShieldPolicy, ShieldProvider } from '../contract.js'

/** A provider that a request goes to. */
export interface RequestedProvider {
  readonly provider: string
  readonly account?: string | undefined
  /** This machine runs the model. */
  readonly local: boolean
}

/** What a provider gets under a policy, and why. */
export interface DecidedTrust {
  readonly trust: ProviderTrust
  readonly why: ShieldProvider['why']
}

/** Decides what a provider gets: by its account, by its name, by where it runs, else by the default. */
export const trustUnder = (
  { providers, defaultTrust }: ShieldPolicy,
  { provider, account, local }: RequestedProvider,
): DecidedTrust => {
  const names = [...(account === undefined ? [] : [`${provider}/${account}`]), provider]
  const named = names.find(name => Object.hasOwn(providers, name))
  if (named !== undefined) return { trust: providers[named]!, why: 'policy' }
  return local ? { trust: 'trusted', why: 'local' } : { trust: defaultTrust, why: 'default' }
}
