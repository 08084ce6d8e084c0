import { printResult } from '../../terminal/asked.js'
import { askLogin, whichDaemon } from '../../daemon/connection.js'
import type { Running } from '../../daemon/daemon.js'
import { CONNECTION, EXIT, CommandFailure, type Verb } from '../../verb.js'

/** Prints a link that signs the owner in once. */
export const login: Verb = {
  name: 'login',
  usage: '',
  summary: 'print a link that signs you in as the owner, once, within 5 minutes',
  examples: ['login', 'login --url http://127.0.0.1:8787'],
  flags: CONNECTION,
  most: 0,
  run: async (terminal, given) => {
    const { url, daemon } = await whichDaemon(terminal, given)
    if (!daemon)
      throw new CommandFailure(
        EXIT.failed,
        `${url} is not a daemon of this user on this machine: sign in where it runs`,
      )
    return printResult(terminal, given, { url: await loginLink(daemon, terminal.signal) }, link => link.url)
  },
}

/** Requests a link that signs the owner in from the login socket. */
export const loginLink = async (daemon: Running, signal: AbortSignal): Promise<string> => {
  return (await askLogin<{ url: string }>(daemon, { do: 'login' }, signal)).url
}
