import type { Scope } from '../../../types.js'
import { askedAs } from '../../calls/asked-as.js'
import { asked } from '../../terminal/asked.js'
import { plain } from '../../terminal/text.js'
import { CONNECTION, misused, type Verb } from '../../verb.js'
import { timeOf } from '../../terminal/when.js'

const SCOPES: readonly string[] = ['editor', 'read', 'drive', 'land'] satisfies Scope[]

/** Mints, lists and revokes control tokens. */
export const token: Verb = {
  name: 'token',
  also: 'tokens',
  usage: '[list | create --label LABEL --scope SCOPE | revoke ID]',
  summary: 'manage the control tokens of programs',
  examples: ['token list', 'token create --label ci --scope read --expires 30d', 'token revoke t-1'],
  notes: [
    'Scopes: editor (run and follow its own conversations), read, drive (read and run anywhere), land (drive, '
      + 'land and discard).',
    'create prints only the token on standard output; it is shown only once.',
  ],
  ids: { ID: ['system', 'tokens'] },
  flags: {
    label: { value: 'LABEL', help: 'what the token is for' },
    scope: { value: 'SCOPE', choices: SCOPES, help: 'what it may do' },
    expires: { value: 'WHEN', help: 'a time such as 12h, 30d or 2030-01-31; default: never' },
    ...CONNECTION,
  },
  most: 2,
  run: async (terminal, given) => {
    const [what = 'list', id] = given.args
    if (what === 'create') {
      const { label, scope, expires } = {
        label: given.text('label'),
        scope: given.text('scope'),
        expires: given.text('expires'),
      }
      if (id !== undefined || !label || !scope || !SCOPES.includes(scope))
        misused(`expected token create --label LABEL --scope ${SCOPES.join('|')}`)
      const input = { label: label!, scope: scope as Scope, ...(expires && { expiresAt: timeOf(expires, Date.now()) }) }
      return asked(
        terminal,
        given,
        (client, options) => client.call('POST /system/control/tokens', input, options),
        minted => minted.token,
      )
    }
    if (what === 'list' && id === undefined) {
      return askedAs(terminal, given, ['system', 'tokens'], (client, options) =>
        client.call('GET /system/control/tokens', undefined, options),
      )
    }
    if (what === 'revoke' && id) {
      return asked(
        terminal,
        given,
        (client, options) => client.call('DELETE /system/control/tokens/{id}', { id }, options),
        () => `revoked ${plain(id)}`,
      )
    }
    return misused(`expected token create, token list or token revoke ID, found token ${given.args.join(' ')}`)
  },
}
