import { createPublicKey } from 'node:crypto'
import { Refusal, refuse } from '../../sdk/index.js'
import type { MachineReach } from '../../sdk/node/network/addresses.js'
import { SENTENCES } from '../../sdk/node/network/failure-words.js'
import { wayTo, webAddress } from '../../sdk/node/network/outbound.js'
import type { PushChannel, WebPushKeys } from './contract.js'

const POINT_BYTES = 65
const SECRET_BYTES = 16
const LOOKUP_MS = 10_000

/** The id of a device. */
export const deviceIdOf = (channel: PushChannel): string =>
  channel.kind === 'webpush' ? channel.endpoint : channel.deviceId

/** Where a device is reached. */
export const addressOfDevice = (channel: PushChannel): string =>
  channel.kind === 'webpush' ? channel.endpoint : channel.url

const wrong = (path: string, expected: string, found: string): never =>
  refuse('invalid', `${path}: expected ${expected}, found ${found}`, { errors: [{ path, expected }] })

const bytesOf = (text: string, path: string, length: number): Buffer => {
  if (!/^[A-Za-z0-9_-]*={0,2}$/.test(text)) wrong(path, 'base64url', 'other characters')
  const bytes = Buffer.from(text, 'base64url')
  if (bytes.length !== length) wrong(path, `${length} bytes in base64url`, `${bytes.length} bytes`)
  return bytes
}

const assertKeys = ({ p256dh, auth }: WebPushKeys): void => {
  bytesOf(auth, 'keys.auth', SECRET_BYTES)
  const point = bytesOf(p256dh, 'keys.p256dh', POINT_BYTES)
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url')) as [string, string]
  try {
    if (point[0] !== 4) throw new Error('compressed')
    createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } catch {
    wrong('keys.p256dh', 'an uncompressed point of P-256', 'another value')
  }
}

/** Refuses a channel with unusable keys, or with an address that the daemon must not ask. */
export const assertChannel = async (channel: PushChannel, reach: MachineReach): Promise<void> => {
  const path = channel.kind === 'webpush' ? 'endpoint' : 'url'
  const text = addressOfDevice(channel)
  if (!/^https?:/i.test(text)) wrong(path, 'an https address', 'another text')
  const url = webAddress(text)
  if (channel.kind === 'webpush') assertKeys(channel.keys)
  const late = AbortSignal.timeout(LOOKUP_MS)
  try {
    await wayTo(url, reach, late)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (error instanceof Refusal) refuse('unprocessable', `${path}: ${message}`)
    refuse('unprocessable', `${path}: ${url.host}: ${SENTENCES[code ?? ''] ?? 'its name could not be looked up'}`)
  }
  if (url.protocol !== 'https:') wrong(path, 'an https address', 'an http address')
}
