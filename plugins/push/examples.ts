import type { Examples } from '../../sdk/contract.js'
import type { PushCalls } from './contract.js'

const ENDPOINT = 'https://push.example.org/send/dQw4w9WgXcQ'
const KEY = 'BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM'

/** One use of each call. */
export const examples = (): Examples<PushCalls> => ({
  'GET /push/config': { input: { id: ENDPOINT }, output: { publicKey: KEY, subscribed: true } },
  'POST /push/subscribe': {
    input: { kind: 'webpush', endpoint: ENDPOINT, keys: { p256dh: KEY, auth: 'tBHItJI5svbpez7KI4CCXg' } },
    output: { ok: true },
  },
  'POST /push/unsubscribe': { input: { id: ENDPOINT }, output: { ok: true } },
  'POST /push/test': { output: { delivered: 1 } },
})
