import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '../../sdk/index.js'
import type { MachineReach } from '../../sdk/node/network/addresses.js'
import { askOutside } from '../../sdk/node/network/outbound.js'
import { addressOfDevice } from './channels.js'
import type { RelayChannel, WebPushChannel } from './contract.js'
import type { PushDevice } from './devices.js'
import type { VapidKeys } from './key-pair.js'
import type { DeviceNotification } from './notification.js'
import { ignored } from '../../sdk/index.js'

/** What became of one request: `taken`, `gone` for an address that can never be reached again, or why it failed. */
export type DeliveryEnd = 'taken' | 'gone' | { readonly failed: string }

/** The dependencies of deliveries. */
export interface PushDeliveryDeps {
  readonly keys: () => Promise<VapidKeys>
  readonly reach: () => Promise<MachineReach>
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
  /** Whether a device is still registered for the person whose notification it gets. */
  readonly isCurrent: (device: PushDevice) => boolean
  /** The waits before a failed delivery is tried again. */
  readonly retriesMs?: readonly number[]
}

interface OutgoingPush {
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  readonly body: string | Buffer
}

const RETRIES_MS = [2_000, 30_000]
const TIMEOUT_MS = 15_000
const MOST_ANSWER = 4_096
const KEPT_S = 24 * 3_600
const GONE = new Set([403, 404, 410])
/** Who a push service may ask about this program (RFC 8292, section 2.1). */
const SUBJECT = 'mailto:push@sandbox.local'

/** Sends notifications to devices. */
export class PushDelivery {
  readonly #deps: PushDeliveryDeps

  constructor(deps: PushDeliveryDeps) {
    this.#deps = deps
  }

  /** Sends a notification, and again after failures that may pass; what fails then is logged. */
  async deliver(device: PushDevice, notification: DeviceNotification): Promise<DeliveryEnd> {
    const { retriesMs = RETRIES_MS, signal, log, isCurrent } = this.#deps
    for (const wait of [...retriesMs, undefined]) {
      if (!isCurrent(device)) return { failed: 'the device is not registered any more' }
      const end = await this.once(device, notification, signal)
      if (typeof end === 'string') return end
      if (wait === undefined || signal.aborted) {
        log.warn('a notification was not delivered', { to: hostOf(device), why: end.failed })
        return end
      }
      await pause(wait, undefined, { signal, ref: false }).catch(ignored('the wait was cut short'))
    }
    return { failed: 'the sandbox stops' }
  }

  /** Sends a notification once. */
  async once(device: PushDevice, notification: DeviceNotification, signal: AbortSignal): Promise<DeliveryEnd> {
    try {
      const { channel } = device
      const request =
        channel.kind === 'webpush'
          ? await encrypted(channel, notification, await this.#deps.keys())
          : relayed(channel, notification)
      const { status } = await askOutside({
        ...request,
        ...{ method: 'POST', signal, timeoutMs: TIMEOUT_MS, redirects: 0, maxBytes: MOST_ANSWER },
        reach: await this.#deps.reach(),
      })
      if (status >= 200 && status < 300) return 'taken'
      return GONE.has(status) ? 'gone' : { failed: `it answered ${status}` }
    } catch (error) {
      return { failed: error instanceof Error ? error.message : String(error) }
    }
  }
}

/** The host alone: the rest of an address is the secret that lets anybody send to the device. */
const hostOf = ({ channel }: PushDevice): string => URL.parse(addressOfDevice(channel))?.host ?? ''

/** A message for a push service, encrypted for the browser (RFC 8291) and signed by the daemon (RFC 8292). */
const encrypted = async (
  { endpoint, keys }: WebPushChannel,
  notification: DeviceNotification,
  vapid: VapidKeys,
): Promise<OutgoingPush> => {
  // It loads libraries that only sending needs.
  const { default: webPush } = await import('web-push')
  const { headers, body } = webPush.generateRequestDetails({ endpoint, keys }, JSON.stringify(notification), {
    ...{ TTL: KEPT_S, urgency: 'high', contentEncoding: 'aes128gcm' },
    // While the device is off its push service keeps the newest message of a topic, of at most 32 characters.
    topic: createHash('sha256').update(notification.tag).digest('base64url').slice(0, 32),
    vapidDetails: { subject: SUBJECT, ...vapid },
  })
  const sent = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value)])
  return { url: endpoint, headers: Object.fromEntries(sent), body: body! }
}

const relayed = ({ url, deviceId, secret }: RelayChannel, notification: DeviceNotification): OutgoingPush => ({
  url,
  headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
  body: JSON.stringify({ deviceId, notification }),
})
