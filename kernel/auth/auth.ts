import type { Context, Handlers } from '../../sdk/contract.js'
import type { Kernel, OpenedSession } from '../../sdk/kernel.js'
import { Failures } from '../../sdk/node/failures.js'
import { refuse } from '../../sdk/refusal.js'
import type { Caller, Role, Scope } from '../../sdk/types.js'
import type { Credential } from './credential.js'
import { Identity, LOCAL, type Person } from './identity.js'
import type { KeptFiles } from '../../sdk/node/kept.js'
import { CallLimits } from '../../sdk/node/call-limits.js'
import { Sessions, type SessionRecord, type Spent } from './sessions.js'
import { Tickets, type Shown } from '../../sdk/node/tickets.js'
import { Tokens, type TokenRecord } from './tokens.js'

const MINUTE = 60_000
/** How long a credential may outlive its end where the clock was set meanwhile. */
const SWEEP = 10_000

type AuthCall = Extract<keyof Kernel, `kernel.${'identity' | 'session' | 'ticket' | 'token'}.${string}`>

/** The calls of the kernel that authentication answers. */
export type AuthHandlers = Pick<Handlers<Kernel>, AuthCall>

/** Who may come in. */
export interface Auth {
  /** The caller behind a credential, from memory; refuses with 401, or 429 to an address that fails too often. */
  authenticate(credential: Credential, address: string): Caller
  /** Who a ticket stands for, as they are now; refuses as `authenticate` does. */
  redeem(shown: Shown, address: string): Caller
  /** What each credential may ask at a time, by session or token id. */
  readonly limits: CallLimits
  readonly handlers: AuthHandlers
  /** A one-time code that signs in as the owner, for whoever holds the machine. */
  mintLogin(): Promise<string>
  /** A session of the user who runs the daemon: acts as the owner without claiming, ends with the daemon. */
  openLocal(device: string): OpenedSession
  /** Saves what waits and stops the timers. */
  close(): Promise<void>
}

/** What authentication stands on. */
export interface AuthOptions {
  readonly files: KeptFiles
  readonly now: () => number
  readonly identity: { readonly claim: 'first' | 'code'; readonly local: boolean }
  /** Told of each credential that stopped being valid. */
  readonly ended: (what: { sessionId?: string; tokenId?: string }) => void
  /** Tells the person at the terminal something. */
  readonly say: (line: string) => void
}

const ROLE: { readonly [scope in Scope]: Role } = {
  read: 'viewer',
  editor: 'collaborator',
  drive: 'collaborator',
  land: 'maintainer',
}

const UNKNOWN: { readonly [kind in Credential['kind']]: string } = {
  token: 'expected an active control token in x-sandbox-control, found one that is unknown, revoked or expired',
  turn: 'expected the credential of a running turn in x-sandbox-turn, found another',
  extension: 'expected the credential of a running extension in x-sandbox-extension, found another',
  run: 'expected the credential of a running command in x-sandbox-run, found another',
  bearer: 'expected an active session as bearer, found one unknown, revoked or expired; sign in again',
}
const IDENTITY_TOKEN =
  'expected a session as bearer, found what looks like an identity token; exchange it at POST /system/session'
const NO_PROVIDER =
  'expected a session to renew as bearer: no identity provider is configured, so no identity token is accepted; ' +
  'sign in with sandbox login'
const TICKET = 'expected a ticket of POST /system/ws-ticket that was minted for this and not used, found another: ask for a new one'
const LOCAL_OFF = 'the local sign-in is switched off here (identity.local)'

/** Loads who may come in; from then on nobody waits for the disk to be let in. */
export const createAuth = async ({ files, now, identity: settings, say, ...told }: AuthOptions): Promise<Auth> => {
  const identity = await Identity.open(files, now)
  const sessions = await Sessions.open(files, now)
  const tokens = await Tokens.open(files, now)
  const tickets = new Tickets(now)
  const limits = new CallLimits(now)
  const ended: AuthOptions['ended'] = what => {
    if (what.sessionId !== undefined) tickets.end(what.sessionId)
    told.ended(what)
  }
  const failed = new Failures(30, MINUTE, now)
  if (!settings.local) await sessions.revoke(({ via }) => via === 'local')
  if (settings.local && !identity.owner) {
    say('nobody owns this sandbox yet: run sandbox login on this machine and open the link it prints')
  }

  let swept = now()
  let timer: NodeJS.Timeout | undefined
  const sweep = (): void => {
    const before = Math.min(swept, now())
    swept = now()
    for (const { id, expiresAt } of sessions.endsAfter(before)) if (expiresAt <= swept) endSession(id)
    for (const { id, expiresAt } of tokens.endsAfter(before)) if (expiresAt <= swept) ended({ tokenId: id })
    arm()
  }
  const arm = (): void => {
    clearTimeout(timer)
    const ends = [...sessions.endsAfter(swept), ...tokens.endsAfter(swept)].map(({ expiresAt }) => expiresAt)
    const next = ends.reduce((a, b) => Math.min(a, b), Infinity)
    if (next !== Infinity) timer = setTimeout(sweep, Math.min(Math.max(next - now(), 0), SWEEP)).unref()
  }
  const armed = <T>(result: T): T => {
    arm()
    return result
  }
  const endSession = (id: string): void => {
    sessions.forget(id)
    ended({ sessionId: id })
  }

  const fail = (address: string, message: string): never => {
    const retryAfter = failed.wait(address)
    if (retryAfter !== undefined) {
      refuse('too-many', `too many failed credentials from this address; ask again in ${retryAfter} s`, { retryAfter })
    }
    failed.add(address)
    return refuse('unauthenticated', message)
  }

  const isOwner = ({ via, issuer, subject }: SessionRecord): boolean =>
    via === 'socket' || (identity.owner?.issuer === issuer && identity.owner.subject === subject)

  const session = (text: string, address: string, unknown: string): SessionRecord => {
    const found = sessions.check(text, address)
    return found && isOwner(found) ? found : fail(address, unknown)
  }

  const authenticate = ({ kind, value }: Credential, address: string): Caller => {
    if (kind === 'bearer') return sessionCaller(session(value, address, isJwt(value) ? IDENTITY_TOKEN : UNKNOWN.bearer))
    const token = kind === 'token' ? tokens.check(value, address) : undefined
    return token ? tokenCaller(token) : fail(address, UNKNOWN[kind])
  }

  const redeem = (shown: Shown, address: string): { caller: Caller; first: boolean } => {
    const found = tickets.redeem(shown)
    const of = found && sessions.get(found.sessionId)
    return of && isOwner(of) ? { caller: sessionCaller(of), first: found.first } : fail(address, TICKET)
  }

  const localOnly = (): void => {
    if (!settings.local) refuse('forbidden', LOCAL_OFF)
  }

  const onlyOwner = ({ caller }: Context): void => {
    if (caller.kind === 'session' && caller.role === 'owner') return
    refuse('forbidden', `a control token is minted by a session of the owner, found a caller of kind ${caller.kind}`)
  }

  const handlers: AuthHandlers = {
    'kernel.identity.state': () => {
      const { local, claim } = settings
      return { claimed: identity.owner !== undefined, local, claim }
    },
    'kernel.identity.nonce': () => identity.nonce(),
    'kernel.session.login': async ({ code, device, address }, { signal }) => {
      localOnly()
      const grant = ({ issuer, subject, email }: Person, spent: Spent) =>
        sessions.grant({ issuer, subject, email, device, address }, spent)
      return armed(await identity.redeem({ code, address, signal }, () => sessions.spent, grant))
    },
    'kernel.session.renew': async ({ token, address }) => {
      const found = session(token, address, token.startsWith('sbs_') ? UNKNOWN.bearer : NO_PROVIDER)
      return armed(await sessions.renew(found, address))
    },
    'kernel.session.revoke': async ({ id, email }) => {
      const named = id !== undefined && sessions.get(id)
      if (named && email !== undefined && named.email !== email) {
        refuse('forbidden', 'the session is of another person; only the owner ends it')
      }
      const gone = await sessions.revoke(one => (id ?? one.id) === one.id && (email ?? one.email) === one.email)
      gone.forEach(endSession)
      return armed({ revoked: gone.length })
    },
    'kernel.ticket.mint': (wanted, { caller }) => tickets.mint(wanted, caller),
    'kernel.ticket.redeem': ({ address, ...shown }) => redeem(shown, address),
    'kernel.token.mint': async (input, context) => {
      onlyOwner(context)
      return armed(await tokens.mint(input))
    },
    'kernel.token.list': () => ({ tokens: tokens.list() }),
    'kernel.token.revoke': async ({ id }) => {
      await tokens.revoke(id)
      ended({ tokenId: id })
      return armed({ ok: true })
    },
  }

  arm()
  return {
    authenticate,
    redeem: (shown, address) => redeem(shown, address).caller,
    limits,
    handlers,
    mintLogin: async () => {
      localOnly()
      return identity.mintLogin()
    },
    openLocal: device => {
      localOnly()
      const email = identity.owner?.email ?? LOCAL.email
      const { session: opened, dropped } = sessions.openSocket({ ...LOCAL, email, device })
      if (dropped) ended({ sessionId: dropped })
      return armed(opened)
    },
    close: async () => {
      clearTimeout(timer)
      await Promise.all([sessions.flush(), tokens.flush()])
    },
  }
}

const isJwt = (text: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)

const sessionCaller = ({ id, email }: SessionRecord): Caller =>
  ({ kind: 'session', actor: email, role: 'owner', sessionId: id, email })

const tokenCaller = ({ id, label, scope }: TokenRecord): Caller =>
  ({ kind: 'token', actor: `token:${label}`, role: ROLE[scope], scope, tokenId: id })
