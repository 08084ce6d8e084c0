import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { refuse } from '../../sdk/refusal.js'
import type { Scope } from '../../sdk/types.js'
import type { CallAccess } from '../../kernel/manifest.js'
import { daemonWith, root, type Support } from '../support/daemon.js'

/** One routed call of the manifests. */
export interface Routed {
  readonly call: string
  readonly method: string
  /** The path with its parameters filled in. */
  readonly path: string
  readonly access: CallAccess
}

const VALUES: { readonly [parameter: string]: string } = { id: 'c-1', repo: 'root', provider: 'acme' }

const fill = (path: string): string => path.replace(/\{(\w+)\}/g, (_, name: string) => VALUES[name] ?? 'x')

/** Every routed call of the manifests. */
export const ROUTED: readonly Routed[] = readdirSync(join(root, '..', 'manifests'))
  .filter(file => file.endsWith('.json') && file !== 'schema.json')
  .flatMap(file =>
    Object.entries(
      (
        JSON.parse(readFileSync(join(root, '..', 'manifests', file), 'utf8')) as {
          routes: { [call: string]: CallAccess }
        }
      ).routes,
    ),
  )
  .filter(([call]) => call.includes(' '))
  .map(([call, access]) => ({ call, method: call.split(' ')[0]!, path: fill(call.split(' ')[1]!), access }))

/** Every method that a route serves at a path, also where a literal of one route matches a parameter of another. */
export const methodsAt = (path: string): ReadonlySet<string> =>
  new Set(
    ROUTED.filter(({ call }) => new RegExp(`^${call.split(' ')[1]!.replace(/\{\w+\}/g, '[^/]+')}$`).test(path)).map(
      ({ method }) => method,
    ),
  )

/**
 * Whether another route has a parameter where a call has a literal: other values reach that route, with its access.
 */
export const isShadow = ({ call, path, method }: Routed): boolean =>
  ROUTED.some(
    other =>
      other.call !== call
      && other.method === method
      && methodsAt(path).has(method)
      && new RegExp(`^${other.call.split(' ')[1]!.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )

/** The scopes that reach a call; an open call needs none. */
export const scopesOf = ({ access }: Routed): readonly Scope[] | 'open' => ('open' in access ? 'open' : access.tokens)

/** Whether a call is reached with a ticket alone, which is checked before the rest of the request. */
export const takesTicket = ({ access }: Routed): boolean => 'open' in access && access.ticket !== undefined

/** Whether a call is reached by programs of extensions alone. */
export const isForExtensions = ({ access }: Routed): boolean => 'only' in access && access.only === 'extension'

/** Whether a call takes a body of any type, which nothing parses. */
export const takesAnyBody = ({ access }: Routed): boolean =>
  access.forms?.some(form => form === 'raw' || form === 'binary') === true

/** Whether a call judges the origins of pages itself, not by the list of the sandbox. */
export const judgesOrigins = ({ access }: Routed): boolean =>
  'open' in access && (access.anyOrigin !== undefined || access.ownOrigins !== undefined)

/** A daemon that records which routed calls were reached, without executing them. */
export interface Guarded extends Support {
  /** The calls reached since the last call of this function. */
  reached(): string[]
}

/** A daemon with every group that ends each request just before its handler. */
export const guarded = async (t: Test): Promise<Guarded> => {
  const daemon = await daemonWith(t, [], { undeclared: true })
  const { calls } = daemon.kernel
  const answer = calls.answer.bind(calls)
  let seen: string[] = []
  calls.answer = async (call, input, context) => {
    if (context.trusted || !call.includes(' ')) return answer(call, input, context)
    seen.push(call)
    return refuse('conflict', 'reached')
  }
  return { ...daemon, reached: () => [seen, (seen = [])][0]! }
}

/** A new session of the owner, because the rate of each credential is limited. */
export const freshSession = ({ auth }: Support): string => auth.openLocal('attack').token
