import { Refusal } from '../../../sdk/index.js'
import { nameOfServer, type SshSecret } from '../../../sdk/node/transport/ssh-login.js'
import type { StatusCode } from '../records/contract.js'
import type { SshServer } from './server.js'

/** Why a server cannot be used, with the code of its state. */
export class SshFailure extends Refusal {
  readonly code: Extract<StatusCode, 'unreachable' | 'unauthorized'>

  constructor(code: SshFailure['code'], message: string) {
    super('dependency', message)
    this.code = code
  }
}

/** How a server is written: its port where it is not the usual one. */
export const shownServer = (server: SshServer): string =>
  server.port === 22 ? server.host : server.host.includes(':') ? nameOfServer(server) : `${server.host}:${server.port}`

const LIST = /permission denied \(([a-z0-9,-]+)\)/i

const refusedSecret = (said: string, { host, user }: SshServer, kind: SshSecret['kind']): string => {
  const methods = (LIST.exec(said)?.[1] ?? '').split(',').filter(Boolean)
  const mine = kind === 'key' ? ['publickey'] : ['password', 'keyboard-interactive']
  if (methods.length > 0 && !methods.some(method => mine.includes(method)))
    return `${host} takes no ${kind} from ${user}, only ${methods.join(' or ')}: set auth accordingly`
  return kind === 'key'
    ? `${host} refused the key for the user ${user}: add its public half to ~/.ssh/authorized_keys of ${user} there, `
        + 'or correct the user'
    : `${host} refused the password of the user ${user}: correct the password or the user`
}

/** The failure that ssh reports, as a sentence with what to do. */
export const sshFailure = (said: string, server: SshServer, kind: SshSecret['kind']): SshFailure => {
  const { host } = server
  const at = shownServer(server)
  const unreachable = (sentence: string) => new SshFailure('unreachable', sentence)
  if (/remote host identification has changed|host key verification failed/i.test(said))
    return new SshFailure(
      'unauthorized',
      `the host key of ${at} is not the one it had before, so nothing was sent: if its administrator changed it, `
        + 'disconnect the server here and connect it again',
    )
  if (/permission denied|too many authentication failures/i.test(said))
    return new SshFailure('unauthorized', refusedSecret(said, server, kind))
  if (/connection refused/i.test(said))
    return unreachable(`nothing is listening at ${at}: check the port, and that the server for ssh runs there`)
  if (/no route to host|network is unreachable/i.test(said))
    return unreachable(`there is no route to ${host}: check its address, and the network of this machine`)
  if (/no matching [a-z ]+ found/i.test(said))
    return unreachable(`${at} offers only outdated methods of ssh: update the server for ssh there`)
  if (/timed out|timeout/i.test(said))
    return unreachable(`${at} does not answer: check its address and port, and the firewalls between`)
  if (/kex_exchange|banner|identification|closed by|connection reset|bad packet|protocol/i.test(said))
    return unreachable(`what listens at ${at} ended the connection or does not speak ssh: check the port`)
  const last = said.trim().split('\n').at(-1) ?? ''
  return unreachable(`${at} could not be reached: ${last === '' ? 'ssh said nothing' : last}`)
}
