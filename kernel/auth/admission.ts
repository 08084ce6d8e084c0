import { LOCAL_DOMAIN } from '../../sdk/node/access/local-domain.js'
import { randomBytes } from 'node:crypto'
import { refuse } from '../../sdk/refusal.js'
import { hashOf, holds } from '../../sdk/node/access/secret.js'
import {
  type Book,
  findCode,
  findOwner,
  findPerson,
  type IdentifiedPerson,
  isSame,
  LOCAL,
  ownerOf,
  type PersonRecord,
  RANK,
  shownOf,
} from './book.js'
import { openInvitations } from './roster.js'

/** What a person presents to sign in. */
export interface Proof {
  /** A one-time code from the login socket. */
  readonly login?: string
  /** The identity that an identity provider confirms. */
  readonly person?: IdentifiedPerson
  readonly claim?: string
  readonly invite?: string
  /** The display name of an invited person who signs in without a provider. */
  readonly name?: string
}

/** What the decision depends on besides the book and the proof. */
export interface Rules {
  readonly now: number
  /** The hash of the claim code, while the sandbox has one. */
  readonly claimHash?: string | undefined
  /** Whether the first person to sign in must send that code. */
  readonly claimNeeded: boolean
  readonly expectedOwner?: string | undefined
}

/** An accepted proof: the book after its use, and the person in it. */
export interface Admitted {
  readonly book: Book
  readonly person: PersonRecord & Pick<IdentifiedPerson, 'issuer' | 'subject'>
  readonly via: 'oidc' | 'local' | 'invitation'
  readonly did?: 'claimed' | 'joined' | undefined
}

/** A code that is unknown, used or expired; the answer does not say which. */
export class BadCode extends Error {}

/** Checks a proof against the book. Refuses or throws BadCode, without any change. */
export const admitProof = (book: Book, proof: Proof, rules: Rules): Admitted => {
  if (proof.login !== undefined) return byLogin(book, proof.login, rules)
  if (proof.claim !== undefined && findOwner(book)) {
    refuse('conflict', 'the sandbox already has an owner, so no claim code is taken; leave claim out')
  }
  if (proof.person) return byIdentity(book, proof.person, proof, rules)
  return byInvitation(book, proof.invite ?? unknown(), proof.name ?? '', rules)
}

/** A login code signs in as the owner, also after a claim: the machine's user controls the sandbox anyway. */
const byLogin = (book: Book, login: string, { now }: Rules): Admitted => {
  const code = findCode(book.codes, hashOf(login), now) ?? unknown()
  const owner = findOwner(book)
  const spent = { ...book, codes: book.codes.filter(one => one !== code) }
  return owner
    ? seated(spent, owner, { ...LOCAL, ...owner }, 'local', now)
    : seated(spent, ownerOf(LOCAL, now), LOCAL, 'local', now, 'claimed')
}

const byIdentity = (book: Book, person: IdentifiedPerson, { claim, invite }: Proof, rules: Rules): Admitted => {
  const { now, claimHash, claimNeeded, expectedOwner } = rules
  if (!findOwner(book)) {
    if (expectedOwner !== undefined && person.email !== expectedOwner)
      refuse(
        'forbidden',
        `${person.email} has no role here: only the e-mail in identity.expectedOwner can become the owner`,
      )
    if (claim === undefined && claimNeeded) {
      refuse(
        'conflict',
        'this sandbox has no owner yet and needs its claim code: send claim with the code that the '
          + 'daemon printed on its terminal at start',
      )
    }
    if (
      invite !== undefined
      || (claim !== undefined && !holds(claimHash === undefined ? [] : [claimHash], hashOf(claim.trim().toUpperCase())))
    )
      throw new BadCode()
    return seated(book, ownerOf(person, now), person, 'oidc', now, 'claimed')
  }
  const redeemed = invite === undefined ? undefined : redeem(book, invite, now)
  const known = Object.values(book.people).find(one => isSame(one, person)) ?? findPerson(book, person.email)
  if (known?.subject !== undefined && !isSame(known, person) && !known.anew) {
    refuse('forbidden', `${person.email} is bound to another account of its provider: ask the owner to grant it again`)
  }
  if (!known && !redeemed)
    return refuse('forbidden', `${person.email} has no role here: ask the owner to grant one, or for an invitation`)
  if (!redeemed) return seated(book, known!, person, 'oidc', now, known!.subject === undefined ? 'joined' : undefined)
  if (known?.role === 'owner') refuse('conflict', 'the owner of the sandbox needs no invitation; it is still valid')
  const { granted } = redeemed
  const { areas: before, ...rest } = known ?? { email: person.email }
  const row = known && RANK[known.role] > RANK[granted.role] ? known : { ...rest, ...granted }
  return seated(redeemed.book, row, person, 'oidc', now, 'joined')
}

/** Signs in a person without a provider: the invitation alone identifies them, by a generated unique e-mail. */
const byInvitation = (book: Book, code: string, name: string, { now }: Rules): Admitted => {
  const redeemed = redeem(book, code, now)
  const letters =
    name
      .normalize('NFKD')
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-+|-+$/g, '')
      .slice(0, 40) || 'guest'
  const email = `${letters}-${randomBytes(4).toString('hex')}@${LOCAL_DOMAIN}`
  if (findPerson(book, email)) return byInvitation(book, code, name, { now, claimNeeded: false })
  const person: IdentifiedPerson = { issuer: LOCAL.issuer, subject: randomBytes(16).toString('base64url'), email, name }
  return seated(redeemed.book, { email, ...redeemed.granted }, person, 'invitation', now, 'joined')
}

/** Removes an invitation from the book and returns what it grants. */
const redeem = (book: Book, code: string, now: number): { book: Book; granted: Omit<PersonRecord, 'email'> } => {
  const { id, role, areas, createdBy } = findCode(openInvitations(book, now), hashOf(code), now) ?? unknown()
  const { [id]: used, ...invitations } = book.invitations
  return {
    book: { ...book, invitations },
    granted: { role, ...(areas && { areas }), grantedBy: createdBy, grantedAt: now },
  }
}

const unknown = (): never => {
  throw new BadCode()
}

/** Stores a person's current identity in the book; ends the sessions of another person who held this row before. */
const seated = (
  book: Book,
  row: PersonRecord,
  person: IdentifiedPerson,
  via: Admitted['via'],
  now: number,
  did?: Admitted['did'],
): Admitted => {
  const { anew, ...kept } = row
  const { issuer, subject } = person
  const seat = { ...kept, ...shownOf(person), lastSeenAt: now, issuer, subject }
  const sessions =
    row.subject === undefined || isSame(row, person)
      ? book.sessions
      : Object.fromEntries(Object.entries(book.sessions).filter(([, session]) => session.email !== row.email))
  return { book: { ...book, people: { ...book.people, [row.email]: seat }, sessions }, person: seat, via, did }
}
