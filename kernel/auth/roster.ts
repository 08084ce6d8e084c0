import { LOCAL_DOMAIN } from '../../sdk/node/access/local-domain.js'
import { randomBytes } from 'node:crypto'
import type { Invitation, Member } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import type { Role } from '../../sdk/types.js'
import { hashOf } from '../../sdk/node/access/secret.js'
import { areasOf, type Book, findOwner, findPerson, type InvitationRecord, type PersonRecord, RANK } from './book.js'

const DAY = 24 * 60 * 60_000
const INVITED = 7 * DAY
const LONGEST = 30 * DAY
const OPEN = 50

/** A role given to a person, or to the holder of an invitation. */
export interface Grant {
  readonly role: Role
  readonly areas?: readonly string[]
}

/** The book after an edit, and the people whose access it reduced. */
export interface Edited {
  readonly book: Book
  readonly shrunk: readonly string[]
}

/** Gives a person a role, also that of the owner; keeps exactly one owner. */
export const grant = (book: Book, email: string, given: Grant, by: string, now: number): Edited => {
  const owner = findOwner(book)
  const known = findPerson(book, email)
  if (known && known === owner)
    refuse('unprocessable', 'the owner cannot change their own role: hand ownership over to another person first')
  if (given.role === 'owner') return handOver(book, known, email, by, now)
  if (!known && email.endsWith(`@${LOCAL_DOMAIN}`)) {
    refuse(
      'unprocessable',
      `e-mails at ${LOCAL_DOMAIN} cannot sign in with a provider: make an invitation by leaving email out`,
    )
  }
  const { areas: _, anew: __, ...kept } = known ?? { email }
  const row: PersonRecord = {
    ...kept,
    ...limited(given),
    grantedBy: by,
    grantedAt: now,
    ...(known?.subject !== undefined && { anew: true }),
  }
  return replaced(book, known, row)
}

const handOver = (book: Book, known: PersonRecord | undefined, email: string, by: string, now: number): Edited => {
  if (known?.subject === undefined)
    return refuse('conflict', `${email} has never signed in here: only a person who has signed in can become the owner`)
  const { areas: _, anew: __, ...person } = known
  const owner = findOwner(book)
  const made = replaced(book, known, { ...person, role: 'owner', grantedBy: by, grantedAt: now })
  return owner ? replaced(made.book, owner, { ...owner, role: 'maintainer', grantedBy: by, grantedAt: now }) : made
}

/** Limits people to areas or lifts the limit, all in one edit or none. */
export const limit = (
  book: Book,
  people: readonly { readonly email: string; readonly areas?: readonly string[] }[],
): Edited =>
  people.reduce<Edited>(
    (edited, { email, areas }) => {
      const { book: next, shrunk } = limitOne(edited.book, email, areas)
      return { book: next, shrunk: [...edited.shrunk, ...shrunk] }
    },
    { book, shrunk: [] },
  )

const limitOne = (book: Book, email: string, areas: readonly string[] | undefined): Edited => {
  const known =
    findPerson(book, email) ?? refuse('not-found', `expected somebody on the roster, found nobody called ${email}`)
  const { areas: _, ...person } = known
  return replaced(book, known, { ...person, ...limited({ role: known.role, ...(areas && { areas }) }) })
}

/** Removes a person and their sessions. */
export const remove = (book: Book, email: string): Book => {
  const known =
    findPerson(book, email) ?? refuse('not-found', `expected somebody on the roster, found nobody called ${email}`)
  if (known.role === 'owner')
    refuse('conflict', 'the owner cannot be removed: hand ownership over first, with POST /members and role owner')
  const { [email]: gone, ...people } = book.people
  return {
    ...book,
    people,
    sessions: Object.fromEntries(Object.entries(book.sessions).filter(([, session]) => session.email !== email)),
  }
}

/** Makes an invitation; only this result contains its code. */
export const invite = (
  book: Book,
  asked: Grant & { readonly note?: string; readonly expiresAt?: number },
  by: string,
  now: number,
): { book: Book; code: string; made: InvitationRecord } => {
  const { role, note, expiresAt = now + INVITED } = asked
  if (role === 'owner')
    return refuse(
      'unprocessable',
      'an invitation cannot grant role owner: send the email of a person who has signed in',
    )
  if (expiresAt <= now || expiresAt > now + LONGEST) {
    const errors = [{ path: 'expiresAt', expected: 'a time within the next 30 days', value: String(expiresAt) }]
    refuse('invalid', `expiresAt: expected a time within the next 30 days, found ${expiresAt}`, { errors })
  }
  const open = openInvitations(book, now)
  if (open.length >= OPEN) refuse('too-many', `expected at most ${OPEN} open invitations; withdraw one first`)
  const code = randomBytes(32).toString('base64url')
  const id = randomBytes(9).toString('base64url')
  const end = { createdBy: by, createdAt: now, expiresAt, hash: hashOf(code) }
  const made: InvitationRecord = { id, ...limited({ ...asked, role }), role, ...(note && { note }), ...end }
  return { book: { ...book, invitations: Object.fromEntries([...open, made].map(one => [one.id, one])) }, code, made }
}

/** Withdraws an open invitation. */
export const withdraw = (book: Book, id: string, now: number): Book => {
  const left = openInvitations(book, now)
  if (!left.some(one => one.id === id))
    refuse('not-found', `expected an open invitation, found none called ${JSON.stringify(id.slice(0, 40))}`)
  return { ...book, invitations: Object.fromEntries(left.filter(one => one.id !== id).map(one => [one.id, one])) }
}

/** The invitations that can still be redeemed, oldest first. */
export const openInvitations = ({ invitations }: Book, now: number): InvitationRecord[] =>
  Object.values(invitations).filter(({ expiresAt }) => expiresAt > now)

/** The roster for callers: the owner first, then by e-mail; open invitations without their codes. */
export const shownRoster = (
  book: Book,
  seenAt: (email: string) => number | undefined,
  now: number,
): { members: Member[]; invitations: Invitation[] } => {
  const members = Object.values(book.people).map((person): Member => {
    const { issuer, subject, anew, areas, lastSeenAt = 0, ...row } = person
    const seen = Math.max(lastSeenAt, seenAt(person.email) ?? 0)
    return { ...row, ...listed(areasOf(person)), ...(seen > 0 && { lastSeenAt: seen }), bound: subject !== undefined }
  })
  members.sort((a, b) => Number(b.role === 'owner') - Number(a.role === 'owner') || (a.email < b.email ? -1 : 1))
  const invitations = openInvitations(book, now).map(({ hash, areas, ...row }): Invitation => ({
    ...row,
    ...listed(areas),
  }))
  return { members, invitations }
}

const listed = (areas: readonly string[] | undefined): { areas?: string[] } => (areas ? { areas: [...areas] } : {})

/** A role with its areas, without duplicates; roles from maintainer up have none. */
const limited = ({ role, areas }: Grant): Grant => ({
  role,
  ...(areas && RANK[role] < RANK.maintainer && { areas: [...new Set(areas)] }),
})

const replaced = (book: Book, before: PersonRecord | undefined, row: PersonRecord): Edited => ({
  book: { ...book, people: { ...book.people, [row.email]: row } },
  shrunk: before && reachesLess(before, row) ? [row.email] : [],
})

const reachesLess = (before: PersonRecord, after: PersonRecord): boolean => {
  const [had, has] = [areasOf(before), areasOf(after)]
  return (
    RANK[after.role] < RANK[before.role]
    || (has !== undefined && (had === undefined || had.some(area => !has.includes(area))))
  )
}
