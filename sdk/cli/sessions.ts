import type { AccessSession } from '../kernel.js'
import { connected } from './connection.js'
import { ago, columns, jsonLine, oneLine, short } from './text.js'
import { CONNECTION, EXIT, misused, type Verb } from './verb.js'
import { dayOf } from './when.js'
import { write } from './write.js'

/** Shows who is signed in, and ends sessions. */
export const sessions: Verb = {
  name: 'sessions',
  usage: '[list | revoke ID|EMAIL | revoke --all]',
  summary: 'show who is signed in, and end sessions',
  notes: ['revoke ends one session by its id, or every session of a person by their e-mail; what they have open closes within a second.'],
  flags: {
    all: { help: 'with revoke: end every session of the sandbox' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    const json = given.on('json')
    const { signal } = terminal
    const all = given.on('all')
    if (what === 'list' && name === undefined && !all) {
      return connected(terminal, given, async ({ client }) => {
        const { sessions: rows } = await client.call('GET /system/sessions', undefined, { signal })
        await write(terminal, json ? jsonLine({ sessions: rows }) : tableOf(rows))
        return EXIT.ok
      })
    }
    if (what !== 'revoke' || all === (name !== undefined)) return misused(`expected sessions ${sessions.usage}, found sessions ${given.args.join(' ')}`)
    return connected(terminal, given, async ({ client }) => {
      const which = name === undefined ? {} : name.includes('@') ? { email: name } : { id: name }
      const { revoked } = await client.call('POST /system/sessions/revoke', which, { signal })
      await write(terminal, json ? jsonLine({ revoked }) : `ended ${revoked} ${revoked === 1 ? 'session' : 'sessions'}\n`)
      return EXIT.ok
    })
  },
}

const tableOf = (rows: readonly AccessSession[]): string => {
  const now = Date.now()
  const lines = rows.map(({ id, email, role, via, device = '', lastSeenAt, expiresAt, address = '', current }) =>
    [oneLine(id), oneLine(email), role, via, ago(lastSeenAt, now), dayOf(expiresAt), oneLine(address), `${short(oneLine(device), 40)}${current ? ' (this one)' : ''}`])
  return `${columns([['ID', 'WHO', 'ROLE', 'VIA', 'SEEN', 'EXPIRES', 'FROM', 'DEVICE'], ...lines]).join('\n')}\n`
}
