import type { Host } from '../../sdk/index.js'
import type { StoredSecret, VaultContent, VaultHead } from './vault/vault.js'
import type { VaultKeys } from './vault/vault-keys.js'

/** What may be known of a stored value while the store is locked. */
export type KnownSecret = Omit<StoredSecret, 'value'>
/** A store that is open. */
export interface OpenStore {
  readonly head: VaultHead
  readonly key: Buffer
  readonly content: VaultContent
}
/** The names of values that were stored, replaced or bound anew, and of those that are gone. */
export interface StoreChange {
  readonly set: readonly string[]
  readonly removed: readonly string[]
}
/** What a store is built from. */
export interface StoreDeps {
  readonly folder: string
  readonly workspace: string
  readonly files: Pick<Host['files'], 'read' | 'write' | 'remove'>
  readonly keys: VaultKeys
  /** Called after every change of what is stored, and when the store opens; waited for. */
  readonly changed: (change: StoreChange) => Promise<void>
}
