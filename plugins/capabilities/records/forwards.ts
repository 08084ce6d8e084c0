import type { CapabilityStatus, ShownConfig } from './contract.js'

/** A kind that another group serves: it checks, connects and stores the connection with `capabilities.put` itself. */
export interface ForwardedKind {
  apply(given: {
    id: string
    kind: string
    config: ShownConfig
  }): Promise<{ status: CapabilityStatus; log: readonly string[] }>
  status(id: string): Promise<CapabilityStatus>
}
