import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { InventoryKindCalls } from './kinds/contract.js'
import type { InventoryKind } from '../../sdk/node/deploy/kinds.js'

export type { InventoryKind, InventoryOption } from '../../sdk/node/deploy/kinds.js'

export type * from './kinds/contract.js'

/** How every other entry refers to an entry. */
export type EntryName = string & tags.MinLength<1> & tags.MaxLength<60> & tags.Pattern<'^[a-zA-Z_][a-zA-Z0-9_]*$'>
type DeclaredId = string & tags.MinLength<1> & tags.MaxLength<60>
/** The name of another entry, or nothing. */
type EntryNamed = string & tags.MaxLength<60>

/** Options that are not secret, at most 50. */
export interface InventoryValues {
  [option: string]: (string & tags.MaxLength<4096>) | number
}
/** Something one has, such as a machine that is reached over SSH. */
export interface InventoryBackend {
  kind: 'backend'
  provider: DeclaredId
  name: EntryName
  values: InventoryValues
}
/** A service one wants run. */
export interface InventoryService {
  kind: 'service'
  service: DeclaredId
  name: EntryName
  values: InventoryValues
  /** The name of a backend of provider `host`. */
  on: EntryNamed
  /** The name of the backend that makes it reachable from outside of the machine; empty: none. */
  expose: EntryNamed
}
/** An app of one's own to build and run. */
export interface InventoryApp {
  kind: 'app'
  name: EntryName
  values: InventoryValues
  /** The name of a backend of provider `host`. */
  on: EntryNamed
  /** The name of the backend that makes it reachable from outside of the machine; empty: none. */
  expose: EntryNamed
}
/** An entry of the deployment configuration. */
export type InventoryEntry = InventoryBackend | InventoryService | InventoryApp

/** A secret option of an entry. */
export interface EntrySecret {
  option: string
  /** The name under which the secret store has its value. */
  key: string
  /** Whether a value is stored. */
  set: boolean
}
/** What an entry is in a list, beside itself. */
export interface EntryFacts {
  /** Its secret options; empty for tokens. */
  secrets: EntrySecret[]
  /** The entries that name it in `on` or `expose`. */
  usedBy: string[]
}
/** An entry of a list. */
export type InventoryListed =
  | (InventoryBackend & EntryFacts)
  | (InventoryService & EntryFacts)
  | (InventoryApp & EntryFacts)
/** The entries of the deployment configuration. */
export interface InventoryList {
  /** False: there is no repository `intent` yet. */
  ready: boolean
  /** The workspace path of the file. */
  file?: string
  /** The last commit that changed the file, unless it has uncommitted edits. */
  commit?: string
  /** The file has uncommitted edits. */
  dirty: boolean
  /** In the order of the file. */
  entries: InventoryListed[]
}

/** The entries of the deployment configuration: machines one has, services and apps one wants run. */
export interface InventoryCalls extends InventoryKindCalls {
  /**
   * List the entries of the deployment configuration as its file has them now.
   *
   * Edits by hand show at once. Without a repository `intent` the list is empty and `ready` is false.
   *
   * - 422: the file is not JSON with comments, or its `inventory` is no list of entries; the message has line and
   *   column
   */
  'GET /inventory'(): InventoryList

  /** List what may be declared, and with which options. */
  'GET /inventory/kinds'(): { kinds: InventoryKind[]; version: string }

  /**
   * Add an entry, or replace the one with its name in place, and commit the file.
   *
   * Only what differs is written: comments, other keys and the form of the file stay. An entry that is there word for
   * word commits nothing. Secret options are stored among the secrets, under the names that the list has.
   *
   * - 404: the caller's areas do not hold the file
   * - 409: there is no repository `intent`, the file has uncommitted edits, or its repository is in the middle of an
   *   operation; another write holds the repository for 60 s, or a lock file of git is in the way for 10 s
   * - 413: the file would be larger than 1 MiB, or the disk is full
   * - 422: an unknown provider, service or option, a required option is missing, `values` has a secret option, `on` is
   *   no declared host, `expose` no backend that exposes, or the file or its git folder cannot be used
   * - 501: git is missing
   */
  'POST /inventory'(input: InventoryEntry): InventoryList

  /**
   * Take an entry out of the file, and commit it.
   *
   * A name that is not there commits nothing. What runs keeps running, and stored secrets stay.
   *
   * - 404: the caller's areas do not hold the file
   * - 409: other entries name it, there is no repository `intent`, the file has uncommitted edits, or its repository is
   *   in the middle of an operation; another write holds the repository for 60 s, or a lock file of git is in the way
   *   for 10 s
   * - 413: the disk is full
   * - 422: the file or its git folder cannot be used
   * - 501: git is missing
   */
  'DELETE /inventory/{name}'(input: { name: EntryName }): InventoryList
}

export const inventoryContract: Contract<InventoryCalls> = {
  schema: () => typia.json.application<InventoryCalls>(),
  request: typia.misc.createValidatePrune<Requests<InventoryCalls>>(),
  reply: () => typia.createValidate<Replies<InventoryCalls>>(),
}
