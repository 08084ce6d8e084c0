import { type Host, refuse, Refusal } from '../../sdk/index.js'
import { headersOf } from '../../sdk/node/models/model-list.js'
import type { CapabilityGiven, CapabilityRecord } from '../capabilities/contract.js'
import { SERVER_KIND, type ServerEntry, serverOf } from './entry.js'
import { headerLines, isSendable } from './header-lines.js'
import { LOCAL_KIND, type LocalEntry, localOf } from './local/entry.js'

/** In place of a secret: the stored one stays. */
export const KEEP_STORED = '__vaulted__'

/** What is sent with each request to a server, and the values in it that nobody may read. */
export interface ServerAccess {
  readonly headers: { [name: string]: string }
  readonly secrets: string[]
  readonly headerNames: string[]
  /** Why the key or the headers cannot be read, as a sentence. */
  readonly problem?: string
}

const LOCKED = 'its key is in the secret store, which is locked: open it with POST /secrets/store'

/** The model servers as capabilities keep them, and their secrets. */
export class EndpointStore {
  readonly #host: Pick<Host, 'call' | 'serves'>

  constructor(host: Pick<Host, 'call' | 'serves'>) {
    this.#host = host
  }

  /** Every stored model server. */
  async servers(): Promise<ServerEntry[]> {
    return (await this.#records(SERVER_KIND)).flatMap(record => serverOf(record) ?? [])
  }

  /** Every stored local model. */
  async locals(): Promise<LocalEntry[]> {
    return (await this.#records(LOCAL_KIND)).flatMap(record => localOf(record) ?? [])
  }

  async local(id: string): Promise<LocalEntry | undefined> {
    return (await this.locals()).find(entry => entry.id === id)
  }

  async server(id: string): Promise<ServerEntry | undefined> {
    return (await this.servers()).find(entry => entry.id === id)
  }

  /** Stores an entry with its secrets in one step. */
  async put(given: CapabilityGiven): Promise<void> {
    await this.#needsCapabilities()
    const values = Object.values(given.secrets ?? {}).some(value => value !== '')
    if (values && !(await this.open())) {
      refuse(
        'unavailable',
        'a key is kept in the secret store only, which is locked: open it with POST /secrets/store; nothing was stored',
      )
    }
    await this.#host.call('capabilities.put', given)
  }

  /** Removes an entry with its secrets. */
  async drop(id: string): Promise<void> {
    await this.#needsCapabilities()
    await this.#host.call('capabilities.drop', { id })
  }

  /** Whether keys can be read and stored now; the first one makes the secret store. */
  async open(): Promise<boolean> {
    return (await this.#host.serves('secrets.names')) && (await this.#host.call('secrets.names')).open
  }

  /** One secret field of an entry; undefined when there is none. */
  async secret(id: string, field: 'apiKey' | 'headers'): Promise<string | undefined> {
    return (await this.#host.call('secrets.get', { name: `${id}/${field}` })).value
  }

  /** What is sent with each request to a server. */
  async access(entry: ServerEntry): Promise<ServerAccess> {
    const none: ServerAccess = { headers: headersOf(entry.protocol, undefined), secrets: [], headerNames: [] }
    if (!entry.hasKey && !entry.hasHeaders) return none
    try {
      if (!(await this.open())) return { ...none, problem: LOCKED }
      const key = entry.hasKey ? await this.secret(entry.id, 'apiKey') : undefined
      const text = entry.hasHeaders ? await this.secret(entry.id, 'headers') : undefined
      if ((entry.hasKey && key === undefined) || (entry.hasHeaders && text === undefined))
        return { ...none, problem: 'its key is no longer in the secret store: save it again' }
      if (key !== undefined && !isSendable(key))
        return { ...none, problem: 'its key has a line break or a character that no header can hold: save it again' }
      const lines = headerLines(text ?? '')
      return {
        headers: headersOf(entry.protocol, key, Object.fromEntries(lines.map(({ name, value }) => [name, value]))),
        secrets: [...(key ? [key] : []), ...lines.map(({ value }) => value)],
        headerNames: lines.map(({ name }) => name),
      }
    } catch (error) {
      if (error instanceof Refusal) return { ...none, problem: error.message }
      throw error
    }
  }

  async #records(wanted: string): Promise<CapabilityRecord[]> {
    if (!(await this.#host.serves('capabilities.records'))) return []
    const { capabilities } = await this.#host.call('capabilities.records', { kind: wanted })
    return capabilities.filter(({ kind }) => kind === wanted)
  }

  async #needsCapabilities(): Promise<void> {
    if (await this.#host.serves('capabilities.put')) return
    refuse('unavailable', 'model servers are stored as capabilities, and this sandbox runs without that group')
  }
}
