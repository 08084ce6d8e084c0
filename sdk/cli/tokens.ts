import type { Scope } from '../types.js'
import { connected } from './connection.js'
import { ago, columns, jsonLine, plain } from './text.js'
import { CONNECTION, EXIT, misused, type Verb } from './verb.js'
import { dayOf, timeOf } from './when.js'
import { write } from './write.js'

const SCOPES: readonly string[] = ['editor', 'read', 'drive', 'land'] satisfies Scope[]

/** Mints, lists and revokes control tokens. */
export const token: Verb = {
  name: 'token',
  also: 'tokens',
  usage: '[list | create --label LABEL --scope SCOPE | revoke ID]',
  summary: 'manage the control tokens of programs',
  notes: [
    'Scopes: editor (run and follow its own conversations), read, drive (read and run anywhere), land (drive, land and discard).',
    'create prints the token and nothing else on standard output; it is shown this once.',
  ],
  flags: {
    label: { value: 'LABEL', help: 'what the token is for' },
    scope: { value: 'SCOPE', help: 'how far it reaches' },
    expires: { value: 'WHEN', help: 'a time such as 12h, 30d or 2030-01-31; left out: never' },
    ...CONNECTION,
  },
  most: 2,
  run: async (terminal, given) => {
    const [what = 'list', id] = given.args
    const json = given.on('json')
    const { signal } = terminal
    if (what === 'create') {
      const { label, scope, expires } = { label: given.text('label'), scope: given.text('scope'), expires: given.text('expires') }
      if (id !== undefined || !label || !scope || !SCOPES.includes(scope)) misused(`expected token create --label LABEL --scope ${SCOPES.join('|')}`)
      const input = { label: label!, scope: scope as Scope, ...(expires && { expiresAt: timeOf(expires, Date.now()) }) }
      return connected(terminal, given, async ({ client }) => {
        const minted = await client.call('POST /system/control/tokens', input, { signal })
        await write(terminal, json ? jsonLine(minted) : `${minted.token}\n`)
        return EXIT.ok
      })
    }
    if (what === 'list' && id === undefined) {
      return connected(terminal, given, async ({ client }) => {
        const { tokens } = await client.call('GET /system/control/tokens', undefined, { signal })
        const now = Date.now()
        const rows = tokens.map(row => [
          plain(row.id), row.scope, row.expiresAt === undefined ? 'never' : dayOf(row.expiresAt),
          row.lastUsedAt === undefined ? 'never' : ago(row.lastUsedAt, now), plain(row.label),
        ])
        await write(terminal, json ? jsonLine({ tokens }) : `${columns([['ID', 'SCOPE', 'EXPIRES', 'USED', 'LABEL'], ...rows]).join('\n')}\n`)
        return EXIT.ok
      })
    }
    if (what === 'revoke' && id) {
      return connected(terminal, given, async ({ client }) => {
        const revoked = await client.call('DELETE /system/control/tokens/{id}', { id }, { signal })
        await write(terminal, json ? jsonLine(revoked) : `revoked ${plain(id)}\n`)
        return EXIT.ok
      })
    }
    return misused(`expected token create, token list or token revoke ID, found token ${given.args.join(' ')}`)
  },
}
