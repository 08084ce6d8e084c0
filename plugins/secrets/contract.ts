import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, Ok, Positive } from '../../sdk/types.js'
import type { CiCalls, CiState } from './ci/contract.js'
import type { SecretKey } from './vault/key.js'

export type * from './ci/contract.js'
export type * from './vault/key.js'

/** A host that a value may go to, or with `*.` before it every host below it. */
export type SecretHost = string
  & tags.MaxLength<253>
  & tags.Pattern<'^([*][.])?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$'>
/** A text that is never repeated in an answer. */
type Hidden = string & tags.Format<'password'>

/** Where a credential comes from. */
export type SecretKind = 'env' | 'generated' | 'capability' | 'provider'
/** Something that needs a secret. */
export interface SecretRequirement {
  resourceId: string
  /** Such as `process`, `automation` or `extension`. */
  type: string
}
/** A key that something needs, whether it is stored or not. */
export interface RequiredSecret extends SecretRequirement {
  key: string
}
/** When and where a value left last. */
export interface LastSecretUse {
  at: Millis
  lane: SecretLane
  detail?: string
}
/** One credential that the sandbox holds or is asked for; never its value. */
export interface SecretEntry {
  key: string
  kind: SecretKind
  label?: string
  /** `missing`: something requires it and nothing is stored. */
  status: 'missing' | 'set' | 'connected'
  requiredBy: SecretRequirement[]
  /** Where the value is kept, in words. */
  storedAt: string
  revealable: boolean
  /** The hosts it may go to; left out: any. */
  hosts?: string[]
  /** The personas whose turns may use it; left out: all. */
  personas?: string[]
  /** Of a key that CI services were given (`POST /secrets/ci`); left out while the store is locked. */
  ci?: CiState
  lastUse?: LastSecretUse
}
/** One value that left the store: never the value. */
export interface SecretUse {
  id: string
  at: Millis
  name: string
  lane: SecretLane
  /** What for: the head of the line with references, or the page's host. */
  detail: string
  conversationId?: string
  by: string
}
/** How an encrypted store is opened. */
export type VaultUnlock = 'keyring' | 'file' | 'passphrase'
/** An encrypted store of the daemon's own. */
export interface VaultChoice {
  kind: 'vault'
  /**
   * `file`: the key is a file in the daemon's data folder; `keyring`: it is in the system's key ring; `passphrase`: it
   * is asked for after every start of the daemon.
   */
  unlock: VaultUnlock
  /** 12 to 1024 characters; only with `passphrase`. */
  passphrase?: Hidden
}
/** A `.env` file of the workspace that git ignores, for tools that read one themselves. */
export interface DotenvChoice {
  kind: 'dotenv'
  path: string & tags.MinLength<1> & tags.MaxLength<400>
}
/** Where secrets are to be kept. */
export type StoreConfig = VaultChoice | DotenvChoice
/** One place where secrets could be kept on this machine. */
export interface StoreOption {
  kind: 'vault' | 'dotenv'
  unlock?: VaultUnlock
  available: boolean
  /** Why it is not available. */
  reason?: string
}
/** Where secrets are kept, and whether the place is open. */
export interface StoreState {
  configured: boolean
  kind?: 'vault' | 'dotenv'
  unlock?: VaultUnlock
  path?: string
  locked: boolean
  /** Why it is locked, and what opens it. */
  reason?: string
  keys: Count
  choices: StoreOption[]
}
/** A value was stored. */
export interface StoredAnswer {
  ok: true
  /**
   * It was the first one, and nobody had chosen a place: an encrypted store was made, unlocked by a key file of this
   * machine. `POST /secrets/store` changes that.
   */
  store?: 'made'
}
/** A value is not stored any more. */
export interface SecretRemoved {
  ok: true
  /** False: none was stored under this key. */
  removed: boolean
}
/** A value was made and stored. */
export interface GeneratedAnswer extends StoredAnswer {
  rotated: boolean
  publicKey?: string
}
/** What an import stored, by names. */
export interface ImportAnswer extends Pick<StoredAnswer, 'store'> {
  added: string[]
  replaced: string[]
  skipped: SkippedSecret[]
}
/** Characters drawn at random. */
export interface RandomRecipe {
  kind: 'random'
  /** 32 when left out. */
  length?: number & tags.Type<'uint32'> & tags.Minimum<8> & tags.Maximum<512>
  /** `base64url` when left out. */
  alphabet?: 'base64url' | 'hex' | 'alnum' | 'symbols'
}
/** Pronounceable words of five letters, 16 bits each, with hyphens between them. */
export interface WordsRecipe {
  kind: 'words'
  /** 6 when left out. */
  words?: number & tags.Type<'uint32'> & tags.Minimum<4> & tags.Maximum<16>
}
/** An ed25519 key pair in the format of OpenSSH. */
export interface SshKeyRecipe {
  kind: 'ssh-key'
  comment?: string & tags.MaxLength<100> & tags.Pattern<'^[^\\u0000-\\u001f\\u007f]*$'>
}
/** How a value is made. */
export type GenerateRecipe = RandomRecipe | WordsRecipe | SshKeyRecipe
/** A name of a `.env` text that was not stored, and why. */
export interface SkippedSecret {
  key: string
  reason: 'exists' | 'empty' | 'bad-name' | 'not-chosen'
}

/** Where a value goes when it leaves: into a command, a program text, a browser, or to a git server. */
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
/** A value bound to hosts, as a turn holds it: a proxy puts the value in place of it. */
export interface BoundSecret {
  name: string
  hosts: string[]
  placeholder: string
}
/** A text with references, and who uses them. */
export interface SecretText extends SecretUser {
  text: string
  /**
   * Where a proxy puts values in that are bound to hosts: what their placeholders are made of, for this turn alone.
   * Left out: such values are refused.
   */
  placeholders?: string
}
/** A request to a host, into which a value is to be put on its way. */
export interface SecretAtHost extends SecretUser {
  name: string
  host: string
  /** The use of this value by this user was noted already. */
  noted?: boolean
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
  /** What stands in the text for values that are bound to hosts. */
  bound?: BoundSecret[]
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

export interface SecretsCalls extends SecretServices, CiCalls {
  /**
   * Store or replace one value; it is durable before the answer, and used and masked from then on.
   *
   * `__vaulted__` as the value keeps the one that is stored, and only the binding changes. `hosts` or `personas` left
   * out stay as they are, `[]` removes the binding. A value with `hosts` enters no turn: a command gets a placeholder,
   * and the proxy of the conversation's network puts the value into headers, and into JSON, form and text bodies of at
   * most 1 MiB, of requests to these hosts, over TLS or to hosts that `networkAllow` names.
   *
   * Several lines are allowed. The replaced value stays masked for 24 hours. The first value makes an encrypted store,
   * unlocked by a key file of this machine, where nobody chose a place with `POST /secrets/store`.
   *
   * - 400: a bad key or host, an empty value, or one with a NUL character
   * - 404: `__vaulted__`, and no such key
   * - 409: no store can be made, since the data folder cannot be written to, or 1000 keys are stored
   * - 413: the value has more than 64 KiB
   * - 503: the store is locked
   */
  'POST /secrets'(input: {
    key: SecretKey
    value: Hidden
    hosts?: SecretHost[] & tags.MaxItems<50>
    personas?: (string & tags.MinLength<1> & tags.MaxLength<100>)[] & tags.MaxItems<50>
  }): StoredAnswer

  /** List the names of stored and generated values, sorted; also while the store is locked. */
  'GET /secrets'(): { keys: string[] }

  /**
   * Destroy one value; its use log stays. A key that is not stored is removed already, and the answer says so.
   *
   * - 400: no key
   * - 503: the store is locked
   */
  'DELETE /secrets/{key}'(input: { key: SecretKey }): SecretRemoved

  /**
   * List every credential that the sandbox holds or is asked for, with who requires it and its last use.
   *
   * Stored and generated keys, and one entry for each connection with a secret. It answers also without a store, and
   * while it is locked.
   */
  'GET /secrets/inventory'(): { entries: SecretEntry[] }

  /**
   * Read one value; the only route that answers one.
   *
   * Stored and generated keys, and the secret fields of connections: `field` says which one, its first when left out.
   * The answer is not cached, and appears in no log.
   *
   * - 404: no such secret
   * - 409: the value is not for people
   * - 429: more than 20 in a minute
   * - 503: the store is locked
   */
  'POST /secrets/reveal'(input: {
    key: string & tags.MinLength<1> & tags.MaxLength<200>
    field?: string & tags.MinLength<1> & tags.MaxLength<60>
  }): { value: string }

  /** Say where secrets are kept, whether that place is open, and which choices this machine offers. */
  'GET /secrets/store'(): StoreState

  /**
   * Choose where secrets are kept: set the place up, open it, or move every value to another one.
   *
   * Without a choice the first value makes an encrypted store that is unlocked by a key file.
   *
   * A move leaves the old place untouched until every value was read back from the new one; then the old one is
   * overwritten and removed. The same choice again is a success that moves nothing. Into a `.env` file only values move
   * whose names it does not give another value.
   *
   * - 400: a passphrase is missing, too short or not asked for
   * - 403: the wrong passphrase
   * - 409: the `.env` file has other values under names that are stored
   * - 422: the `.env` path is tracked or not ignored by git, leaves the workspace, or holds no `.env` text
   * - 429: ten wrong passphrases in 10 minutes
   * - 501: there is no key ring program; the message says how to install one
   * - 424: the key ring refused
   * - 503: the store is locked: open it first
   */
  'POST /secrets/store'(input: StoreConfig): { ok: true; moved: Count }

  /**
   * Make a value that nobody has seen, and store it.
   *
   * A key that is stored is rotated only with `replace`; the replaced value stays masked for 24 hours. Of a key pair
   * the public half is in the answer.
   *
   * - 409: the key is stored and `replace` is not given, no store can be made, or 1000 keys are stored
   * - 503: the store is locked
   */
  'POST /secrets/generate'(input: { key: SecretKey; recipe?: GenerateRecipe; replace?: boolean }): GeneratedAnswer

  /**
   * Store the values of a `.env` text or of such a file of the workspace: all in one write, or none.
   *
   * Comments, `export`, single and double quotes and values of several lines are understood. What is stored already is
   * skipped without `replace`; `only` names the keys to take. The file stays as it is; the answer has names only.
   *
   * - 400: both or neither of `text` and `path`, or a line that cannot be read; the message has its number
   * - 404: no such file
   * - 409: no store can be made, or 1000 keys would be exceeded
   * - 413: the file has more than 1 MiB, or a value more than 64 KiB
   * - 503: the store is locked
   */
  'POST /secrets/import'(input: {
    text?: Hidden
    path?: string & tags.MinLength<1> & tags.MaxLength<400>
    replace?: boolean
    only?: SecretKey[] & tags.MaxItems<1000>
  }): ImportAnswer

  /**
   * List the uses of values, newest first: 180 days or the last 20,000.
   *
   * - 400: `before` is no cursor
   */
  'GET /secrets/uses'(input: {
    /** 100 when left out, at most 500. */
    limit?: Positive
    /** The `next` of the page before. */
    before?: string
    name?: string & tags.MaxLength<200>
    conversationId?: string & tags.MaxLength<200>
    lane?: SecretLane
  }): { uses: SecretUse[]; next?: string }
}

/** What stored secrets are for other groups. */
export interface SecretServices {
  /** Puts values in place of the references of a text that leaves by another way than a shell. */
  'secrets.resolve'(input: SecretText): ResolvedText
  /** Puts values in place of the references of a shell line: they stand in variables and are never parsed. */
  'secrets.resolveCommand'(input: SecretText): ResolvedText
  /** Gives a value bound to hosts, to be put into a request to one of them; nothing for any other. */
  'secrets.atHost'(input: SecretAtHost): { value?: string }
  /**
   * Gives the value that a git server is told, or the private key for it: bound to its host and to no persona. One with
   * `GIT` in its name comes first, then one that names the host itself, then the first by name.
   */
  'secrets.forHost'(input: SecretUser & { host: string; form?: 'password' | 'key' }): { name?: string; value?: string }
  /** Gives every value that must be masked. Only for parts of the daemon that mask. */
  'secrets.values'(): MaskedValues
  /**
   * Gives the names that are stored, whether values can be read and stored now, whether there is a store already, and
   * whether a value is bound to hosts. Without a store the first value makes one.
   */
  'secrets.names'(): { names: string[]; open: boolean; made: boolean; bound: boolean }
  /** Reads a field of a capability or an account. */
  'secrets.get'(input: SecretField): { value?: string }
  /**
   * Stores a field of a capability or an account, durably; the first value makes the store. Refused with 409 where none
   * can be made, and 503 while locked.
   */
  'secrets.put'(input: SecretField & { value: string }): Ok
  /** Removes every field whose name begins with `<owner>/`, or one field. */
  'secrets.drop'(input: { name: string }): Ok
  /** Renames every field of an owner. */
  'secrets.move'(input: { from: string; to: string }): Ok
  /**
   * Makes a folder in memory for one process, with a file for each of these keys and fields (`<owner>/<field>`) that
   * is stored and bound to no hosts. Files are replaced when their value changes and removed with it, until
   * `secrets.unmount`. Called again for the same process, it changes which files are in the folder. Refused with 503
   * while locked, and where the machine has no folder in memory.
   */
  'secrets.mount'(input: { process: string; names: string[] & tags.MaxItems<1000> }): { folder: string }
  /** Removes the folder of a process with its files. */
  'secrets.unmount'(input: { process: string }): Ok
}

/** A secret was stored or replaced, or removed. */
export interface SecretsEvents {
  'secret.set': { key: string }
  'secret.removed': { key: string }
}

export const secrets: Contract<SecretsCalls> = {
  schema: () => typia.json.application<SecretsCalls>(),
  request: typia.misc.createValidatePrune<Requests<SecretsCalls>>(),
  reply: () => typia.createValidate<Replies<SecretsCalls>>(),
}
