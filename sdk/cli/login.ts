import { askLogin, whichDaemon } from './connection.js'
import type { Running } from './daemon.js'
import { jsonLine } from './text.js'
import { CONNECTION, EXIT, Failure, type Verb } from './verb.js'
import { write } from './write.js'

/** Gives a link that signs the owner in, once. */
export const login: Verb = {
  name: 'login',
  usage: '',
  summary: 'print a link that signs you in as the owner, once, within 5 minutes',
  flags: CONNECTION,
  most: 0,
  run: async (terminal, given) => {
    const { url, daemon } = await whichDaemon(terminal, given)
    if (!daemon) throw new Failure(EXIT.failed, `${url} is no daemon of this user on this machine: sign in where it runs`)
    const link = await loginLink(daemon, terminal.signal)
    await write(terminal, given.on('json') ? jsonLine({ url: link }) : `${link}\n`)
    return EXIT.ok
  },
}

/** A link that signs the owner in, from the login socket. */
export const loginLink = async (daemon: Running, signal: AbortSignal): Promise<string> => {
  const { code } = await askLogin<{ code: string }>(daemon, { do: 'login' }, signal)
  return `${daemon.url.replace(/\/+$/, '')}/#login=${code}`
}
