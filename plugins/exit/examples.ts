import type { Examples } from '../../sdk/contract.js'
import type { ExitCalls, ExitLink } from './contract.js'

const LINK: ExitLink = {
  id: 'berlin',
  provider: 'onion_router',
  state: 'up',
  proxy: 'socks5://127.0.0.1:19412',
  country: 'DE',
  observedCountry: 'DE',
  ip: '203.0.113.7',
  checkedAt: 1_760_000_060_000,
  since: 1_760_000_000_000,
  autoStart: false,
}
const SEEN = { ip: '203.0.113.7', country: 'DE', countryName: 'Germany' }
const DONE = { done: { link: LINK } }

/** One use of each call. */
export const examples = (): Examples<ExitCalls> => ({
  'GET /exit': { output: { links: [LINK] } },
  'GET /exit/{id}/countries': {
    input: { id: 'berlin' },
    output: {
      countries: [
        { country: 'DE', countryName: 'Germany', servers: 412, share: 0.31 },
        { country: 'NL', countryName: 'Netherlands', servers: 208, share: 0.17 },
      ],
      live: true,
    },
  },
  'POST /exit/{id}/start': {
    input: { id: 'berlin' },
    output: { message: { kind: 'step', step: 'dial' }, ...DONE },
  },
  'POST /exit/{id}/use': {
    input: { id: 'berlin', country: 'DE' },
    output: { message: { kind: 'observed', ...SEEN }, ...DONE },
  },
  'POST /exit/{id}/rotate': {
    input: { id: 'berlin' },
    output: { message: { kind: 'log', message: 'it changed less than 10 s ago: waiting' }, ...DONE },
  },
  'POST /exit/{id}/check': { input: { id: 'berlin' }, output: SEEN },
  'POST /exit/{id}/stop': { input: { id: 'berlin' }, output: { ok: true } },
})
