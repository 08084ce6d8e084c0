import type { Host } from '../../sdk/index.js'
import type { DiskPin, DiskVia } from './contract.js'

/** A pin with what it pins. */
export interface StoredPin extends DiskPin {
  /** The host key, such as `ssh-ed25519 AAAA…`; of a certificate its hash. */
  readonly value: string
  /** The server that it belongs to. */
  readonly server: string
}

/** What is kept of a share besides its connection. Whether it is mounted is only known by the kernel. */
export interface StoredDisk {
  /** When it was mounted; absent: nothing is left of a mount. */
  readonly since?: number
  readonly via?: DiskVia
  /** The workspace path at which a link was made. */
  readonly link?: string
  /** Its link was removed while its server does not answer. */
  readonly aside?: true
  /** A mount was begun and has not ended. */
  readonly mounting?: true
  /** Why the last mount failed. */
  readonly failed?: string
  /** What is to be known about the last unmount. */
  readonly notice?: string
  readonly pin?: StoredPin
  readonly logAt?: number
}

const PREFIX = 'disk/'
const LOGS = 'mount-logs/'
const MOST_LOG = 1024 * 1024
const SHOWN_LINES = 200

/** What is kept of shares, by id. */
export class DiskStore {
  readonly #host: Pick<Host, 'store' | 'files'>

  constructor(host: Pick<Host, 'store' | 'files'>) {
    this.#host = host
  }

  async get(id: string): Promise<StoredDisk> {
    return (await this.#host.store.get<StoredDisk>(PREFIX + id)) ?? {}
  }

  async all(): Promise<[id: string, stored: StoredDisk][]> {
    const all = await this.#host.store.all<StoredDisk>()
    return all.flatMap(([key, stored]) => (key.startsWith(PREFIX) ? [[key.slice(PREFIX.length), stored]] : []))
  }

  async set(id: string, stored: StoredDisk): Promise<void> {
    await this.#host.store.set(PREFIX + id, stored)
  }

  async setLog(id: string, lines: readonly string[]): Promise<void> {
    await this.#host.files.write(LOGS + id, { text: lines.join('\n').slice(-MOST_LOG).toWellFormed() })
  }

  /** The last lines of the log of the last mount. */
  async log(id: string): Promise<string> {
    const { text = '' } = (await this.#host.files.read<{ text: string }>(LOGS + id)) ?? {}
    return text.split('\n').slice(-SHOWN_LINES).join('\n')
  }

  async drop(id: string): Promise<void> {
    await this.#host.store.delete(PREFIX + id)
    await this.#host.files.remove(LOGS + id)
  }

  async move(id: string, to: string): Promise<void> {
    await this.set(to, await this.get(id))
    const log = await this.#host.files.read<object>(LOGS + id)
    if (log) await this.#host.files.write(LOGS + to, log)
    await this.drop(id)
  }
}
