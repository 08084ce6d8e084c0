import type { SettingVerdict } from '../../../../settings/contract.js'
import type { ToneWord } from '../../ui/page.js'

/** What is said of a verdict. */
export const VERDICTS: { readonly [verdict in SettingVerdict]: ToneWord } = {
  allow: ['good', 'Allowed'],
  hold: ['warn', 'Held'],
  deny: ['bad', 'Denied'],
}

/** The verdicts as choices of a form. */
export const VERDICT_CHOICES: readonly (readonly [SettingVerdict, string])[] = [
  ['allow', 'Allow'],
  ['hold', 'Hold for a person'],
  ['deny', 'Deny'],
]
