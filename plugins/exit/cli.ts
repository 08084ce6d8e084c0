import type { CliTable } from '../../sdk/cli-table.js'
import type { ExitCalls } from './contract.js'

const EVENTS = {
  log: '{message}',
  step: '{step} …',
  observed: 'it came out at {ip} ({country})',
  result: '{link.id} is up: {link.proxy}',
}

/** The verbs of the group. */
export const cli: CliTable<ExitCalls> = {
  bare: 'list',
  verbs: {
    list: {
      call: 'GET /exit',
      rows: 'links',
      columns: {
        id: 'id',
        state: 'state',
        country: 'country',
        seen: 'observedCountry',
        address: 'ip',
        proxy: 'proxy',
        since: 'since',
        'by itself': 'autoStart',
      },
      none: 'no exits; a connection of kind exit adds one',
    },
    countries: {
      call: 'GET /exit/{id}/countries',
      rows: 'countries',
      columns: { country: 'country', name: 'countryName', servers: 'servers', share: 'share' },
      none: 'no countries are known',
    },
    start: { call: 'POST /exit/{id}/start', events: EVENTS },
    use: { call: 'POST /exit/{id}/use', events: EVENTS, examples: ['berlin --country NL'] },
    rotate: { call: 'POST /exit/{id}/rotate', events: EVENTS },
    check: { call: 'POST /exit/{id}/check', columns: { address: 'ip', country: 'countryName' } },
    stop: { call: 'POST /exit/{id}/stop', done: 'stopped {id}' },
  },
  failures: {
    'POST /exit/{id}/start': { field: 'state', is: ['failed', 'unavailable'], text: 'it is {state}' },
  },
}
