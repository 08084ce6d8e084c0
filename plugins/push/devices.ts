import { createHash } from 'node:crypto'
import { refuse, type Files, type Log } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { deviceIdOf } from './channels.js'
import type { PushChannel } from './contract.js'

/** A registered device. */
export interface PushDevice {
  readonly channel: PushChannel
  /** The e-mail of the person it belongs to. */
  readonly person: string
  readonly createdAt: number
  readonly lastDeliveredAt?: number
}

const FOLDER = 'devices/'
const MOST = 20

/** The id comes from outside and is too long for a file name. */
const rowOf = (id: string): string => FOLDER + createHash('sha256').update(id).digest('hex')

const isDevice = (row: Partial<PushDevice> | undefined): row is PushDevice =>
  typeof row?.person === 'string' && (row.channel?.kind === 'webpush' || row.channel?.kind === 'relay')

/** The devices of all people: an encrypted row each, and in memory. */
export class Devices {
  readonly #files: Files
  readonly #log: Pick<Log, 'warn'>
  readonly #all = new Map<string, PushDevice>()
  readonly #changes = new KeyedMutex()

  constructor(files: Files, log: Pick<Log, 'warn'>) {
    this.#files = files
    this.#log = log
  }

  /** Reads the rows; one that cannot be read is left out. */
  async load(): Promise<void> {
    for (const name of await this.#files.list(FOLDER)) {
      try {
        const row = await this.#files.read<PushDevice>(name)
        if (!isDevice(row)) throw new Error('it is no device')
        this.#all.set(deviceIdOf(row.channel), row)
      } catch (error) {
        this.#log.warn('a stored device cannot be read and gets no notifications', { row: name, error: String(error) })
      }
    }
  }

  /** The devices of a person, oldest first. */
  of(person: string): PushDevice[] {
    return [...this.#all.values()]
      .filter(device => device.person === person)
      .sort((one, other) => one.createdAt - other.createdAt)
  }

  /** Whether a device is registered for a person. */
  has(person: string, id: string): boolean {
    return this.#all.get(id)?.person === person
  }

  /** Registers a device for a person; it is no longer that of another. */
  add(person: string, channel: PushChannel): Promise<void> {
    return this.#changes.with('', async () => {
      const id = deviceIdOf(channel)
      if (!this.has(person, id) && this.of(person).length >= MOST)
        refuse('too-many', `${person} has ${MOST} devices: remove one first`)
      await this.#put({ channel, person, createdAt: Date.now() })
      failpoint('push.registered')
    })
  }

  /** Removes a device, if it still belongs to the person. */
  remove(person: string, id: string): Promise<boolean> {
    return this.#changes.with('', async () => {
      if (!this.has(person, id)) return false
      await this.#files.remove(rowOf(id))
      this.#all.delete(id)
      failpoint('push.removed')
      return true
    })
  }

  /** Removes the devices of everybody else; returns whether there were any. */
  async keepOnly(people: ReadonlySet<string>): Promise<boolean> {
    const others = [...this.#all].filter(([, { person }]) => !people.has(person))
    for (const [id, { person }] of others) await this.remove(person, id)
    return others.length > 0
  }

  /** Notes that a device got a notification. */
  delivered({ person, channel }: PushDevice): Promise<void> {
    return this.#changes.with('', async () => {
      const device = this.#all.get(deviceIdOf(channel))
      if (device?.person === person) await this.#put({ ...device, lastDeliveredAt: Date.now() })
    })
  }

  async #put(device: PushDevice): Promise<void> {
    const id = deviceIdOf(device.channel)
    await this.#files.write(rowOf(id), device)
    this.#all.set(id, device)
  }
}
