import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { OPERATIONS, type Operation } from './schema.js'

interface Route {
  readonly operation: Operation
  readonly segments: readonly string[]
}

/** Statuses of requests refused before their operation is known; no operation declares them. */
export const OF_NO_OPERATION: ReadonlySet<number> = new Set([405, 408, 431])

const routes: readonly Route[] = OPERATIONS.map(operation => ({ operation, segments: operation.path.split('/') }))

const fits = ({ segments }: Route, path: readonly string[]): boolean =>
  segments.length === path.length
  && segments.every((segment, at) => (segment.startsWith('{') ? path[at] !== '' : segment === path[at]))

/** Literal segments take precedence over parameters. */
const parameters = ({ segments }: Route): number => segments.filter(segment => segment.startsWith('{')).length

/** The operation of the document that serves a request; undefined: none. */
export const operationOf = (method: string, target: string): Operation | undefined => {
  const path = target.split('?')[0]!.split('/')
  const found = routes.filter(
    route => route.operation.method === (method === 'HEAD' ? 'GET' : method) && fits(route, path),
  )
  return found.sort((a, b) => parameters(a) - parameters(b))[0]?.operation
}

const watched = new Map<number, (call: string) => boolean>()

/**
 * Fails a test in which the daemon on a port answers a call it serves with a status that the document does not declare.
 */
export const checkAnswers = (port: number, serves: (call: string) => boolean): void => {
  if (watched.size === 0) subscribe('http.server.response.finish', message => check(message as Exchange))
  watched.set(port, serves)
}

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const check = ({ request: { method = '', url = '', socket }, response: { statusCode } }: Exchange): void => {
  const serves = watched.get(socket.localPort ?? 0)
  if (!serves || statusCode < 400 || OF_NO_OPERATION.has(statusCode)) return
  const operation = operationOf(method, url)
  if (!operation || !serves(operation.call) || Object.hasOwn(operation.responses, statusCode)) return
  throw new Error(
    `${operation.call} answered ${statusCode}, which the document does not declare: add a line "- ${statusCode}: `
      + '…" to its docstring',
  )
}
