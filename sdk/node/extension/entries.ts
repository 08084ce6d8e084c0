import { matchesGlob } from 'node:path'
import { isClosedName } from '../files/closed-names.js'
import { routePattern, type RoutePattern } from '../../route-pattern.js'
import type { Role } from '../../types.js'

export { patternFor, patternHolds, routePattern, type RoutePattern } from '../../route-pattern.js'

/** The entries of a manifest's `permissions`. */
export interface DeclaredEntries {
  readonly sandbox?: readonly string[]
  readonly daemon?: readonly string[]
}

/** An own route that answers from a role on. */
export interface ServeEntry {
  readonly role: Role
  readonly pattern: RoutePattern
}

/** A host that the backend may reach. */
export interface NetEntry {
  readonly entry: string
  /** `*`: anywhere public. */
  readonly any: boolean
  readonly host: string
  readonly port?: number
}

/** What of the event `workspaceChanged` counts for a watch. */
export interface WatchedChange {
  readonly paths?: readonly string[]
  readonly conversationId?: string
}

const SERVE = /^serve:(viewer|collaborator|maintainer|owner):(.*)$/

/** The parameters of a path that a pattern holds for. */
export const parametersOf = ({ segments }: RoutePattern, path: readonly string[]): { [name: string]: string } =>
  Object.fromEntries(
    segments.flatMap((segment, at) => {
      const [, name] = /^\{(\w+)\}$/.exec(segment) ?? []
      return name === undefined ? [] : [[name, path[at]!]]
    }),
  )

const startingWith = (all: readonly string[], prefix: string): string[] =>
  all.flatMap(entry => (entry.startsWith(prefix) ? [entry.slice(prefix.length)] : []))

/** What a manifest lets a backend do. */
export class ManifestEntries {
  readonly routes: readonly RoutePattern[]
  readonly serve: readonly ServeEntry[]
  readonly net: readonly NetEntry[]
  readonly programs: ReadonlySet<string>
  readonly readsConversations: boolean
  /** The cards whose connections it uses. */
  readonly connections: ReadonlySet<string>
  readonly #own: string
  readonly #reads: readonly string[]
  readonly #writes: readonly string[]
  readonly #secrets: readonly string[]
  readonly #events: readonly string[]

  constructor(id: string, { daemon = [], sandbox = [] }: DeclaredEntries = {}) {
    this.#own = `.sandbox/x/${id}`
    this.routes = daemon.flatMap(entry => routePattern(entry) ?? [])
    this.serve = sandbox.flatMap(entry => {
      const [, role, route = ''] = SERVE.exec(entry) ?? []
      const pattern = routePattern(route)
      return role === undefined || !pattern ? [] : [{ role: role as Role, pattern }]
    })
    this.net = startingWith(sandbox, 'net:').map(netEntry)
    this.programs = new Set(startingWith(sandbox, 'run:'))
    this.readsConversations = sandbox.includes('conversation:read')
    this.connections = new Set(startingWith(sandbox, 'connection:'))
    this.#reads = startingWith(sandbox, 'fs:read:')
    this.#writes = startingWith(sandbox, 'fs:write:')
    this.#secrets = startingWith(sandbox, 'secret:')
    this.#events = startingWith(sandbox, 'event:')
  }

  /** The folder of the workspace that is its own. */
  get ownFolder(): string {
    return this.#own
  }

  /** The globs of workspace paths that it may read, or write. */
  globs(mode: 'read' | 'write'): readonly string[] {
    return mode === 'write' ? this.#writes : [...this.#reads, ...this.#writes]
  }

  /** The entry that lets it read or write a workspace path; undefined: none. */
  file(mode: 'read' | 'write', path: string): string | undefined {
    if (path === this.#own || path.startsWith(`${this.#own}/`)) return this.#own
    if (isClosedName(path.split('/'))) return undefined
    const found = (globs: readonly string[]) => globs.find(glob => globHolds(glob, path))
    const write = found(this.#writes)
    if (write !== undefined) return `fs:write:${write}`
    const read = mode === 'read' ? found(this.#reads) : undefined
    return read === undefined ? undefined : `fs:read:${read}`
  }

  /** Whether everything below a folder may be read or written. */
  holdsBelow(mode: 'read' | 'write', folder: string): boolean {
    return [UNLIKELY, `${UNLIKELY}/${UNLIKELY}`].every(below => this.file(mode, `${folder}/${below}`) !== undefined)
  }

  /** Whether changes of what a glob names may be told: an entry names it, or all of the folder that it begins with. */
  mayWatch(glob: string): boolean {
    const folder = glob
      .split('/')
      .slice(
        0,
        glob.split('/').findIndex(part => part.includes('*')),
      )
      .join('/')
    return this.globs('read').includes(glob) || this.file('read', glob) !== undefined || this.leads(folder || '.')
  }

  /** Of the changed paths of an event those that the watch of a glob is called with; none of a private copy. */
  watched(glob: string, { paths = [], conversationId }: WatchedChange): string[] {
    if (conversationId !== undefined) return []
    return paths.filter(path => globHolds(glob, path) && this.file('read', path) !== undefined)
  }

  /** Whether a path below this folder may be readable. */
  leads(folder: string): boolean {
    const path = folder === '.' ? [] : folder.split('/')
    return [this.#own, ...this.globs('read')].some(glob => {
      const segments = glob.split('/')
      const deep = segments.indexOf('**')
      const most = deep < 0 ? segments.length - 1 : path.length
      return (
        path.length <= most
        && path.every((name, at) => (deep >= 0 && at >= deep) || matchesGlob(name, escaped(segments[at]!)))
      )
    })
  }

  /** The entry for a stored secret. */
  secret(name: string): string | undefined {
    return byStar('secret:', this.#secrets, name)
  }

  /** The entry for a kind of events. */
  event(kind: string): string | undefined {
    return byStar('event:', this.#events, kind)
  }
}

/** `KEY`, or the beginning of one before a `*`. */
const byStar = (prefix: string, all: readonly string[], name: string): string | undefined => {
  const found = all.find(entry => (entry.endsWith('*') ? name.startsWith(entry.slice(0, -1)) : entry === name))
  return found === undefined ? undefined : prefix + found
}

/** `*` within a segment, `**` for any depth; nothing else of a glob has a meaning. */
const globHolds = (glob: string, path: string): boolean => matchesGlob(path, escaped(glob))

const escaped = (glob: string): string => glob.replaceAll(/[[\]{}()?!+@\\]/g, '\\$&')

/** A name that a glob holds for only by a `*`. */
const UNLIKELY = '\u0001any'

const netEntry = (text: string): NetEntry => {
  const [, bracketed, plain = '', port] = /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text) ?? []
  const host = (bracketed ?? (plain || (port === undefined ? text : ''))).toLowerCase().replace(/\.$/, '')
  return { entry: `net:${text}`, any: host === '*', host, ...(port !== undefined && { port: Number(port) }) }
}
