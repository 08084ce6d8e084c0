import { refuse, type Host, ignored } from '../../../sdk/index.js'
import { deny } from '../../../sdk/node/extension/denied.js'
import { assertOwnMessage } from '../../../sdk/node/extension/listener-messages.js'
import type {
  DispatchFrame,
  ListenerMessage,
  ListenerState,
  ListenerStatus,
  OfferedTemplate,
  TemplateUse,
} from '../../../sdk/node/extension/protocol.js'
import { record } from '../../../sdk/node/record/record.js'
import type { ExtensionBackend } from '../backend/backend.js'
import type { HostHandlers } from '../backend/operations.js'
import { cardsNamed, configWithReferences, connectionsFrom } from '../connections/connections.js'
import type { LoadedExtension } from '../listing/catalog.js'
import type { ExtensionListener } from '../manifest/manifest.js'
import type { ContributedAutomations } from './contract.js'

/** The dependencies of listeners. */
export interface ListenersDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'on'>
  /** The extensions that may run. */
  readonly running: () => readonly Pick<LoadedExtension, 'id' | 'manifest'>[]
}

const STATUS_MS = 90_000
const MOST_OFFERED = 50

/** Messages from outside that extensions receive: to automations, and their replies back. */
export class Listeners {
  readonly #deps: ListenersDeps
  readonly #backends = new Map<string, ExtensionBackend>()
  /** The backends that take replies. */
  readonly #takers = new Set<string>()
  readonly #offered = new Map<string, Map<string, OfferedTemplate>>()
  readonly #statuses = new Map<string, { readonly at: number; readonly snapshot: ListenerStatus }>()

  constructor(deps: ListenersDeps) {
    this.#deps = deps
    const tell = (backend: ExtensionBackend) =>
      void backend.process?.link.request('listening', {}).catch(ignored('its process has ended'))
    deps.host.on('automations.changed', () => this.#backends.forEach(tell))
    const ofConnections = () => this.#backends.forEach(each => each.entries.connections.size > 0 && tell(each))
    deps.host.on('capability.connected', ofConnections)
    deps.host.on('capability.removed', ofConnections)
  }

  /** What all extensions that may run contribute to automations. */
  contributed(): ContributedAutomations {
    const running = this.#deps.running()
    return {
      listeners: running.flatMap(({ id: extension, manifest }) => {
        const { listener } = manifest.contributes ?? {}
        return listener ? [{ extension, listener }] : []
      }),
      templates: running.flatMap(({ id: extension, manifest }) => {
        const offered = [...(this.#offered.get(extension)?.values() ?? [])]
        const declared = manifest.contributes?.automationTemplates ?? []
        return [...declared, ...offered].map(template => ({ extension, template }))
      }),
    }
  }

  /** What the listener of an extension needs to know. */
  async state(id: string): Promise<ListenerState> {
    const { provider } = this.#listenerOf(id)
    const { host, running } = this.#deps
    const served = await host.serves('automations.listening')
    const { automations } = served ? await host.call('automations.listening', { provider }) : { automations: [] }
    const connections = await connectionsFrom(host, cardsNamed(running().find(each => each.id === id)!.manifest))
    return {
      automations: automations.map(each => ({ ...each, trigger: { ...each.trigger } })),
      connections: connections.map(each => ({ id: each.id, config: configWithReferences(each) })),
    }
  }

  /** Starts what a message matches. */
  async dispatch(id: string, message: ListenerMessage): Promise<string[]> {
    assertOwnMessage(this.#listenerOf(id), message)
    const { host } = this.#deps
    if (!(await host.serves('automations.dispatch'))) return []
    return (await host.call('automations.dispatch', message)).matched
  }

  /** Starts what a message matches, and streams what the agents say. */
  async stream(id: string, message: ListenerMessage, signal: AbortSignal): Promise<AsyncIterable<DispatchFrame>> {
    assertOwnMessage(this.#listenerOf(id), message)
    const { host } = this.#deps
    if (!(await host.serves('automations.dispatchStream')))
      return refuse('unavailable', 'this sandbox has no automations')
    return host.call('automations.dispatchStream', message, { signal })
  }

  /** Records that an extension could not receive or send. */
  async failure(id: string, detail: string): Promise<void> {
    const { provider } = this.#listenerOf(id)
    const error = detail.slice(0, 500)
    const actor = `extension:${id}`
    await record(this.#deps.host, {
      ...{ type: 'listener.failed', audience: 'viewer', outcome: 'error', provider, actor, source: actor, error },
    })
  }

  status(id: string, snapshot: ListenerStatus): void {
    this.#listenerOf(id)
    this.#statuses.set(id, { at: Date.now(), snapshot })
  }

  /** How the connections of all listeners stand. */
  get connections(): ListenerStatus['connections'] {
    const ids = new Set(this.#deps.running().map(({ id }) => id))
    return [...this.#statuses].flatMap(([id, { at, snapshot }]) =>
      ids.has(id) && Date.now() - at < STATUS_MS ? snapshot.connections : [],
    )
  }

  /** Gives a reply to the extension that received the message. */
  async deliver(provider: string, channelId: string, text: string): Promise<void> {
    const found = this.contributed().listeners.find(({ listener }) => listener.provider === provider)
    const backend = found && this.#takers.has(found.extension) ? this.#backends.get(found.extension) : undefined
    await backend?.process?.link.request('deliver', { channelId, text })
  }

  /** The operations of a backend, and the function that forgets it. */
  operations(backend: ExtensionBackend): {
    handlers: Pick<HostHandlers, Extract<keyof HostHandlers, `listeners.${string}` | `automations.${string}`>>
    end: () => void
  } {
    const { id } = backend.extension
    this.#backends.set(id, backend)
    return {
      handlers: {
        'listeners.state': async () => ({ state: await this.state(id) }),
        'listeners.handle': () => {
          this.#listenerOf(id)
          this.#takers.add(id)
          return {}
        },
        'listeners.off': () => {
          this.#takers.delete(id)
          return {}
        },
        'listeners.dispatch': async ({ message, stream = false }) => {
          if (!stream) return { matched: await this.dispatch(id, message) }
          const frames = (await this.stream(id, message, endless))[Symbol.asyncIterator]()
          const first = await frames.next()
          const matched = first.done ? [] : (first.value.matched ?? [])
          return { matched, frames: backend.link().offer(rest(frames)) }
        },
        'listeners.failure': async ({ detail }) => {
          await this.failure(id, detail)
          return {}
        },
        'listeners.status': ({ snapshot }) => {
          this.status(id, snapshot)
          return {}
        },
        'automations.templates': async () => ({ templates: await this.#templates(backend) }),
        'automations.offer': ({ template }) => {
          this.#offer(backend, template)
          return {}
        },
        'automations.withdraw': ({ id: template }) => {
          this.#offered.get(id)?.delete(template)
          return {}
        },
      },
      end: () => {
        if (this.#backends.get(id) !== backend) return
        this.#backends.delete(id)
        this.#takers.delete(id)
        this.#offered.delete(id)
        this.#statuses.delete(id)
      },
    }
  }

  #offer({ extension: { id, manifest } }: ExtensionBackend, template: OfferedTemplate): void {
    const offered = this.#offered.get(id) ?? new Map<string, OfferedTemplate>()
    if (manifest.contributes?.automationTemplates?.some(declared => declared.id === template.id))
      refuse('conflict', `id: the manifest declares the automation ${template.id} already`)
    if (!offered.has(template.id) && offered.size >= MOST_OFFERED)
      refuse('too-many', `expected at most ${MOST_OFFERED} offered automations`)
    this.#offered.set(id, offered.set(template.id, template))
  }

  async #templates({ extension: { id, manifest } }: ExtensionBackend): Promise<TemplateUse[]> {
    const { host } = this.#deps
    const offered = [...(this.#offered.get(id)?.values() ?? [])]
    const all = [...(manifest.contributes?.automationTemplates ?? []), ...offered]
    const { used } = (await host.serves('automations.usedTemplates'))
      ? await host.call('automations.usedTemplates', { prompts: all.map(({ prompt }) => prompt) })
      : { used: [] }
    return all.map((template, at) => ({
      id: template.id,
      offered: offered.some(each => each.id === template.id),
      used: used[at] ?? 0,
    }))
  }

  /** The listener of an extension; denies one that declares none. */
  #listenerOf(id: string): ExtensionListener {
    const found = this.#deps.running().find(each => each.id === id)
    return found?.manifest.contributes?.listener ?? deny('contributes.listener')
  }
}

const endless = new AbortController().signal

/** What is left of a stream. */
async function* rest<T>(frames: AsyncIterator<T>): AsyncGenerator<T, void> {
  try {
    for (;;) {
      const { value, done } = await frames.next()
      if (done) return
      yield value
    }
  } finally {
    await frames.return?.()
  }
}
