import type { Text } from '../../../sdk/types.js'

/** The type of a setting's value. */
export type SettingType = 'boolean' | 'number' | 'string' | 'enum' | 'list' | 'object'
/** A base of the instructions that is built in. */
export type BuiltinBase = 'core' | 'vendor'

/** A setting as people and programs enter it. */
export interface SettingField {
  key: string
  type: SettingType
  title: string
  description: string
  default: unknown
  /** The values of an `enum`. */
  values?: string[]
  /** The least and the greatest number; of a list the number of entries, of a string that of characters. */
  min?: number
  max?: number
  /** When a change takes effect. */
  applies: 'next-turn' | 'next-conversation' | 'now'
  /** Its value is not the default. */
  changed: boolean
}
/** What shortens the output of commands before a model reads it. */
export interface OutputCleaner {
  id: string
  label: string
  commands: string[]
}

export interface FieldCalls {
  /**
   * List every setting with its type, default, range and meaning, and when a change takes effect.
   *
   * A setting that is not listed does nothing here and is refused. `cleaners` are what `outputCleaners` names; one
   * without commands shortens the output of all.
   */
  'GET /settings/schema'(): { revision: Text; fields: SettingField[]; cleaners: OutputCleaner[] }

  /**
   * Read the text of a built-in base of the instructions, and the version that it is of.
   *
   * Agent programs do not show the text that they bring, so `vendor` is what a turn of the sandbox's own loop in that
   * mode starts from: `core`.
   *
   * - 503: this sandbox runs no turns
   */
  'GET /settings/system-prompt/{base}'(input: { base: BuiltinBase }): { text: string; version: string }
}
