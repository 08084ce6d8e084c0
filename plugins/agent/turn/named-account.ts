import { refuse } from '../../../sdk/index.js'
import type { ProviderAdapter } from '../providers/adapter.js'

/** Refuses an account that is not connected at a provider. */
export const assertAccount = async (adapter: ProviderAdapter, account: string | undefined): Promise<void> => {
  if (account === undefined || (await adapter.holds?.(account))) return
  refuse('unprocessable', `account: ${adapter.label} has no account ${JSON.stringify(account.slice(0, 120))}`)
}
