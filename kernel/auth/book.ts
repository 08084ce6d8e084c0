import type { AccessSession, Invitation, Member } from '../../sdk/kernel.js'
import type { Role } from '../../sdk/types.js'
import { Kept, type KeptFiles } from '../../sdk/node/files/kept.js'
import { holds } from '../../sdk/node/access/secret.js'

/** The identity of the machine's user. */
export const LOCAL = { issuer: 'local', subject: 'owner', email: 'owner@sandbox.local' } as const

/** What each role reaches, least first. */
export const RANK: { readonly [role in Role]: number } = { viewer: 0, collaborator: 1, maintainer: 2, owner: 3 }

/** A person, by who vouches for them and under which name. */
export interface IdentifiedPerson {
  readonly issuer: string
  readonly subject: string
  readonly email: string
  readonly name?: string
  readonly picture?: string
}

/** One person as kept. */
export interface PersonRecord extends Readonly<Omit<Member, 'bound' | 'areas'>> {
  readonly areas?: readonly string[]
  /** Who they turned out to be at their first sign-in. */
  readonly issuer?: string
  readonly subject?: string
  /** Granted again since: another subject with this e-mail may take the place. */
  readonly anew?: true
}

/** One invitation as kept: never its code. */
export interface InvitationRecord extends Readonly<Omit<Invitation, 'areas'>> {
  readonly areas?: readonly string[]
  readonly hash: string
}

/** One session as kept: never its secret. */
export interface SessionRecord extends Readonly<Omit<AccessSession, 'role' | 'name' | 'via' | 'current'>> {
  /** Who signed in, by issuer and subject; the e-mail is how they are named. */
  readonly issuer: string
  readonly subject: string
  /** What proved it; the login socket opens sessions that are never on the disk. */
  readonly via: AccessSession['via'] | 'socket'
  readonly hash: string
  /** Secrets a renewal replaced, good for some minutes more. */
  readonly old: readonly { readonly hash: string; readonly until: number }[]
  readonly provedAt: number
}

/** A one-time code as kept. */
export interface CodeRecord {
  readonly hash: string
  readonly expiresAt: number
}

/** Who may come in: one document, so that what a code bought and the code itself change in one write. */
export interface Book {
  readonly people: { readonly [email: string]: PersonRecord }
  readonly invitations: { readonly [id: string]: InvitationRecord }
  readonly codes: readonly CodeRecord[]
  readonly sessions: { readonly [id: string]: SessionRecord }
}

const EMPTY: Book = { people: {}, invitations: {}, codes: [], sessions: {} }

/** Opens the book; what an older daemon kept in three documents becomes one with the next change. */
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

/** The row of a person who becomes the owner by coming first. */
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

/** What is shown of a person beside the e-mail. */
export const shownOf = ({
  name,
  picture,
}: Pick<IdentifiedPerson, 'name' | 'picture'>): Pick<IdentifiedPerson, 'name' | 'picture'> => ({
  ...(name !== undefined && { name }),
  ...(picture !== undefined && { picture }),
})

/** The owner, once there is one. */
export const findOwner = ({ people }: Book): PersonRecord | undefined =>
  Object.values(people).find(({ role }) => role === 'owner')

/** The person of an e-mail. */
export const findPerson = ({ people }: Book, email: string): PersonRecord | undefined =>
  Object.hasOwn(people, email) ? people[email] : undefined

/** Whether a record is of the very person who signed in. */
export const isSame = (
  one: Pick<PersonRecord, 'issuer' | 'subject'>,
  { issuer, subject }: Pick<IdentifiedPerson, 'issuer' | 'subject'>,
): boolean => one.issuer === issuer && one.subject === subject

/** The areas a person is limited to; undefined: none, the whole workspace is theirs. */
export const areasOf = ({ role, areas }: Pick<PersonRecord, 'role' | 'areas'>): readonly string[] | undefined =>
  RANK[role] < RANK.maintainer ? areas : undefined

/** The kept code that a hash is of. Each is compared, whether one was found or not. */
export const findCode = <T extends CodeRecord>(kept: readonly T[], hash: string, now: number): T | undefined => {
  const found = kept.filter(one => holds([one.hash], hash))
  if (!kept.length) holds([], hash)
  return found.find(({ expiresAt }) => expiresAt > now)
}
