import type { ProviderRefusal } from '../contract.js'
import type { ErrorCode } from '../turn/frames/frames.js'

const KINDS: { readonly [code in ErrorCode]?: ProviderRefusal['kind'] } = {
  rate_limit: 'limit',
  'trial-exhausted': 'limit',
  reauth: 'auth',
  'token-refused': 'auth',
  'not-entitled': 'entitlement',
  'subscription-required': 'entitlement',
}

/** How a provider refused a turn that ended with this code; undefined: it did not. */
export const refusalKind = (code: ErrorCode | undefined): ProviderRefusal['kind'] | undefined => code && KINDS[code]
