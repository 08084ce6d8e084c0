import type { Host } from '../../sdk/index.js'
import { deviceIdOf } from './channels.js'
import type { PushMessage } from './contract.js'
import type { PushDelivery, DeliveryEnd } from './delivery.js'
import type { Devices, PushDevice } from './devices.js'
import { notificationOf, TEST_NOTIFICATION } from './notification.js'
import type { PushRates } from './rates.js'
import { recipientsOf } from './recipients.js'

/** The dependencies of what is sent. */
export interface OutgoingDeps {
  readonly host: Pick<Host, 'call' | 'serves' | 'log' | 'signal'>
  readonly devices: Devices
  readonly delivery: PushDelivery
  readonly rates: PushRates
  /** Called when a device was removed. */
  readonly changed: () => void
}

const TEST_MS = 15_000
/** Deliveries under way; more wait for nobody and are dropped. */
const MOST_UNDER_WAY = 500

/** Sends messages to the devices of the people they are for. */
export class Outgoing {
  readonly #deps: OutgoingDeps
  #underWay = 0

  constructor(deps: OutgoingDeps) {
    this.#deps = deps
  }

  /** Sends a message in the background. */
  send(message: PushMessage): void {
    const { host } = this.#deps
    void this.#send(message).catch(
      error => host.signal.aborted || host.log.warn('notifying people failed', { error: String(error) }),
    )
  }

  /** Sends a test to every device of a person; returns how many services took it in time. */
  async test(person: string): Promise<number> {
    const { devices, delivery, host } = this.#deps
    const signal = AbortSignal.any([host.signal, AbortSignal.timeout(TEST_MS)])
    const ends = await Promise.all(
      devices.of(person).map(async device => {
        const end = await delivery.once(device, TEST_NOTIFICATION, signal)
        await this.#ended(device, end)
        return end
      }),
    )
    return ends.filter(end => end === 'taken').length
  }

  async #send(message: PushMessage): Promise<void> {
    const { devices, host, rates } = this.#deps
    const notification = notificationOf(message)
    if (!notification) return
    for (const person of await recipientsOf(host, message)) {
      const own = devices.of(person)
      if (own.length === 0 || !rates.admitsTag(person, notification.tag)) continue
      for (const device of own) {
        if (this.#underWay >= MOST_UNDER_WAY || !rates.admitsDevice(deviceIdOf(device.channel))) continue
        this.#underWay += 1
        void this.#deps.delivery
          .deliver(device, notification)
          .then(end => this.#ended(device, end))
          .catch(error => host.log.warn('storing what became of a notification failed', { error: String(error) }))
          .finally(() => (this.#underWay -= 1))
      }
    }
  }

  async #ended(device: PushDevice, end: DeliveryEnd): Promise<void> {
    const { devices, changed } = this.#deps
    if (end === 'taken') await devices.delivered(device)
    if (end === 'gone' && (await devices.remove(device.person, deviceIdOf(device.channel)))) changed()
  }
}
