import { askedAs } from '../../calls/asked-as.js'
import { asked } from '../../terminal/asked.js'
import { counted } from '../../terminal/text.js'
import { CONNECTION, misused, type Verb } from '../../verb.js'

/** Lists sessions, and ends them. */
export const sessions: Verb = {
  name: 'sessions',
  group: 'sessions',
  usage: '[list | revoke ID|EMAIL | revoke --all]',
  summary: 'list sessions, and end them',
  examples: ['sessions', 'sessions revoke s-1', 'sessions revoke --all'],
  notes: [
    'revoke ends one session by its id, or every session of a person by their e-mail; their open streams close '
      + 'within a second.',
    "Past conversations are group sessions too: call 'GET /sessions' lists them, sessions get ID shows one.",
  ],
  ids: { 'ID|EMAIL': ['system', 'sessions'] },
  flags: {
    all: { help: 'with revoke: end every session of the sandbox' },
    ...CONNECTION,
  },
  most: 2,
  run: (terminal, given) => {
    const [what = 'list', name] = given.args
    const all = given.on('all')
    if (what === 'list' && name === undefined && !all) {
      return askedAs(terminal, given, ['system', 'sessions'], (client, options) =>
        client.call('GET /system/sessions', undefined, options),
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
