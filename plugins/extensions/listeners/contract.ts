import typia from 'typia'
import type { Stream } from '../../../sdk/contract.js'
import type { ListenerConnection, ListenerMessage, ListenerStatus } from '../../../sdk/node/extension/protocol.js'
import type { Ok } from '../../../sdk/types.js'
import type { SubtreeHead, SubtreePiece, SubtreeRequest } from '../backend/contract.js'
import type { ExtensionListener, ExtensionTemplate } from '../manifest/manifest.js'

/** The listener of an extension that may run. */
export interface ContributedListener {
  extension: string
  listener: ExtensionListener
}
/** A ready-made automation of an extension that may run. */
export interface ContributedTemplate {
  extension: string
  template: ExtensionTemplate
}
/** What extensions contribute to automations. */
export interface ContributedAutomations {
  listeners: ContributedListener[]
  templates: ContributedTemplate[]
}

/** What extensions are for automations, and the routes of their listeners. */
export interface ListenerServices {
  /** Answers one request of a process of an extension below `/listeners/`. */
  'extensions.listen'(input: SubtreeRequest): Stream<SubtreeHead | SubtreePiece>
  /** Lists the listeners and templates of all extensions that may run. */
  'extensions.automations'(): ContributedAutomations
  /** Gives a reply to the extension that received the message; nothing where its backend takes none. */
  'extensions.deliver'(input: { provider: string; channelId: string; text: string }): Ok
  /** How the connections of all listeners stand, as their extensions reported it within 90 s. */
  'extensions.listening'(): { connections: ListenerConnection[] }
}

/** Checks a message of a process. */
export const readListenerMessage = typia.misc.createValidatePrune<ListenerMessage>()
/** Checks the status that a process reports. */
export const readListenerStatus = typia.misc.createValidatePrune<ListenerStatus>()
/** Checks the failure that a process reports. */
export const readListenerFailure = typia.misc.createValidatePrune<{ detail: string }>()
