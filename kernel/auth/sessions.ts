import type { AccessSession, OpenedSession } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import {
  areasOf,
  type Book,
  findOwner,
  findPerson,
  isSame,
  LOCAL,
  ownerOf,
  type PersonRecord,
  type SessionRecord,
  shownOf,
} from './book.js'
import type { Admitted } from './admission.js'
import type { Kept } from '../../sdk/node/files/kept.js'
import { LastUse } from './last-use.js'
import { SecretCheck } from '../../sdk/node/access/secret-check.js'
import { newSecret } from '../../sdk/node/access/secret.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const OLD_SECRETS = 8
const SOCKET_SESSIONS = 1024
/** Per person; the least recently used session is removed for a new one. */
const PERSON_SESSIONS = 200
const ENDED = 'the session ended meanwhile; sign in again'

/** How long a session lives: after its last renewal, and at most after the sign-in. */
const LIFE = { renewed: 30 * DAY, proof: 180 * DAY }
const SOCKET_LIFE = { renewed: 12 * HOUR, proof: 180 * DAY }

/** The device and address that open a session. */
type From = Pick<SessionRecord, 'device' | 'address'>

/** All sessions: those stored in the book, and those of the login socket, which exist in memory only. */
export class Sessions {
  readonly #kept: Kept<Book>
  readonly #now: () => number
  readonly #socket = new Map<string, SessionRecord>()
  readonly #secrets = new SecretCheck('sbs', id => this.#hashesOf(id))
  readonly #uses = new LastUse(() => this.#kept.change(book => this.#current(book)))

  constructor(kept: Kept<Book>, now: () => number) {
    this.#kept = kept
    this.#now = now
  }

  /** The session of a secret and its person, if both are valid. */
  check(text: string, address: string): { session: SessionRecord; person: PersonRecord } | undefined {
    const id = this.#secrets.check(text)
    const session = id === undefined ? undefined : this.get(id)
    const person = session && this.personOf(session)
    if (!person) return undefined
    this.#uses.mark(session.id, { at: this.#now(), address })
    return { session, person }
  }

  /** The hash of a session's secret, and those that a renewal replaced, for a while. */
  #hashesOf(id: string): readonly string[] {
    const session = this.get(id)
    if (!session) return []
    return [session.hash, ...session.old.filter(({ until }) => until > this.#now()).map(({ hash }) => hash)]
  }

  /** Opens a session for the person that `decide` admits, in the same write that uses up their proof. */
  async open(
    from: From,
    decide: (book: Book) => Admitted,
  ): Promise<Pick<Admitted, 'did'> & { session: OpenedSession }> {
    let made: (Pick<Admitted, 'did'> & { session: OpenedSession }) | undefined
    await this.#kept.change(book => {
      const {
        book: { sessions, ...rest },
        person,
        via,
        did,
      } = decide(this.#current(book))
      const { record, token } = this.#make(from, person, via)
      made = { session: opened(record, person, token, false), did }
      return { ...rest, sessions: { ...withRoom(sessions, person.email), [record.id]: record } }
    })
    return made!
  }

  /** Opens a session of the machine's user, which ends with the daemon; `dropped` is the session removed for it. */
  openSocket(device: string): { session: OpenedSession; dropped?: string } {
    const person = this.#owner()
    const { record, token } = this.#make({ device }, { ...LOCAL, ...person }, 'socket')
    const dropped = this.#socket.size >= SOCKET_SESSIONS ? this.#longestUnused() : undefined
    if (dropped) this.evict(dropped)
    this.#socket.set(record.id, record)
    return { session: opened(record, person, token, false), ...(dropped && { dropped }) }
  }

  /** Gives a session a new secret and a later expiry; the old secret stays valid for 10 minutes. */
  async renew({ id, via }: SessionRecord, address: string): Promise<OpenedSession> {
    const { text, hash } = newSecret('sbs', id)
    const ended = (): never => refuse('unauthenticated', ENDED)
    const renewed = (): SessionRecord => this.#renewed(this.get(id) ?? ended(), hash, address)
    let record = renewed()
    if (via === 'socket') this.#socket.set(id, record)
    else {
      await this.#kept.change(book => {
        record = renewed()
        const current = this.#current(book)
        return { ...current, sessions: { ...current.sessions, [id]: record } }
      })
    }
    return opened(record, this.personOf(record) ?? ended(), text, true)
  }

  /** The active session with this id. */
  get(id: string): SessionRecord | undefined {
    const { sessions } = this.#kept.value
    const found = this.#socket.get(id) ?? (Object.hasOwn(sessions, id) ? sessions[id] : undefined)
    return found && found.expiresAt > this.#now() ? found : undefined
  }

  /** The active session with this id, and its person. */
  whose(id: string): { session: SessionRecord; person: PersonRecord } | undefined {
    const session = this.get(id)
    const person = session && this.personOf(session)
    return person && { session, person }
  }

  /** Ends the matching sessions and returns their ids once that is durable; `lasting` counts the stored ones. */
  async revoke(matches: (record: SessionRecord) => boolean): Promise<{ ended: string[]; lasting: number }> {
    const ended: string[] = []
    const active = (record: SessionRecord): boolean => record.expiresAt > this.#now() && matches(record)
    await this.#kept.change(book => {
      const current = this.#current(book)
      ended.push(
        ...Object.values(current.sessions)
          .filter(active)
          .map(({ id }) => id),
      )
      if (!ended.length) return book
      const left = Object.entries(current.sessions).filter(([id]) => !ended.includes(id))
      return { ...current, sessions: Object.fromEntries(left) }
    })
    const lasting = ended.length
    for (const record of this.#live().filter(active)) ended.push(record.id)
    ended.forEach(id => this.evict(id))
    return { ended, lasting }
  }

  /** The active sessions, most recently used first. */
  list(): AccessSession[] {
    const rows = [...this.#live(), ...Object.values(this.#current(this.#kept.value).sessions)].flatMap(
      (record): AccessSession[] => {
        const person = record.expiresAt > this.#now() ? this.personOf(record) : undefined
        const { hash, old, provedAt, issuer, subject, via, ...row } = record
        return person
          ? [{ ...row, ...shownOf(person), role: person.role, via: via === 'socket' ? 'local' : via, current: false }]
          : []
      },
    )
    return rows.sort((a, b) => b.lastSeenAt - a.lastSeenAt)
  }

  /** Id and expiry of each session that expires after a moment. */
  endsAfter(moment: number): { id: string; expiresAt: number }[] {
    const all = [...this.#socket.values(), ...Object.values(this.#kept.value.sessions)]
    return all.filter(({ expiresAt }) => expiresAt > moment)
  }

  /** Deletes an ended session from memory. */
  evict(id: string): void {
    this.#socket.delete(id)
    this.#uses.delete(id)
  }

  /** Saves pending last uses. */
  flush(): Promise<void> {
    return this.#uses.flush()
  }

  #owner(): PersonRecord {
    return findOwner(this.#kept.value) ?? ownerOf(LOCAL, 0)
  }

  /** The person of a session as they are now, also when it has ended; undefined: they may not sign in. */
  personOf(session: SessionRecord): PersonRecord | undefined {
    if (session.via === 'socket') return this.#owner()
    const person = findPerson(this.#kept.value, session.email)
    return person && isSame(person, session) ? person : undefined
  }

  #make(
    from: From,
    { issuer, subject, email }: Admitted['person'],
    via: SessionRecord['via'],
  ): { record: SessionRecord; token: string } {
    const now = this.#now()
    const { id, text, hash } = newSecret('sbs')
    const times = { createdAt: now, provedAt: now, lastSeenAt: now, expiresAt: now + lifeOf(via).renewed }
    return { record: { id, email, issuer, subject, ...from, via, hash, old: [], ...times }, token: text }
  }

  #renewed(record: SessionRecord, hash: string, address: string): SessionRecord {
    const now = this.#now()
    const replaced = { hash: record.hash, until: now + 10 * MINUTE }
    const old = [replaced, ...record.old.filter(({ until }) => until > now)].slice(0, OLD_SECRETS)
    const life = lifeOf(record.via)
    const expiresAt = Math.min(now + life.renewed, record.provedAt + life.proof)
    return { ...record, hash, old, expiresAt, lastSeenAt: now, address }
  }

  /** The sessions of the login socket, each with the owner's current e-mail. */
  #live(): SessionRecord[] {
    return [...this.#socket.values()].map(record => this.#used({ ...record, email: this.#owner().email }))
  }

  /**
   * The book with current last uses, without entries that expired long ago. Recently expired ones stay until they are
   * reported.
   */
  #current(book: Book): Book {
    const now = this.#now()
    const listed = Object.values(book.sessions).filter(({ expiresAt }) => expiresAt + MINUTE > now)
    return { ...book, sessions: Object.fromEntries(listed.map(record => [record.id, this.#used(record)])) }
  }

  #used(record: SessionRecord): SessionRecord {
    const use = this.#uses.get(record.id)
    return use ? { ...record, lastSeenAt: use.at, address: use.address } : record
  }

  #longestUnused(): string {
    return this.#live().reduce((a, b) => (b.lastSeenAt < a.lastSeenAt ? b : a)).id
  }
}

/** The sessions without what one more of a person has no room for. */
const withRoom = (sessions: Book['sessions'], email: string): Book['sessions'] => {
  const own = Object.values(sessions)
    .filter(one => one.email === email)
    .sort((a, b) => b.lastSeenAt - a.lastSeenAt)
  const over = new Set(own.slice(PERSON_SESSIONS - 1).map(({ id }) => id))
  return over.size ? Object.fromEntries(Object.entries(sessions).filter(([id]) => !over.has(id))) : sessions
}

const lifeOf = (via: SessionRecord['via']): typeof LIFE => (via === 'socket' ? SOCKET_LIFE : LIFE)

const opened = (
  { id, expiresAt }: SessionRecord,
  person: PersonRecord,
  token: string,
  renewed: boolean,
): OpenedSession => {
  const areas = areasOf(person)
  return {
    token,
    expiresAt,
    email: person.email,
    id,
    role: person.role,
    ...(areas && { areas: [...areas] }),
    ...shownOf(person),
    renewed,
  }
}
