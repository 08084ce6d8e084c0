import type { OpenedSession } from '../../sdk/kernel.js'
import { refuse } from '../../sdk/refusal.js'
import { Kept, type KeptFiles } from '../../sdk/node/kept.js'
import { LastUse } from '../../sdk/node/last-use.js'
import { holds, newSecret, readSecret } from '../../sdk/node/secret.js'

const MINUTE = 60_000
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR
const OLD_SECRETS = 8
const SOCKET_SESSIONS = 1024
const ENDED = 'the session ended meanwhile; sign in again'

/** What each kind of proof buys: from the last renewal, and at most from the proof. */
const LIFE = { local: { renewed: 30 * DAY, proof: 180 * DAY }, socket: { renewed: 12 * HOUR, proof: 180 * DAY } }

/** One session as kept: never its secret. */
export interface SessionRecord {
  readonly id: string
  readonly email: string
  /** Who signed in, by issuer and subject; the e-mail is how they are named. */
  readonly issuer: string
  readonly subject: string
  readonly device: string
  /** Proved by a login code, or by the login socket and then never on the disk. */
  readonly via: keyof typeof LIFE
  readonly hash: string
  /** Secrets a renewal replaced, good for some minutes more. */
  readonly old: readonly { readonly hash: string; readonly until: number }[]
  readonly createdAt: number
  readonly provedAt: number
  readonly expiresAt: number
  readonly lastSeenAt: number
  readonly address?: string
}

/** A one-time code used up by the write that granted a session for it. */
export interface Spent {
  readonly hash: string
  readonly expiresAt: number
}

interface Kind {
  readonly sessions: { readonly [id: string]: SessionRecord }
  readonly spent: readonly Spent[]
}

/** What a new session is made from. */
export interface Proof extends Pick<SessionRecord, 'email' | 'issuer' | 'subject' | 'device' | 'address'> {}

/** Every session: those on the disk, and those of the login socket that live in memory only. */
export class Sessions {
  readonly #kept: Kept<Kind>
  readonly #now: () => number
  readonly #socket = new Map<string, SessionRecord>()
  readonly #uses = new LastUse(() => this.#kept.change(kind => this.#current(kind)))

  private constructor(kept: Kept<Kind>, now: () => number) {
    this.#kept = kept
    this.#now = now
  }

  static async open(files: KeptFiles, now: () => number): Promise<Sessions> {
    return new Sessions(await Kept.open<Kind>(files, 'sessions', { sessions: {}, spent: [] }), now)
  }

  get spent(): readonly Spent[] {
    return this.#kept.value.spent
  }

  /** The session a text proves, if it is active. */
  check(text: string, address: string): SessionRecord | undefined {
    const now = this.#now()
    const presented = readSecret('sbs', text)
    const found = presented && this.get(presented.id)
    const hashes = found ? [{ hash: found.hash, until: Infinity }, ...found.old] : []
    const good = hashes.filter(({ until }) => until > now).map(({ hash }) => hash)
    if (!presented || !holds(good, presented.hash)) return undefined
    this.#uses.mark(presented.id, { at: now, address })
    return found
  }

  /** Opens a session and uses up the code that proved it, in one write. */
  async grant(proof: Proof, code: Spent): Promise<OpenedSession> {
    const { record, token } = this.#make(proof, 'local')
    await this.#kept.change(kind => {
      const current = this.#current(kind)
      return { sessions: { ...current.sessions, [record.id]: record }, spent: [...current.spent, code] }
    })
    return opened(record, token, false)
  }

  /** Opens a session that ends with the daemon; `dropped` is the id of the one longest unused, when it made room. */
  openSocket(proof: Proof): { session: OpenedSession; dropped?: string } {
    const { record, token } = this.#make(proof, 'socket')
    const dropped = this.#socket.size >= SOCKET_SESSIONS ? this.#longestUnused() : undefined
    if (dropped) this.#drop(dropped)
    this.#socket.set(record.id, record)
    return { session: opened(record, token, false), ...(dropped && { dropped }) }
  }

  /** Gives a session a new secret and a later end; its old secret works some minutes more. */
  async renew({ id, via }: SessionRecord, address: string): Promise<OpenedSession> {
    const { text, hash } = newSecret('sbs', id)
    const renewed = (): SessionRecord => this.#renewed(this.get(id) ?? refuse('unauthenticated', ENDED), hash, address)
    let record = renewed()
    if (via === 'socket') this.#socket.set(id, record)
    else {
      await this.#kept.change(kind => {
        record = renewed()
        const current = this.#current(kind)
        return { ...current, sessions: { ...current.sessions, [id]: record } }
      })
    }
    return opened(record, text, true)
  }

  /** The active session of an id. */
  get(id: string): SessionRecord | undefined {
    const { sessions } = this.#kept.value
    const found = this.#socket.get(id) ?? (Object.hasOwn(sessions, id) ? sessions[id] : undefined)
    return found && found.expiresAt > this.#now() ? found : undefined
  }

  /** Ends the sessions that match and answers their ids, once that is durable. */
  async revoke(matches: (record: SessionRecord) => boolean): Promise<string[]> {
    const ended: string[] = []
    const active = (record: SessionRecord): boolean => record.expiresAt > this.#now() && matches(record)
    await this.#kept.change(kind => {
      const current = this.#current(kind)
      ended.push(...Object.values(current.sessions).filter(active).map(({ id }) => id))
      if (!ended.length) return kind
      const left = Object.entries(current.sessions).filter(([id]) => !ended.includes(id))
      return { ...current, sessions: Object.fromEntries(left) }
    })
    for (const record of [...this.#socket.values()].filter(active)) ended.push(record.id)
    for (const id of ended) this.#drop(id)
    return ended
  }

  /** Ids and ends of every session whose time is not over at a moment. */
  endsAfter(moment: number): { id: string; expiresAt: number }[] {
    const all = [...this.#socket.values(), ...Object.values(this.#kept.value.sessions)]
    return all.filter(({ expiresAt }) => expiresAt > moment)
  }

  /** Forgets what the daemon holds in memory of a session that is over. */
  forget(id: string): void {
    this.#drop(id)
  }

  /** Saves what waits to be saved. */
  flush(): Promise<void> {
    return this.#uses.flush()
  }

  #make(proof: Proof, via: SessionRecord['via']): { record: SessionRecord; token: string } {
    const now = this.#now()
    const { id, text, hash } = newSecret('sbs')
    const times = { createdAt: now, provedAt: now, lastSeenAt: now, expiresAt: now + LIFE[via].renewed }
    return { record: { id, ...proof, via, hash, old: [], ...times }, token: text }
  }

  #renewed(record: SessionRecord, hash: string, address: string): SessionRecord {
    const now = this.#now()
    const replaced = { hash: record.hash, until: now + 10 * MINUTE }
    const old = [replaced, ...record.old.filter(({ until }) => until > now)].slice(0, OLD_SECRETS)
    const life = LIFE[record.via]
    const expiresAt = Math.min(now + life.renewed, record.provedAt + life.proof)
    return { ...record, hash, old, expiresAt, lastSeenAt: now, address }
  }

  /** The kind with last uses filled in, without what is long over: what just ended is still to be told. */
  #current({ sessions, spent }: Kind): Kind {
    const now = this.#now()
    const listed = Object.values(sessions).filter(({ expiresAt }) => expiresAt + MINUTE > now)
    const used = listed.map(record => {
      const use = this.#uses.get(record.id)
      return [record.id, use ? { ...record, lastSeenAt: use.at, address: use.address } : record] as const
    })
    return { sessions: Object.fromEntries(used), spent: spent.filter(({ expiresAt }) => expiresAt > now) }
  }

  #longestUnused(): string {
    const seen = ({ id, createdAt }: SessionRecord): number => this.#uses.get(id)?.at ?? createdAt
    return [...this.#socket.values()].reduce((a, b) => (seen(b) < seen(a) ? b : a)).id
  }

  #drop(id: string): void {
    this.#socket.delete(id)
    this.#uses.forget(id)
  }
}

const opened = ({ id, email, expiresAt }: SessionRecord, token: string, renewed: boolean): OpenedSession =>
  ({ token, expiresAt, email, id, role: 'owner', renewed })
