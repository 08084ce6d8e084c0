import type { AccessSession } from '../../../kernel.js'
import { asked } from '../../terminal/asked.js'
import { ago, columns, counted, oneLine, short } from '../../terminal/text.js'
import { CONNECTION, misused, type Verb } from '../../verb.js'
import { dayOfTime } from '../../terminal/when.js'

/** Lists sessions, and ends them. */
export const sessions: Verb = {
  name: 'sessions',
  group: true,
  usage: '[list | revoke ID|EMAIL | revoke --all]',
  summary: 'list sessions, and end them',
  examples: ['sessions', 'sessions revoke s-1', 'sessions revoke --all'],
  notes: [
    'revoke ends one session by its id, or every session of a person by their e-mail; their open streams close '
      + 'within a second.',
    "Past conversations are group sessions too: call 'GET /sessions' lists them, sessions get ID shows one.",
  ],
  flags: {
    all: { help: 'with revoke: end every session of the sandbox' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    const all = given.on('all')
    if (what === 'list' && name === undefined && !all) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('GET /system/sessions', undefined, options),
        (found, width) => tableOf(found.sessions, width),
      )
    }
    if (what !== 'revoke' || all === (name !== undefined))
      return misused(`expected sessions ${sessions.usage}, found sessions ${given.args.join(' ')}`)
    const which = name === undefined ? {} : name.includes('@') ? { email: name } : { id: name }
    return asked(
      terminal,
      given,
      (client, options) => client.call('POST /system/sessions/revoke', which, options),
      ({ revoked }) => `ended ${counted(revoked, 'session')}`,
    )
  },
}

const tableOf = (rows: readonly AccessSession[], width: number | undefined): string[] => {
  const now = Date.now()
  const lines = rows.map(({ id, email, role, via, device = '', lastSeenAt, expiresAt, address = '', current }) => [
    oneLine(id),
    oneLine(email),
    role,
    via,
    ago(lastSeenAt, now),
    dayOfTime(expiresAt),
    oneLine(address),
    `${short(oneLine(device), 40)}${current ? ' (this one)' : ''}`,
  ])
  return columns([['ID', 'WHO', 'ROLE', 'VIA', 'SEEN', 'EXPIRES', 'FROM', 'DEVICE'], ...lines], width)
}
