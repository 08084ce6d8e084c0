import type { SafetyPolicy, SafetyState } from '../../../../safety/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'

/** The policy as it was read, and whether the person may change it. */
export interface PolicyProps {
  readonly state: SafetyState
  readonly maintains: boolean
}

/** Replaces the policy, unless somebody else changed it since it was read. */
export const savePolicy = async (policy: SafetyPolicy, revision: string): Promise<void> => {
  await askDaemon('POST /safety', { policy, revision })
  refetch(new Set(['safety']))
}
