import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { createConnection, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Client } from '../../sdk/client.js'
import { listEnv } from '../../sdk/node/programs/run.js'
import { wallKind } from '../../sdk/node/wall/wall.js'
import type { Frame } from '../../plugins/agent/contract.js'
import { runTurn } from '../support/turns.js'
import { noWall } from '../support/walls.js'

const NO_WALL = noWall((await wallKind()) !== 'none')

/**
 * The options of a test that needs a wall, a new object each: without a wall the test is skipped, except in
 * CI, which must be able to build one.
 */
export const walled = (): { skip?: string } => (NO_WALL === false ? {} : { skip: NO_WALL })

/** What starts a daemon that does not find a program. */
export const hiding = (program: string): string[] => [
  'unshare',
  '--mount',
  'sh',
  '-c',
  `for p in /usr/local/bin /usr/bin /bin; do [ ! -e $p/${program} ] || mount --bind /dev/null $p/${program} || `
    + 'exit; done; exec "$@"',
  'sh',
]

/** The results of a turn's calls, in order. */
export const answersOf = (frames: readonly Frame[]): { ok: boolean; text: string }[] =>
  frames.flatMap(frame =>
    frame.kind !== 'tool_call_update' || (frame.status !== 'completed' && frame.status !== 'failed')
      ? []
      : [
          {
            ok: frame.status === 'completed',
            text: (frame.content ?? [])
              .map(part => (part.type === 'text' ? part.text : ''))
              .join('')
              .trim(),
          },
        ],
  )

/** The line of a script that runs a command unchanged: dollar signs are escaped for the shell. */
export const runs = (command: string): string => `run ${command.replaceAll('$', '$$$$')}`

/** Runs commands as one turn, each in its own shell, and returns their outputs. */
export const shellTurn = async (
  client: Client,
  conversation: string,
  commands: readonly string[],
  options: object = {},
): Promise<string[]> => {
  const frames = await runTurn(client, conversation, commands.map(runs).join('\n'), options)
  const answers = answersOf(frames)
  if (answers.length !== commands.length)
    throw new Error(`${answers.length} of ${commands.length} commands ran: ${JSON.stringify(frames.slice(-3))}`)
  return answers.map(({ text }) => text)
}

/** Runs a command as the user of the machine, without a wall. */
export const outside = (command: string, cwd: string): string => {
  try {
    return execFileSync('sh', ['-c', `${command}`], {
      cwd,
      encoding: 'utf8',
      env: listEnv(),
      stdio: ['ignore', 'pipe', 'pipe'],
    }).trim()
  } catch (error) {
    return `${(error as { stdout?: string }).stdout ?? ''}${(error as { stderr?: string }).stderr ?? ''}`.trim()
  }
}

/** Every name below a folder with its type and a hash of its bytes; `skip` excludes names. */
export const bytesOf = (folder: string, skip = /^$/, below = ''): { [path: string]: string } => {
  const found: { [path: string]: string } = {}
  for (const entry of readdirSync(join(folder, below))) {
    const name = join(below, entry)
    if (skip.test(name)) continue
    const path = join(folder, name)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) found[name] = `link ${readlinkSync(path)}`
    else if (stat.isFile())
      found[name] = `${stat.mode & 0o777} ${createHash('sha256').update(readFileSync(path)).digest('hex').slice(0, 16)}`
    else if (stat.isDirectory()) Object.assign(found, { [name]: 'folder' }, bytesOf(folder, skip, name))
    else found[name] = 'special'
  }
  return found
}

/** A program that writes a mark to a folder that only programs outside all walls can write. */
export const tripwire = (data: string) => {
  const folder = join(data, 'tripped')
  mkdirSync(folder, { recursive: true })
  return {
    /** The shell command that leaves the mark. */
    command: (name: string): string => `touch ${join(folder, name)}`,
    /** Every mark left so far. */
    tripped: (): string[] => readdirSync(folder),
    sprung: (name: string): boolean => existsSync(join(folder, name)),
  }
}

/** The answer to raw bytes. */
export interface RawAnswer {
  readonly status: number
  readonly headers: string
  readonly body: string
}

/** Opens a plain connection to the daemon. */
export const connected = async (t: Test, url: string): Promise<Socket> => {
  const { hostname, port } = new URL(url)
  const socket = createConnection(Number(port), hostname)
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const answerIn = (text: string): RawAnswer => {
  const [head = '', ...rest] = text.split('\r\n\r\n')
  return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? 0), headers: head, body: rest.join('\r\n\r\n') }
}

/**
 * Sends raw bytes from an address of this machine, and returns everything until the server closed; status 0:
 * no answer.
 */
export const rawRequest = (url: string, bytes: string | Buffer, localAddress = '127.0.0.1'): Promise<RawAnswer> =>
  new Promise(resolve => {
    const { hostname, port } = new URL(url)
    const parts: Buffer[] = []
    const socket = createConnection({ port: Number(port), host: hostname, localAddress }, () => socket.write(bytes))
    socket.setTimeout(15_000, () => socket.destroy())
    socket.on('data', part => parts.push(part as Buffer))
    socket.on('error', () => {})
    socket.on('close', () => resolve(answerIn(Buffer.concat(parts).toString())))
  })

/** A raw request head with `connection: close`, so that the answer ends with the connection. */
export const head = (method: string, target: string, headers: readonly (readonly [string, string])[]): string =>
  [
    `${method} ${target} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    'connection: close',
    '',
    '',
  ].join('\r\n')
