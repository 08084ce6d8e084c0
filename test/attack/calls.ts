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

const VALUES: { readonly [parameter: string]: string } = { id: 'c-1', repo: 'root' }

const fill = (path: string): string => path.replace(/\{(\w+)\}/g, (_, name: string) => VALUES[name] ?? 'x')

/** Every routed call, as the manifests say it. */
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

/** Every method some route takes at a path, a word of one route being the parameter of another. */
export const methodsAt = (path: string): ReadonlySet<string> =>
  new Set(
    ROUTED.filter(({ call }) => new RegExp(`^${call.split(' ')[1]!.replace(/\{\w+\}/g, '[^/]+')}$`).test(path)).map(
      ({ method }) => method,
    ),
  )

/**
 * Whether another route has a parameter where a call has a word: another word leads there, and by that route's access.
 */
export const isShadow = ({ call, path, method }: Routed): boolean =>
  ROUTED.some(
    other =>
      other.call !== call
      && other.method === method
      && methodsAt(path).has(method)
      && new RegExp(`^${other.call.split(' ')[1]!.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )

/** The scopes that reach a call; an open one asks for none. */
export const scopesOf = ({ access }: Routed): readonly Scope[] | 'open' => ('open' in access ? 'open' : access.tokens)

/** Whether a call is reached with a ticket alone, which is judged before everything else that is sent. */
export const takesTicket = ({ access }: Routed): boolean => 'open' in access && access.ticket !== undefined

/** A daemon that records which routed calls were reached, without executing them. */
export interface Guarded extends Support {
  /** The calls reached since it was last asked. */
  reached(): string[]
}

/** A daemon with every group, whose calls end just before their handlers. */
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

/** A fresh session of the owner: one credential may ask only so often a minute. */
export const freshSession = ({ auth }: Support): string => auth.openLocal('attack').token
