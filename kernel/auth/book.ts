import type { AccessSession, Invitation, Member } from '../../sdk/kernel.js'
import type { Role } from '../../sdk/types.js'
import { Kept, type KeptFiles } from '../../sdk/node/files/kept.js'
import { holds } from '../../sdk/node/access/secret.js'

/** The identity of the machine's user. */
export const LOCAL = { issuer: 'local', subject: 'owner', email: 'owner@sandbox.local' } as const

/** The roles in order, least first. */
export const RANK: { readonly [role in Role]: number } = { viewer: 0, collaborator: 1, maintainer: 2, owner: 3 }

/** A person as an identity provider (`issuer`) identifies them (`subject`). */
export interface IdentifiedPerson {
  readonly issuer: string
  readonly subject: string
  readonly email: string
  readonly name?: string
  readonly picture?: string
}

/** One stored person. */
export interface PersonRecord extends Readonly<Omit<Member, 'bound' | 'areas'>> {
  readonly areas?: readonly string[]
  /** Their identity, set at the first sign-in. */
  readonly issuer?: string
  readonly subject?: string
  /** Granted again since then: another subject with this e-mail may sign in. */
  readonly anew?: true
}

/** One stored invitation, without its code. */
export interface InvitationRecord extends Readonly<Omit<Invitation, 'areas'>> {
  readonly areas?: readonly string[]
  readonly hash: string
}

/** One stored session, without its secret. */
export interface SessionRecord extends Readonly<Omit<AccessSession, 'role' | 'name' | 'via' | 'current'>> {
  /** Who signed in, by issuer and subject; `email` only names them. */
  readonly issuer: string
  readonly subject: string
  /** How the person signed in; sessions of the login socket are never stored. */
  readonly via: AccessSession['via'] | 'socket'
  readonly hash: string
  /** Replaced secrets, valid for 10 minutes after the renewal. */
  readonly old: readonly { readonly hash: string; readonly until: number }[]
  readonly provedAt: number
}

/** One stored one-time code. */
export interface CodeRecord {
  readonly hash: string
  readonly expiresAt: number
}

/** People, invitations, codes and sessions: one document, so that a code and what it grants change in one write. */
export interface Book {
  readonly people: { readonly [email: string]: PersonRecord }
  readonly invitations: { readonly [id: string]: InvitationRecord }
  readonly codes: readonly CodeRecord[]
  readonly sessions: { readonly [id: string]: SessionRecord }
}

const EMPTY: Book = { people: {}, invitations: {}, codes: [], sessions: {} }

/** Opens the book; migrates the three documents of older daemons, which the next change writes as one. */
export const openBook = async (files: KeptFiles): Promise<Kept<Book>> => {
  const {
    value: { owner },
  } = await Kept.open<{ owner?: IdentifiedPerson & { claimedAt: number } }>(files, 'owner', {})
  const {
    value: { sessions },
  } = await Kept.open<Pick<Book, 'sessions'>>(files, 'sessions', { sessions: {} })
  const people: Book['people'] = owner ? { [owner.email]: ownerOf(owner, owner.claimedAt) } : {}
  return Kept.open<Book>(files, 'access', { ...EMPTY, people, sessions })
}

/** The row of a person who becomes the owner by claiming the sandbox. */
export const ownerOf = ({ issuer, subject, email, ...shown }: IdentifiedPerson, at: number): PersonRecord => ({
  email,
  role: 'owner',
  ...shownOf(shown),
  grantedBy: email,
  grantedAt: at,
  lastSeenAt: at,
  issuer,
  subject,
})

/** The fields of a person that are shown besides the e-mail. */
export const shownOf = ({
  name,
  picture,
}: Pick<IdentifiedPerson, 'name' | 'picture'>): Pick<IdentifiedPerson, 'name' | 'picture'> => ({
  ...(name !== undefined && { name }),
  ...(picture !== undefined && { picture }),
})

/** The owner, if there is one. */
export const findOwner = ({ people }: Book): PersonRecord | undefined =>
  Object.values(people).find(({ role }) => role === 'owner')

/** The person with this e-mail. */
export const findPerson = ({ people }: Book, email: string): PersonRecord | undefined =>
  Object.hasOwn(people, email) ? people[email] : undefined

/** Whether a record belongs to the person who signed in: same issuer and subject. */
export const isSame = (
  one: Pick<PersonRecord, 'issuer' | 'subject'>,
  { issuer, subject }: Pick<IdentifiedPerson, 'issuer' | 'subject'>,
): boolean => one.issuer === issuer && one.subject === subject

/** The areas that a person is limited to; undefined: the whole workspace. */
export const areasOf = ({ role, areas }: Pick<PersonRecord, 'role' | 'areas'>): readonly string[] | undefined =>
  RANK[role] < RANK.maintainer ? areas : undefined

/** The stored code with this hash, unless expired. Compares every one, so that timing does not show which matched. */
export const findCode = <T extends CodeRecord>(kept: readonly T[], hash: string, now: number): T | undefined => {
  const found = kept.filter(one => holds([one.hash], hash))
  if (!kept.length) holds([], hash)
  return found.find(({ expiresAt }) => expiresAt > now)
}
