import { createDecipheriv, createECDH, createPublicKey, hkdfSync, randomBytes, verify } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { WebPushChannel } from '../../../plugins/push/contract.js'
import { tlsServer, type Recorded } from './tls-server.js'

/** What a browser keeps of a subscription. */
export interface Subscription {
  readonly channel: WebPushChannel
  readonly privateKey: string
}

/** A new subscription at an address, as a browser makes one. */
export const newSubscription = (endpoint: string): Subscription => {
  const pair = createECDH('prime256v1')
  const p256dh = pair.generateKeys('base64url')
  const auth = randomBytes(16).toString('base64url')
  return {
    channel: { kind: 'webpush', endpoint, keys: { p256dh, auth } },
    privateKey: Buffer.from(pair.getPrivateKey('hex').padStart(64, '0'), 'hex').toString('base64url'),
  }
}

const expanded = (secret: Buffer, salt: Buffer, info: Buffer | string, length: number): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, salt, info, length))

/** Decrypts a message as a browser does: RFC 8291, section 3.4, of the coding `aes128gcm` (RFC 8188). */
export const decryptPush = (body: Buffer, { channel: { keys }, privateKey }: Subscription): Buffer => {
  const salt = body.subarray(0, 16)
  const size = body.readUInt32BE(16)
  const keyEnd = 21 + body[20]!
  const [sender, receiver] = [body.subarray(21, keyEnd), Buffer.from(keys.p256dh, 'base64url')]
  const pair = createECDH('prime256v1')
  pair.setPrivateKey(privateKey, 'base64url')
  const info = Buffer.concat([Buffer.from('WebPush: info\0'), receiver, sender])
  const secret = expanded(pair.computeSecret(sender), Buffer.from(keys.auth, 'base64url'), info, 32)
  const key = expanded(secret, salt, 'Content-Encoding: aes128gcm\0', 16)
  const nonce = expanded(secret, salt, 'Content-Encoding: nonce\0', 12)
  const record = body.subarray(keyEnd)
  if (record.length > size) throw new Error('a push message is one record')
  const opened = createDecipheriv('aes-128-gcm', key, nonce).setAuthTag(record.subarray(-16))
  const padded = Buffer.concat([opened.update(record.subarray(0, -16)), opened.final()])
  const end = padded.findLastIndex(byte => byte !== 0)
  if (padded[end] !== 2) throw new Error('the last record ends with 2')
  return padded.subarray(0, end)
}

/** The claims of the daemon's signature, verified with its key (RFC 8292). */
export const vapidClaims = (header: string, publicKey: string): { aud: string; exp: number; sub: string } => {
  const [, token = '', key] = /^vapid t=([^,]+), ?k=(.+)$/.exec(header) ?? []
  if (key !== publicKey) throw new Error('the key is another one')
  const point = Buffer.from(publicKey, 'base64url')
  const [x, y] = [point.subarray(1, 33), point.subarray(33)].map(part => part.toString('base64url')) as [string, string]
  const [head = '', claims = '', signature = ''] = token.split('.')
  const signer = createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  const holds = verify(
    'sha256',
    Buffer.from(`${head}.${claims}`),
    { key: signer, dsaEncoding: 'ieee-p1363' },
    Buffer.from(signature, 'base64url'),
  )
  if (!holds) throw new Error('the signature does not hold')
  return JSON.parse(Buffer.from(claims, 'base64url').toString()) as { aud: string; exp: number; sub: string }
}

/** What a relay was posted. */
export interface Relayed {
  readonly deviceId: string
  readonly notification: {
    readonly title: string
    readonly body: string
    readonly url: string
    readonly tag: string
    readonly requireInteraction?: boolean
  }
}

/** A push service and relay on this machine. */
export const pushService = async (
  t: Test,
  status: (asked: Recorded) => number = () => 201,
): Promise<{ url: string; requests: Recorded[]; relayed: (device: string) => Relayed['notification'][] }> => {
  const { requests, port } = await tlsServer(t, (asked, answer: ServerResponse) =>
    answer.writeHead(status(asked)).end(),
  )
  return {
    url: `https://127.0.0.1:${port}`,
    requests,
    relayed: device =>
      requests.flatMap(({ url, body }) => {
        if (url !== '/relay') return []
        const { deviceId, notification } = JSON.parse(body) as Relayed
        return deviceId === device ? [notification] : []
      }),
  }
}
