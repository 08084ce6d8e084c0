import type { TerminalServerFrame } from '../../../plugins/system/contract.js'
import type { Client } from '../../client.js'
import { askedAs } from '../calls/asked-as.js'
import { asked } from '../terminal/asked.js'
import { connected, type Connection } from '../daemon/connection.js'
import { SELF } from '../terminal/own-name.js'
import { plain } from '../terminal/text.js'
import { CONNECTION, EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

/** Ctrl-]. */
const DETACH = '\x1d'
const PING = 30_000
const NAMED = /^(web|panel|agent|job|proc)-/
const MOST_COLUMNS = 500
const MOST_ROWS = 200

/** Opens, attaches to, lists and closes terminals of the sandbox. */
export const terminal: Verb = {
  name: 'terminal',
  also: 'terminals',
  usage: '[list | open | NAME | close NAME]',
  summary: 'list the terminals, open a shell in the workspace, or attach to one',
  examples: ['terminal', 'terminal open', 'terminal web-1', 'terminal close web-1'],
  notes: [
    'open opens a new one, NAME attaches to one or makes one of that name. Ctrl-] detaches: the shell keeps running, '
      + 'with tmux also across restarts of the daemon.',
    'The exit code is that of the shell; 0 after detaching.',
  ],
  ids: { NAME: ['system', 'terminals'] },
  flags: {
    cwd: { value: 'DIR', help: 'the folder of the workspace in which a new one starts' },
    ...CONNECTION,
  },
  most: 2,
  run: (seen, given) => {
    const [what = 'list', name] = given.args
    if (what === 'close') {
      if (!name) return misused('expected terminal close NAME')
      return asked(
        seen,
        given,
        (client, options) => closed(client, whole(name), options),
        () => `closed ${plain(whole(name))}`,
      )
    }
    if (name !== undefined)
      return misused(
        'expected terminal list, terminal open, terminal NAME or terminal close NAME, found '
          + `terminal ${given.args.join(' ')}`,
      )
    if (what === 'list') {
      return askedAs(seen, given, ['system', 'terminals'], (client, options) =>
        client.call('GET /system/terminals', undefined, options),
      )
    }
    if (!seen.interactive || !seen.in.isTTY) {
      throw new CommandFailure(
        EXIT.usage,
        'expected a person at a terminal on standard input and output, found a pipe or a file; terminal list and '
          + 'terminal close work there',
      )
    }
    return connected(seen, given, connection => opened(connection, seen, given, what === 'open' ? undefined : what))
  },
}

const closed = async (client: Client, name: string, options: { readonly signal: AbortSignal }): Promise<unknown> => {
  const { sessions } = await client.call('GET /system/terminals', undefined, options)
  if (!sessions.some(session => session.name === name))
    throw new CommandFailure(EXIT.refused, `no terminal is called ${plain(name)}; ${SELF} terminal list shows them`)
  return client.call('DELETE /system/terminals/{name}', { name }, options)
}

const whole = (name: string): string => (NAMED.test(name) ? name : `web-${name}`)

/** The size of the window, within the limits of a terminal. */
const sizeOf = ({ out }: Terminal): { cols: number; rows: number } => {
  const { columns: cols = 80, rows = 24 } = out as NodeJS.WriteStream
  return { cols: Math.min(Math.max(cols, 20), MOST_COLUMNS), rows: Math.min(Math.max(rows, 5), MOST_ROWS) }
}

const opened = async (
  { client, url }: Connection,
  seen: Terminal,
  given: GivenArguments,
  named: string | undefined,
): Promise<number> => {
  const { signal } = seen
  const cwd = given.text('cwd')
  const known = named === undefined ? undefined : whole(named)
  const name =
    known !== undefined && !known.startsWith('web-')
      ? known
      : (
          await client.call(
            'POST /system/terminals',
            { ...sizeOf(seen), ...(known && { name: known }), ...(cwd && { cwd }) },
            { signal },
          )
        ).name
  const { ticket } = await client.call('POST /system/ws-ticket', { for: 'terminal', name }, { signal })
  const { cols, rows } = sizeOf(seen)
  const query = new URLSearchParams({ session: name, ticket, cols: String(cols), rows: String(rows) })
  const socket = new WebSocket(`${url.replace(/^http/, 'ws')}/system/terminal?${query}`)
  socket.addEventListener('open', () => say(seen, `sandbox: attached to ${name}; Ctrl-] detaches\n`))
  const { code, detached } = await follow(socket, seen)
  say(
    seen,
    detached
      ? `\nsandbox: detached; ${SELF} terminal ${name} attaches again\n`
      : `sandbox: ${name} ended with ${code}\n`,
  )
  return code
}

/** Connects this terminal to one of the sandbox until it ends or the person detaches. */
const follow = (socket: WebSocket, seen: Terminal): Promise<{ code: number; detached: boolean }> =>
  new Promise((resolve, reject) => {
    const { in: keys, out, signal } = seen
    let ended: number | undefined
    let detached = false
    const say = (frame: object) => socket.readyState === WebSocket.OPEN && socket.send(JSON.stringify(frame))
    const typed = (text: string) => {
      const at = text.indexOf(DETACH)
      if (at !== 0) say({ type: 'input', data: at < 0 ? text : text.slice(0, at) })
      if (at < 0) return
      detached = true
      socket.close(1000)
    }
    const resized = () => say({ type: 'resize', ...sizeOf(seen) })
    const leave = () => socket.close(1000)
    const pinging = setInterval(() => say({ type: 'ping' }), PING)
    const cleanUp = () => {
      clearInterval(pinging)
      keys.off('data', typed)
      out.off('resize', resized)
      signal.removeEventListener('abort', leave)
      keys.setRawMode(false)
      keys.pause()
    }
    socket.addEventListener('open', () => {
      keys.setEncoding('utf8').setRawMode(true)
      keys.on('data', typed).resume()
      out.on('resize', resized)
    })
    signal.addEventListener('abort', leave, { once: true })
    socket.addEventListener('message', ({ data }) => {
      const frame = JSON.parse(String(data)) as TerminalServerFrame
      if (frame.type === 'data') out.write(frame.data)
      if (frame.type === 'exit') ended = frame.code
    })
    socket.addEventListener('close', ({ code, reason }) => {
      cleanUp()
      if (ended !== undefined) return resolve({ code: ended, detached: false })
      if (detached || signal.aborted) return resolve({ code: EXIT.ok, detached: true })
      reject(
        new CommandFailure(
          EXIT.failed,
          `the connection to the terminal was lost: ${plain(reason) || `the connection closed with ${code}`}`,
        ),
      )
    })
  })
