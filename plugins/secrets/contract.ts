import type { Ok } from '../../sdk/types.js'

/** Where a value goes when it leaves: into a command, a program text, or a browser. */
export type SecretLane = 'shell' | 'code' | 'browser'

/** Who uses a secret, for the record and for what they may use. */
export interface SecretUser {
  lane: SecretLane
  /** What for, in at most 80 characters, with references and never a value. */
  detail: string
  conversationId?: string
  run?: string
  /** The capabilities whose fields may be used beside plain keys; left out: all. */
  capabilities?: string[]
  /** The persona of the turn. */
  persona?: string
}
/** A text with references, and who uses them. */
export interface SecretText extends SecretUser {
  text: string
}
/** A text with values in place of its references; or the names nobody may resolve, with those that may be. */
export interface ResolvedText {
  text?: string
  /** Variables that the text of a shell line refers to; they hold the values. */
  env?: { [name: string]: string }
  /** Names that cannot be resolved. */
  unknown?: string[]
  /** The names that can be. */
  names?: string[]
  /** Why the text cannot be used at all, as a sentence. */
  refused?: string
}
/** A stored value that must not be shown, with the name that stands for it. */
export interface MaskedValue {
  name: string
  value: string
}
/** Every value that is masked, and a number that grows with every change. */
export interface MaskedValues {
  values: MaskedValue[]
  revision: number
}
/** A secret field of a capability, an extension or an account. */
export interface SecretField {
  /** `<owner>/<field>`, such as `github/token`. */
  name: string
}

/** What stored secrets are for other groups. */
export interface SecretServices {
  /** Puts values in place of the references of a text that leaves by another way than a shell. */
  'secrets.resolve'(input: SecretText): ResolvedText
  /** Puts values in place of the references of a shell line: they stand in variables and are never parsed. */
  'secrets.resolveCommand'(input: SecretText): ResolvedText
  /** Gives every value that must be masked. Only for parts of the daemon that mask. */
  'secrets.values'(): MaskedValues
  /** Gives the names that are stored, and whether there is a store that is open. */
  'secrets.names'(): { names: string[]; open: boolean }
  /** Reads a field of a capability or an account. */
  'secrets.get'(input: SecretField): { value?: string }
  /** Stores a field of a capability or an account, durably. Refused with 409 without a store and 503 while locked. */
  'secrets.put'(input: SecretField & { value: string }): Ok
  /** Removes every field whose name begins with `<owner>/`, or one field. */
  'secrets.drop'(input: { name: string }): Ok
  /** Renames every field of an owner. */
  'secrets.move'(input: { from: string; to: string }): Ok
}

/** A secret was stored or replaced, or removed. */
export interface SecretsEvents {
  'secret.set': { key: string }
  'secret.removed': { key: string }
}
