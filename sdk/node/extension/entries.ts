import { matchesGlob } from 'node:path'
import { isClosedName } from '../files/closed-names.js'
import { plainAddress } from '../network/addresses.js'
import type { RoutePattern } from '../../route-pattern.js'
import type { Role } from '../../types.js'
import { isStoredKey, permissionsOf, permissionsOfKind, type DeclaredEntries } from './permission-kinds.js'

export { patternFor, patternHolds, routePattern, type RoutePattern } from '../../route-pattern.js'
export type { DeclaredEntries } from './permission-kinds.js'

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

/** The parameters of a path that a pattern holds for. */
export const parametersOf = ({ segments }: RoutePattern, path: readonly string[]): { [name: string]: string } =>
  Object.fromEntries(
    segments.flatMap((segment, at) => {
      const [, name] = /^\{(\w+)\}$/.exec(segment) ?? []
      return name === undefined ? [] : [[name, path[at]!]]
    }),
  )

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
    this.routes = permissionsOfKind(permissionsOf('daemon', daemon), 'route').map(({ pattern }) => pattern)
    const reached = permissionsOf('sandbox', sandbox)
    this.serve = permissionsOfKind(reached, 'serve')
    this.net = permissionsOfKind(reached, 'net')
    this.programs = new Set(permissionsOfKind(reached, 'run').map(({ program }) => program))
    this.readsConversations = permissionsOfKind(reached, 'conversation').length > 0
    this.connections = new Set(permissionsOfKind(reached, 'connection').map(({ card }) => card))
    this.#reads = permissionsOfKind(reached, 'fs:read').map(({ glob }) => glob)
    this.#writes = permissionsOfKind(reached, 'fs:write').map(({ glob }) => glob)
    this.#secrets = permissionsOfKind(reached, 'secret').map(({ name }) => name)
    this.#events = permissionsOfKind(reached, 'event').map(({ name }) => name)
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
    const segments = path.split('/')
    if (isClosedName(segments) || (path !== '' && segments.includes(''))) return undefined
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
    return isStoredKey(name) ? byStar('secret:', this.#secrets, name) : undefined
  }

  /** The entry that names a host with a port: one without a wildcard before others. */
  netFor(host: string, port: number): NetEntry | undefined {
    const ofPort = this.net.filter(entry => entry.port === undefined || entry.port === port)
    // An address is the same however it is written.
    const address = plainAddress(host)
    return (
      ofPort.find(
        entry => !entry.any && (entry.host === host || (address !== undefined && plainAddress(entry.host) === address)),
      )
      ?? ofPort.find(entry => entry.host.startsWith('*.') && host.endsWith(entry.host.slice(1)))
      ?? ofPort.find(({ any }) => any)
    )
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
