import type { Ok } from '../../../sdk/types.js'
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

/** What extensions are for automations. */
export interface ListenerServices {
  /** Lists the listeners and templates of all extensions that may run. */
  'extensions.automations'(): ContributedAutomations
  /** Gives a reply to the extension that received the message; nothing where its backend takes none. */
  'extensions.deliver'(input: { provider: string; channelId: string; text: string }): Ok
}
