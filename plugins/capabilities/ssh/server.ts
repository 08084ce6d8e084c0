import { isIP } from 'node:net'
import { refuse } from '../../../sdk/index.js'
import type { SshSecret } from '../../../sdk/node/transport/ssh-login.js'
import type { OpenEntry } from '../records/kinds.js'
import { assertKey } from './keys.js'

/** A connected server. */
export interface SshServer {
  readonly host: string
  readonly port: number
  readonly user: string
}

const PORT = 22
const HOST = /^[a-z0-9]([a-z0-9._-]{0,253}[a-z0-9])?$/i
const USER = /^[a-z0-9_][a-z0-9_.@+-]{0,63}$/i

/** The server of a connection, as its fields name it. */
export const sshServerOf = ({ config }: Pick<OpenEntry, 'config'>): SshServer => ({
  host: String(config.host).toLowerCase(),
  port: Number(config.port ?? PORT),
  user: String(config.user),
})

/** Whether turns sign in with a key or with a password. */
export const loginOf = ({ config }: Pick<OpenEntry, 'config'>): SshSecret['kind'] =>
  config.auth === 'password' ? 'password' : 'key'

/** The field with the secret of each way to sign in. */
export const SECRET_FIELDS = { key: 'privateKey', password: 'password' } as const

/** The secret with which a connection signs in. */
export const secretOf = (entry: OpenEntry): SshSecret => {
  const kind = loginOf(entry)
  return { kind, value: (entry.secrets[SECRET_FIELDS[kind]] ?? '').replaceAll('\r\n', '\n') }
}

/** Refuses fields that cannot work. */
export const checkServer = async (entry: OpenEntry): Promise<void> => {
  const { secrets } = entry
  const { host, user } = sshServerOf(entry)
  if (isIP(host) === 0 && !HOST.test(host))
    refuse('invalid', 'config.host: expected the name or the address of a server, without a port')
  if (!USER.test(user)) refuse('invalid', 'config.user: expected the name of a user of the server')
  const kind = loginOf(entry)
  const [field, unused] = kind === 'key' ? (['privateKey', 'password'] as const) : (['password', 'privateKey'] as const)
  if (secrets[unused] !== undefined)
    refuse('invalid', `config.${unused}: expected none, for auth is ${kind}: leave it out`)
  if (secrets[field] === undefined) refuse('invalid', `config.${field}: expected a value, for auth is ${kind}`)
  if (kind === 'key') await assertKey(secretOf(entry).value)
  else if (/[\0\r\n]/.test(secrets[field]!)) refuse('invalid', 'config.password: expected one line of text')
}
