import type { SafetyRule } from '../../../../safety/contract.js'
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

/** What a rule may be about. */
export const TARGET_CHOICES: readonly (readonly [SafetyRule['target'], string])[] = [
  ['command', 'Commands'],
  ['script', 'Scripts'],
  ['tool', 'Tools'],
  ['path', 'Paths'],
  ['host', 'Hosts'],
  ['action', 'Sends and posts'],
]

/** Yes, no, or either: what must hold of a turn. */
export type EitherChoice = readonly [choice: '' | 'yes' | 'no', label: string]

/** Whether a person must be at the conversation. */
export const UNATTENDED_CHOICES: readonly EitherChoice[] = [
  ['', 'Watched or not'],
  ['yes', 'While nobody watches'],
  ['no', 'While a person watches'],
]

/** Whether the turn must have read content from outside. */
export const OUTSIDE_CHOICES: readonly EitherChoice[] = [
  ['', 'With or without'],
  ['yes', 'After content from outside'],
  ['no', 'Without content from outside'],
]
