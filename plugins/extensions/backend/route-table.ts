import type { Caller, Role } from '../../../sdk/types.js'
import { refuse } from '../../../sdk/index.js'
import {
  parametersOf,
  patternHolds,
  routePattern,
  type ManifestEntries,
  type RoutePattern,
} from '../../../sdk/node/extension/entries.js'

/** A route that a running backend serves. */
interface OwnRoute {
  readonly number: number
  readonly pattern: RoutePattern
  readonly floor: Role
  /** The lower role that it asked for without effect, because no entry of the manifest lowers it. */
  readonly asked?: Role
  /** `person`, `token`, or ids of extensions. */
  readonly to: ReadonlySet<string>
}

/** A route that answers a request. */
export interface FoundRoute {
  readonly number: number
  readonly floor: Role
  readonly to: ReadonlySet<string>
  readonly params: { readonly [name: string]: string }
}

const RANK: { readonly [role in Role]: number } = { viewer: 0, collaborator: 1, maintainer: 2, owner: 3 }
const MOST_ROUTES = 500

/** The routes of one backend. */
export class RouteTable {
  readonly #entries: ManifestEntries
  readonly #routes: OwnRoute[] = []

  constructor(entries: ManifestEntries) {
    this.#entries = entries
  }

  add({ route, entry, floor, to }: { route: number; entry: string; floor?: Role; to?: readonly string[] }): void {
    const pattern =
      routePattern(entry) ?? refuse('invalid', `entry: expected METHOD /path, found ${JSON.stringify(entry)}`)
    if (this.#routes.length >= MOST_ROUTES) refuse('too-many', `expected at most ${MOST_ROUTES} routes`)
    if (pattern.segments[0]?.startsWith('_')) refuse('invalid', 'entry: paths that begin with _ are not its own')
    const least = this.#leastFor(pattern)
    const raises = floor !== undefined && RANK[floor] >= RANK[least]
    this.#routes.push({
      ...{ number: route, pattern, floor: raises ? floor : least, to: new Set(to ?? ['person', 'token']) },
      ...(floor !== undefined && !raises && { asked: floor }),
    })
    // Literal segments take precedence over parameters and these over wildcards, as in the daemon's own routes.
    this.#routes.sort((one, other) => rank(one) - rank(other))
  }

  remove(number: number): void {
    const at = this.#routes.findIndex(route => route.number === number)
    if (at >= 0) this.#routes.splice(at, 1)
  }

  clear(): void {
    this.#routes.length = 0
  }

  /** What its routes asked for and do not get, as sentences. */
  get problems(): string[] {
    return this.#routes.flatMap(({ pattern: { entry }, floor, asked }) =>
      asked === undefined
        ? []
        : [
            `its route ${entry} answers from role ${floor} on: floor ${asked} has no effect without `
              + `"serve:${asked}:${entry}" in permissions.sandbox`,
          ],
    )
  }

  /** The route of a request; undefined: none. */
  find(method: string, path: readonly string[]): FoundRoute | undefined {
    const found = this.#routes.find(({ pattern }) => patternHolds(pattern, method, path))
    return found && { ...found, params: parametersOf(found.pattern, path) }
  }

  /** The role that a route needs at least: lowered only by the manifest. */
  #leastFor(pattern: RoutePattern): Role {
    const lowered = this.#entries.serve.find(
      ({ pattern: served }) => served.method === pattern.method && sameSegments(served.segments, pattern.segments),
    )
    return lowered?.role ?? (pattern.method === 'GET' ? 'viewer' : 'maintainer')
  }
}

/** Whether two patterns are the same apart from the names of their parameters. */
const sameSegments = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((segment, at) => plain(segment) === plain(other[at]!))

const plain = (segment: string): string => segment.replace(/^\{\w+\}$/, '{}')

const rank = ({ pattern }: OwnRoute): number =>
  pattern.segments.reduce(
    (sum, segment) => sum * 4 + (segment === '**' ? 3 : segment.includes('*') ? 2 : /^\{/.test(segment) ? 1 : 0),
    0,
  )

/** Refuses a caller that a route does not serve. */
export const admitToRoute = (caller: Caller, role: Role, { floor, to }: FoundRoute): void => {
  const kind = caller.kind === 'extension' ? caller.actor.slice('extension:'.length) : callerKind(caller)
  if (kind === 'turn' ? !to.has('person') : !to.has(kind))
    refuse('forbidden', `this route of the extension does not answer a caller of kind ${callerKind(caller)}`)
  if (RANK[role] < RANK[floor])
    refuse('forbidden', `this route of the extension needs role ${floor}, found role ${role}`)
}

/** The kind of a caller as extensions see it. */
export const callerKind = ({ kind }: Caller): 'person' | 'token' | 'turn' | 'extension' =>
  kind === 'token'
    ? 'token'
    : kind === 'extension'
      ? 'extension'
      : kind === 'turn' || kind === 'run'
        ? 'turn'
        : 'person'
