import type { Test } from 'tap'
import { system, type SystemEvent } from '../../../../plugins/system/contract.js'
import type { AgentCard } from '../../../../plugins/agents/contract.js'
import { readEvents, type ServerEvent } from '../../../../sdk/events.js'
import type { Support } from '../../../support/daemon.js'

type Of<K extends SystemEvent['kind']> = SystemEvent & { kind: K }

export interface Opened {
  readonly response: Response
  /** The id of the last event that was read. */
  readonly last: string
  /** The next message; throws when the stream ends before. */
  next(): Promise<SystemEvent>
  /** The next message of a kind. */
  until<K extends SystemEvent['kind']>(kind: K, fits?: (event: Of<K>) => boolean): Promise<Of<K>>
  /** The kinds of the next messages. */
  kinds(count: number): Promise<string[]>
  /** The first event other than a message; undefined: the stream was interrupted. */
  end(): Promise<{ event: string; data: unknown } | undefined>
  close(): Promise<void>
}

const fits = system.reply()

/** Opens the event stream; every event of it is compared with the contract. */
export const openEvents = async (
  t: Test,
  { url, session }: Pick<Support, 'url' | 'session'>,
  query = '',
  headers: { [name: string]: string } = {},
): Promise<Opened> => {
  const stop = new AbortController()
  t.teardown(() => stop.abort())
  const credential = headers['x-sandbox-control'] ? {} : { authorization: `Bearer ${session}` }
  const response = await fetch(`${url}/events${query}`, { headers: { ...credential, ...headers }, signal: stop.signal })
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`)
  const events = readEvents(response.body!)
  let last = ''
  /** The next event; undefined: the stream was interrupted. */
  const read = (): Promise<ServerEvent | undefined> =>
    events.next().then(
      ({ value }) => value as ServerEvent | undefined,
      () => undefined,
    )
  const opened: Opened = {
    response,
    get last() {
      return last
    },
    next: async () => {
      const { event, data, id } = (await read()) ?? { event: 'a cut', data: '{}', id: '' }
      if (event !== 'message') throw new Error(`the stream ended with ${event} ${data}`)
      last = id
      const output = JSON.parse(data) as SystemEvent
      const checked = fits({ call: 'GET /events', output })
      if (!checked.success) throw new Error(`${data.slice(0, 500)} does not fit: ${JSON.stringify(checked.errors[0])}`)
      return output
    },
    until: async (kind, wanted = () => true) => {
      for (;;) {
        const event = await opened.next()
        if (event.kind === kind && wanted(event as never)) return event as never
      }
    },
    kinds: async count => {
      const kinds: string[] = []
      while (kinds.length < count) kinds.push((await opened.next()).kind)
      return kinds
    },
    end: async () => {
      for (;;) {
        const event = await read()
        if (event?.event !== 'message') return event && { event: event.event, data: JSON.parse(event.data) as unknown }
      }
    },
    close: async () => stop.abort(),
  }
  return opened
}

/** A conversation's card. */
export const cardOf = (id: string, more: Partial<AgentCard> = {}): AgentCard => ({
  id,
  status: 'idle',
  provider: 'script',
  harness: 'native',
  openedBy: 'ada@example.org',
  lastBy: 'ada@example.org',
  updatedAt: 1,
  attention: {
    plan: false,
    question: false,
    permission: false,
    help: false,
    service: false,
    capability: false,
    payment: false,
    conflict: false,
  },
  ...more,
})

/** Reports the view of a person's client. */
export const say = (daemon: Support, body: object, headers: { [name: string]: string } = {}) =>
  daemon.fetch('/system/presence', { method: 'POST', body: JSON.stringify(body), headers })
