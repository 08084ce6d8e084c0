import fc from 'fast-check'
import t from 'tap'
import { Refusal } from '../../../sdk/refusal.js'
import type { Role } from '../../../sdk/types.js'
import { admitProof } from '../../../kernel/auth/admission.js'
import { LOCAL, ownerOf, type Book, type IdentifiedPerson, type SessionRecord } from '../../../kernel/auth/book.js'
import { grant, limit, remove, type Edited } from '../../../kernel/auth/roster.js'

const PROPERTY = { seed: 16, numRuns: 2000 }
const EMPTY: Book = { people: { [LOCAL.email]: ownerOf(LOCAL, 1) }, invitations: {}, codes: [], sessions: {} }
const AREAS = ['docs', 'src', 'web']
const ROLES: readonly Role[] = ['viewer', 'collaborator', 'maintainer']
const EMAIL = 'ann@example.org'

interface Given {
  readonly role: Role
  readonly areas?: string[]
}

const areas = fc.option(fc.subarray(AREAS), { nil: undefined })
const given = fc
  .record({ role: fc.constantFrom(...ROLES), areas })
  .map(({ role, areas }): Given => ({ role, ...(areas && { areas }) }))

/** All rights of a person: each right of a role, in each area and outside of them. */
const reached = ({ role, areas }: Given): string[] => {
  const places = areas && role !== 'maintainer' ? areas : [...AREAS, 'elsewhere']
  return ROLES.slice(0, ROLES.indexOf(role) + 1).flatMap(each => [each, ...places.map(place => `${each} in ${place}`)])
}
const lost = (before: Given, after: Given): boolean => reached(before).some(each => !reached(after).includes(each))

t.test('an edit names exactly the people who lose a right', t => {
  fc.assert(
    fc.property(given, given, (before, after) => {
      const { book } = grant(EMPTY, EMAIL, before, LOCAL.email, 1)
      const told = (edited: Edited, now: Given) =>
        edited.shrunk.length === (lost(before, now) ? 1 : 0) && edited.shrunk.every(email => email === EMAIL)
      const limited = { role: before.role, ...(after.areas && { areas: after.areas }) }
      return (
        told(grant(book, EMAIL, after, LOCAL.email, 2), after)
        && told(limit(book, [{ email: EMAIL, ...(after.areas && { areas: after.areas }) }]), limited)
      )
    }),
    PROPERTY,
  )
  t.same(grant(EMPTY, EMAIL, { role: 'viewer' }, LOCAL.email, 1).shrunk, [], 'a new person has lost nothing')
  t.end()
})

const EMAILS = [EMAIL, 'bob@example.org', 'cyd@example.org']
const person = fc.record({
  issuer: fc.constantFrom('one', 'two'),
  subject: fc.constantFrom('x', 'y'),
  email: fc.constantFrom(...EMAILS),
})
const step = fc.oneof(
  { weight: 3, arbitrary: person.map(who => ({ does: 'sign in' as const, who })) },
  {
    weight: 2,
    arbitrary: fc.record({ does: fc.constant('grant' as const), email: fc.constantFrom(...EMAILS), given }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('remove' as const), email: fc.constantFrom(...EMAILS) }) },
)
const nameOf = ({ issuer, subject }: Pick<IdentifiedPerson, 'issuer' | 'subject'>): string => `${issuer} ${subject}`

/** The book after a person signed in, with the new session. */
const withSession = (book: Book, id: string, { issuer, subject }: IdentifiedPerson, email: string): Book => {
  const session = {
    id,
    email,
    issuer,
    subject,
    via: 'oidc',
    hash: '',
    old: [],
    provedAt: 1,
    createdAt: 1,
    lastSeenAt: 1,
    expiresAt: 2,
  } as unknown as SessionRecord
  return { ...book, sessions: { ...book.sessions, [id]: session } }
}

t.test('an e-mail belongs to its first account until it is granted again, and no session outlives its account', t => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 14 }), steps => {
      let book = EMPTY
      const seats = new Map<string, { bound?: string; anew: boolean }>()
      for (const [at, each] of steps.entries()) {
        if (each.does === 'grant') {
          book = grant(book, each.email, each.given, LOCAL.email, at).book
          const bound = seats.get(each.email)?.bound
          seats.set(each.email, { ...(bound !== undefined && { bound }), anew: bound !== undefined })
        } else if (each.does === 'remove') {
          if (!seats.delete(each.email)) continue
          book = remove(book, each.email)
        } else {
          const name = nameOf(each.who)
          const email = [...seats].find(([, { bound }]) => bound === name)?.[0] ?? each.who.email
          const seat = seats.get(email)
          const admitted = seat !== undefined && (seat.bound === undefined || seat.bound === name || seat.anew)
          let entered: ReturnType<typeof admitProof> | undefined
          try {
            entered = admitProof(book, { person: each.who }, { now: at, claimNeeded: false })
          } catch (error) {
            if (!(error instanceof Refusal)) throw error
          }
          if ((entered !== undefined) !== admitted) return false
          if (!entered) continue
          if (entered.person.email !== email || nameOf(entered.person) !== name) return false
          seats.set(email, { bound: name, anew: false })
          book = withSession(entered.book, `s${at}`, each.who, email)
        }
        if (Object.values(book.sessions).some(session => seats.get(session.email)?.bound !== nameOf(session)))
          return false
      }
      return true
    }),
    PROPERTY,
  )
  t.pass()
  t.end()
})
