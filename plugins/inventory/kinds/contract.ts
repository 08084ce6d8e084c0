import type { Stream } from '../../../sdk/contract.js'
import type { Ok } from '../../../sdk/types.js'
import type { CapabilityStatus, KindEntry, KindStep } from '../../capabilities/contract.js'

/** A connection whose state is asked for. */
interface AskedConnection {
  id: string
  config: KindEntry['config']
}

/** What serves kinds of connections to group capabilities; `KindCalls` there says what each call does. */
export interface InventoryKindCalls {
  /** Refuses nothing: the card has no fields. */
  'inventory.devops.check'(input: KindEntry): Ok
  /** Makes the repositories of the deployment configuration that are not there. */
  'inventory.devops.apply'(input: KindEntry): Stream<KindStep>
  /** Says whether both repositories are there. */
  'inventory.devops.status'(input: AskedConnection): CapabilityStatus
  /** Refuses an id that no repository can have. */
  'inventory.monorepo.check'(input: KindEntry): Ok
  /** Makes a repository of packages with the id as its name. */
  'inventory.monorepo.apply'(input: KindEntry): Stream<KindStep>
  /** Says whether the repository is there. */
  'inventory.monorepo.status'(input: AskedConnection): CapabilityStatus
  /** Refuses what could not be an entry of the inventory. */
  'inventory.integration.check'(input: KindEntry): Ok
  /** Writes the entry of the inventory. */
  'inventory.integration.apply'(input: KindEntry): Stream<KindStep>
  /** Says whether the entry is there, and its secrets stored. */
  'inventory.integration.status'(input: AskedConnection): CapabilityStatus
  /** Takes the entry out; refuses one that other entries name. */
  'inventory.integration.release'(input: { id: string }): Ok
  /** Refuses what could not be a service of the inventory. */
  'inventory.service.check'(input: KindEntry): Ok
  /** Writes the entry of the inventory, then applies the deployment and says what it does. */
  'inventory.service.apply'(input: KindEntry): Stream<KindStep>
  /** Says whether the service is declared, and ran when it was recorded last. */
  'inventory.service.status'(input: AskedConnection): CapabilityStatus
  /** Takes the entry out; what runs goes with the next apply. */
  'inventory.service.release'(input: { id: string }): Ok
  /** Refuses: repositories stay. */
  'inventory.keep'(input: { id: string }): Ok
  /** Nothing is kept beside the record. */
  'inventory.forget'(input: { id: string }): Ok
  /** Refuses: the id is the name of the repository or the entry. */
  'inventory.rename'(input: { id: string; to: string }): Ok
}
