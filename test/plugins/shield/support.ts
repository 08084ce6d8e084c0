import { PhraseMatcher } from '../../../sdk/node/access/phrase-matcher.js'
import type { ShieldPolicy } from '../../../plugins/shield/contract.js'
import { findPersonalData, type DecidedPlace } from '../../../plugins/shield/detect/find-personal-data.js'
import { compiledShield, USUAL_SHIELD } from '../../../plugins/shield/policy/compiled-shield.js'

/** A policy in force that differs from the usual one. */
export const shieldPolicy = (more: Partial<ShieldPolicy> = {}): ShieldPolicy => ({
  ...structuredClone(USUAL_SHIELD),
  enabled: true,
  ...more,
})

/** What is found in a text under a policy. */
export const placesUnder = (text: string, more: Partial<ShieldPolicy> = {}): DecidedPlace[] => {
  const compiled = compiledShield(shieldPolicy(more))
  if ('expected' in compiled) throw new Error(`${compiled.path}: expected ${compiled.expected}`)
  return findPersonalData(text, { compiled, stored: new PhraseMatcher([]) })
}

/** The findings of a text, as `detector:what was found`. */
export const foundIn = (text: string, more: Partial<ShieldPolicy> = {}): string[] =>
  placesUnder(text, more).map(({ detector, start, end }) => `${detector}:${text.slice(start, end)}`)
