import { accessTo, refuse, type Host, type ReachFolder, type Role } from '../../sdk/index.js'
import type { Invitation, Member } from '../../sdk/kernel.js'
import type { FolderReach, Holder, PersonReach } from './contract.js'

type RosterHost = Pick<Host, 'call' | 'serves'>

/** Who is on the roster or invited, with what each was granted. */
export interface Person {
  readonly email: string
  readonly role: Role
  readonly pending: boolean
  /** Absent: the whole workspace. */
  readonly areas?: readonly string[]
}

const limited = (role: Role): role is Holder['role'] => role === 'collaborator' || role === 'viewer'

const personOf = ({ email, role, areas }: Member): Person => ({
  email,
  role,
  pending: false,
  ...(limited(role) && areas && { areas }),
})

const invitedOf = ({ id, role, areas }: Invitation): Person => ({
  email: `invitation:${id}`,
  role,
  pending: true,
  ...(limited(role) && areas && { areas }),
})

/** Everybody on the roster, and the open invitations. */
export const people = async ({ call, serves }: RosterHost): Promise<Person[]> => {
  if (!(await serves('members.list'))) return []
  const { members, invitations } = await call('members.list')
  return [...members.map(personOf), ...invitations.map(invitedOf)]
}

/** Who holds an area. */
export const holdersOf = (roster: readonly Person[], id: string): Holder[] =>
  roster.flatMap(({ email, role, pending, areas }): Holder[] =>
    limited(role) && areas?.includes(id) ? [{ email, role, ...(pending && { pending }) }] : [],
  )

/** Which people get an area, and which lose it. */
export interface Giving {
  readonly add: readonly string[]
  readonly remove: readonly string[]
  readonly narrow: boolean
}

/**
 * The new areas of each person whose areas change; refuses everything if one change is not possible, and names the
 * people.
 */
export const given = (
  roster: readonly Person[],
  id: string,
  { add, remove, narrow }: Giving,
): { email: string; areas: string[] }[] => {
  const named = (emails: readonly string[]) => [...new Set(emails.map(email => email.trim().toLowerCase()))]
  const [adds, removes] = [named(add), named(remove)]
  if (adds.length + removes.length === 0) refuse('invalid', 'expected people in add or in remove, found neither')
  const both = adds.filter(email => removes.includes(email))
  if (both.length) refuse('invalid', `${both.join(', ')}: expected in add or in remove, found in both`)
  const found = new Map(roster.filter(({ pending }) => !pending).map(person => [person.email.toLowerCase(), person]))
  const refuseAll = (
    reason: 'not-found' | 'conflict' | 'unprocessable',
    which: (email: string) => boolean,
    why: string,
    emails = adds,
  ) => {
    const wrong = emails.filter(which)
    if (wrong.length) refuse(reason, `${wrong.join(', ')}: ${why} (nothing was changed)`, { fields: { people: wrong } })
  }
  refuseAll('not-found', email => !found.has(email), 'not on the roster', [...adds, ...removes])
  refuseAll(
    'unprocessable',
    email => !limited(found.get(email)!.role),
    'a maintainer or the owner is never limited to areas',
  )
  refuseAll(
    'conflict',
    email => found.get(email)!.areas === undefined && !narrow,
    'has the whole workspace, and holding an area would take the rest away: pass narrow if that is meant',
  )
  const changes = [
    ...adds.map(email => ({ ...found.get(email)!, next: [...new Set([...(found.get(email)!.areas ?? []), id])] })),
    ...removes
      .filter(email => found.get(email)!.areas?.includes(id))
      .map(email => ({ ...found.get(email)!, next: found.get(email)!.areas!.filter(each => each !== id) })),
  ]
  return changes
    .filter(({ areas, next }) => areas?.length !== next.length)
    .map(({ email, next }) => ({ email, areas: next }))
}

/** The folders that each area grants now. */
export type Grants = ReadonlyMap<string, readonly ReachFolder[]>

/** How far a person reaches at a path. A viewer only reads, whatever an area says. */
export const reachAt = ({ email, role, areas }: Person, grants: Grants, path: string): PersonReach => {
  if (!areas) return { email, role, access: role === 'viewer' ? 'read' : 'work', via: [] }
  const held = areas.flatMap(id => (grants.has(id) ? [{ id, folders: grants.get(id)! }] : []))
  const via = held.filter(({ folders }) => accessTo(folders, path) !== undefined).map(({ id }) => id)
  const access = accessTo(
    held.flatMap(({ folders }) => folders),
    path,
  )
  return { email, role, access: access === undefined ? 'none' : capped(role, access), via }
}

/** Every folder a person reaches, and through which areas. */
export const foldersReached = (
  { role, areas }: Person,
  grants: Grants,
  reach: readonly ReachFolder[],
): FolderReach[] => {
  if (!areas) return [{ path: '.', access: role === 'viewer' ? 'read' : 'work', via: [] }]
  return reach.map(({ path, access }) => ({
    path,
    access: capped(role, access),
    via: areas.filter(id => accessTo(grants.get(id) ?? [], path) !== undefined),
  }))
}

const capped = (role: Role, access: ReachFolder['access']): ReachFolder['access'] =>
  role === 'viewer' ? 'read' : access
