import type { DetectorAction, ProviderTrust, ShieldPolicy, ShieldState } from '../../../../shield/contract.js'
import { askDaemon } from '../../data/api.js'
import { refetch } from '../../data/queries.js'
import type { ToneWord } from '../../ui/page.js'

/** The policy as it was read, and whether the person may change it. */
export interface PrivacyProps {
  readonly state: ShieldState
  readonly owns: boolean
}

/** Replaces the policy, unless somebody else changed it since it was read. */
export const savePrivacy = async (policy: ShieldPolicy, revision: string): Promise<void> => {
  await askDaemon('POST /shield', { policy, revision })
  refetch(new Set(['privacy']))
}

export const TRUST: { readonly [trust in ProviderTrust]: ToneWord } = {
  trusted: ['', 'Real values'],
  shielded: ['good', 'Tokens'],
  blocked: ['bad', 'Nothing'],
}

export const ACTION_CHOICES: readonly (readonly [DetectorAction, string])[] = [
  ['mask', 'Mask'],
  ['block', 'Refuse the request'],
  ['report', 'Count only'],
  ['off', 'Off'],
]

/** The lines of a text that say something. */
export const enteredLines = (text: string): string[] =>
  text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
