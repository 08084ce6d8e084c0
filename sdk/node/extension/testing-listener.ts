import { refuse } from '../../refusal.js'
import { deny } from './denied.js'
import { assertOwnMessage, type DispatchedEvents } from './listener-messages.js'
import type {
  BackendOperations,
  DispatchFrame,
  HostOperations,
  ListenerMessage,
  ListenerState,
  ListenerStatus,
  OfferedTemplate,
  OperationInput,
  OperationOutput,
  StreamRef,
} from './protocol.js'

/** What of a manifest is for automations. */
export interface TestedContributions {
  readonly listener?: DispatchedEvents
  readonly automationTemplates?: readonly { readonly id: string }[]
}

/** What stands in for automations. */
export interface ListenerFakes {
  /** The automations that listen, and the connections; default: none. */
  readonly state?: ListenerState
  /** Answers a message: the first frame names what it matched, the others are what the agents say. Default: nothing. */
  readonly dispatch?: (message: ListenerMessage) => readonly DispatchFrame[]
}

/** What an extension did as a listener, and what the daemon tells it. */
export interface TestedListener {
  readonly dispatched: ListenerMessage[]
  readonly failures: string[]
  readonly statuses: ListenerStatus[]
  /** The automations that it offers now, by id. */
  readonly offered: Map<string, OfferedTemplate>
  /** Gives it a reply to a message that was not streamed; false: it takes none. */
  deliver(to: { channelId: string; text: string }): Promise<boolean>
  /** Tells it that its automations or connections have changed. */
  changed(): Promise<void>
}

type Names = Extract<keyof HostOperations, `listeners.${string}` | `automations.${string}`>
type Handlers = { [O in Names]: (input: OperationInput<HostOperations, O>) => OperationOutput<HostOperations, O> }

/** How the two sides of the link are used. */
export interface ListenerLink {
  readonly offer: (items: AsyncIterable<unknown>) => StreamRef
  readonly ask: <O extends 'deliver' | 'listening'>(
    op: O,
    input: OperationInput<BackendOperations, O>,
  ) => Promise<unknown>
}

/** The operations of listeners and of offered automations, as the daemon answers them. */
export const testedListener = (
  { listener, automationTemplates: declared = [] }: TestedContributions,
  fakes: ListenerFakes,
  { offer, ask }: ListenerLink,
): { readonly handlers: Handlers; readonly tested: TestedListener } => {
  const own = (): DispatchedEvents => listener ?? deny('contributes.listener')
  const [dispatched, failures, statuses] = [[] as ListenerMessage[], [] as string[], [] as ListenerStatus[]]
  const offered = new Map<string, OfferedTemplate>()
  let takes = false
  return {
    handlers: {
      'listeners.state': () => {
        own()
        return { state: structuredClone(fakes.state ?? { automations: [], connections: [] }) }
      },
      'listeners.handle': () => {
        own()
        takes = true
        return {}
      },
      'listeners.off': () => {
        takes = false
        return {}
      },
      'listeners.dispatch': ({ message, stream }) => {
        assertOwnMessage(own(), message)
        dispatched.push(message)
        const [first, ...said] = fakes.dispatch?.(message) ?? []
        const matched = first?.matched ?? []
        return { matched, ...(stream && { frames: offer(each(said)) }) }
      },
      'listeners.failure': ({ detail }) => {
        own()
        failures.push(detail)
        return {}
      },
      'listeners.status': ({ snapshot }) => {
        own()
        statuses.push(snapshot)
        return {}
      },
      'automations.templates': () => ({
        templates: [
          ...declared.map(({ id }) => ({ id, offered: false, used: 0 })),
          ...[...offered.keys()].map(id => ({ id, offered: true, used: 0 })),
        ],
      }),
      'automations.offer': ({ template }) => {
        if (declared.some(({ id }) => id === template.id))
          refuse('conflict', `id: the manifest declares the automation ${template.id} already`)
        offered.set(template.id, template)
        return {}
      },
      'automations.withdraw': ({ id }) => {
        offered.delete(id)
        return {}
      },
    },
    tested: {
      ...{ dispatched, failures, statuses, offered },
      deliver: async to => {
        if (takes) await ask('deliver', to)
        return takes
      },
      changed: async () => void (await ask('listening', {})),
    },
  }
}

async function* each<T>(items: readonly T[]): AsyncGenerator<T, void> {
  yield* items
}
