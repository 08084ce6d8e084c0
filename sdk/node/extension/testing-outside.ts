import { refuse } from '../../refusal.js'
import { deny } from './denied.js'
import type { ManifestEntries } from './entries.js'
import type { HostFetchInput, HostOperations, OperationInput, OperationOutput, StreamRef } from './protocol.js'

/** A connection as the test answers it. */
export interface TestedSocket {
  /** What the other side sends. */
  readonly frames: AsyncIterable<string | Uint8Array>
  /** Receives what the extension sends. */
  send(data: string | Uint8Array): void
  /** The extension closed it. */
  close?(): void
}

/** What stands in for servers, connections and programs. */
export interface OutsideFakes {
  /** Answers every request to a server that a `net:` entry names. */
  readonly fetch?: (request: HostFetchInput) => { status?: number; headers?: { [name: string]: string }; body?: string }
  /** Opens every connection to what a `net:` entry names. */
  readonly connect?: (target: OperationInput<HostOperations, 'connect'>) => TestedSocket
  /** Runs the programs that `run:` entries name. */
  readonly run?: (command: OperationInput<HostOperations, 'processes.run'>) => {
    code?: number
    stdout?: string
    stderr?: string
  }
}

type Names = 'fetch' | 'connect' | 'socket.send' | 'socket.close' | 'processes.run'
type Handlers = { [O in Names]: (input: OperationInput<HostOperations, O>) => OperationOutput<HostOperations, O> }

const SECURE = new Set(['https:', 'wss:'])

/** The operations that leave the machine or start a program: the entries are checked, the test answers. */
export const testedOutside = (
  entries: Pick<ManifestEntries, 'netFor' | 'programs'>,
  fakes: OutsideFakes,
  offer: (items: AsyncIterable<unknown>) => StreamRef,
): Handlers => {
  const open = new Map<number, TestedSocket>()
  let next = 0
  const assertNamed = (host: string, port: number): void => {
    if (!entries.netFor(host.replace(/^\[(.*)\]$/, '$1'), port)) deny(`net:${host}:${port}`)
  }
  const assertUrl = (text: string): void => {
    const { hostname, port, protocol } = new URL(text)
    assertNamed(hostname, Number(port || (SECURE.has(protocol) ? 443 : 80)))
  }
  return {
    fetch: request => {
      assertUrl(request.url)
      const { status = 200, headers = {}, body = '' } = fakes.fetch?.(request) ?? noFake('fetch')
      return { status, headers, url: request.url, body: offer(onePiece(Buffer.from(body))) }
    },
    connect: target => {
      const { host, port, url } = target
      if (url !== undefined) assertUrl(url)
      else if (host !== undefined && port !== undefined) assertNamed(host, port)
      else refuse('invalid', 'expected host and port, or url')
      const connection = fakes.connect?.(target) ?? noFake('connect')
      open.set(++next, connection)
      return { socket: next, frames: offer(connection.frames) }
    },
    'socket.send': ({ socket, data }) => {
      const connection = open.get(socket) ?? refuse('not-found', 'this connection is closed')
      connection.send(data as string | Uint8Array)
      return {}
    },
    'socket.close': ({ socket }) => {
      const connection = open.get(socket)
      open.delete(socket)
      connection?.close?.()
      return {}
    },
    'processes.run': command => {
      if (!entries.programs.has(command.program)) deny(`run:${command.program}`)
      const { code = 0, stdout = '', stderr = '' } = fakes.run?.(command) ?? noFake('run')
      return { code, stdout: Buffer.from(stdout), stderr: Buffer.from(stderr), truncated: false }
    },
  }
}

const noFake = (name: string): never => {
  throw new Error(`the test has no fake for ${name}`)
}

/** A stream of one piece, or of none when it is empty. */
export async function* onePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  if (bytes.length > 0) yield bytes
}
