import type { Context, Handlers } from '../../sdk/contract.js'
import type { IdentityProvider, Kernel, KernelEvents, OpenedSession } from '../../sdk/kernel.js'
import { admitProof, BadCode } from './admission.js'
import { areasOf, findOwner, openBook, type PersonRecord, type SessionRecord, shownOf } from './book.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { CallLimits } from '../../sdk/node/access/call-limits.js'
import { Failures } from '../../sdk/node/access/failures.js'
import { MemorySecrets } from '../../sdk/node/access/memory-secrets.js'
import { refuse } from '../../sdk/refusal.js'
import type { Caller, Role, Scope, TurnReach } from '../../sdk/types.js'
import { Codes } from './codes.js'
import type { Credential } from './credential.js'
import { extensionToken, reachedBy, type AskedRoute, type ExtensionToken } from '../extensions/extension-tokens.js'
import { kernelMemberCalls } from './members.js'
import type { KeptFiles } from '../../sdk/node/files/kept.js'
import { Sessions } from './sessions.js'
import { Tickets, type Shown } from './tickets.js'
import { Tokens, type TokenRecord } from './tokens.js'

const MINUTE = 60_000
/**
 * The longest time between checks for expired credentials, in ms: they expire this late when the clock is set forward.
 */
const SWEEP = 10_000

type AuthCall = Extract<
  keyof Kernel,
  | `kernel.${'identity' | 'members' | 'session' | 'ticket' | 'token'}.${string}`
  | `kernel.${'extension' | 'turn' | 'run'}.${'mint' | 'end'}`
  | 'kernel.turn.narrow'
>

/** The kernel calls that authentication serves. */
export type AuthHandlers = Pick<Handlers<Kernel>, AuthCall>

/** Authentication: sessions, tokens, tickets and codes. */
export interface Auth {
  /**
   * The caller of a credential, from memory; refuses with 401, or 429 after too many failures from one address, and the
   * process of an extension with 403 where its manifest does not name the route.
   */
  authenticate(credential: Credential, address: string, asked?: AskedRoute): Caller
  /** The person of a ticket with their current role and areas; refuses as `authenticate` does. */
  redeem(shown: Shown, address: string): Caller
  /** Lets tickets of a purpose be used any number of times for the given ms. */
  ticketsLast(purpose: string, ms: number): void
  /** The rate limits of each credential, by session or token id. */
  readonly limits: CallLimits
  readonly handlers: AuthHandlers
  /** The claim code, while the sandbox has no owner and a provider is configured: for the terminal, never for a log. */
  readonly claim?: string
  /** Mints a one-time code that signs in as the owner, for the machine's user. */
  mintLogin(): Promise<string>
  /**
   * Opens a session for the user who runs the daemon: it acts as the owner without a claim and ends with the daemon.
   */
  openLocal(device: string): OpenedSession
  /** Saves pending last uses and stops the timers. */
  close(): Promise<void>
}

/** The dependencies and settings of authentication. */
export interface AuthOptions {
  readonly files: KeptFiles
  readonly now: () => number
  readonly identity: {
    readonly claim: 'first' | 'code'
    readonly local: boolean
    readonly providers?: readonly IdentityProvider[]
    readonly expectedOwner?: string
  }
  /** Called for each credential that became invalid, and for each person whose access was reduced. */
  readonly ended: (what: { sessionId?: string; tokenId?: string; email?: string }) => void
  /** Called for each invalid credential, and when the process of an extension used an entry of its manifest. */
  readonly emit?: <E extends 'credential.refused' | 'extension.reached'>(event: E, what: KernelEvents[E]) => void
  /** Prints a line at the terminal. */
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
  turn: 'expected the credential of a running turn in x-sandbox-turn, found one that is invalid or has ended',
  extension:
    'expected the credential of a running extension in x-sandbox-extension, found one that is invalid or has ended',
  run: 'expected the credential of a running command in x-sandbox-run, found one that is invalid or has ended',
  bearer: 'expected an active session as bearer, found one that is unknown, revoked or expired; sign in again',
}
const IDENTITY_TOKEN =
  'expected a session as bearer, found what looks like an identity token; exchange it at POST /system/session'
const TICKET =
  'the ticket is unknown, used, expired or for another purpose: ask for a new one at POST /system/ws-ticket'
const LOCAL_OFF = 'the local sign-in is switched off here (identity.local)'

/** Loads people, sessions and tokens into memory, so that checking a credential never waits for the disk. */
export const createAuth = async ({
  files,
  now,
  identity: settings,
  emit,
  say,
  ...callbacks
}: AuthOptions): Promise<Auth> => {
  const kept = await openBook(files)
  const sessions = new Sessions(kept, now)
  const codes = new Codes(kept, now)
  const tokens = await Tokens.open(files, now)
  const extensions = new MemorySecrets<ExtensionToken>('sbe')
  const turns = new MemorySecrets<Caller>('sbt')
  const runs = new MemorySecrets<{ readonly id: string; readonly session: SessionRecord }>('sbl')
  const tickets = new Tickets(now)
  const limits = new CallLimits(now)
  const ended: AuthOptions['ended'] = what => {
    tickets.end(what)
    callbacks.ended(what)
  }
  const failed = new Failures(30, MINUTE, now)
  const { local, claim, providers = [] } = settings
  const expectedOwner = settings.expectedOwner?.toLowerCase()
  const issuers = new Set(providers.map(({ issuer }) => issuer))
  const accepted = ({ via, issuer }: SessionRecord): boolean =>
    via === 'oidc' ? issuers.has(issuer) : via !== 'local' || local
  if (Object.values(kept.value.sessions).some(one => !accepted(one))) await sessions.revoke(one => !accepted(one))
  const claimed = (): boolean => findOwner(kept.value) !== undefined
  const code = providers.length && !claimed() ? codes.makeClaim() : undefined
  if (local && !claimed())
    say('this sandbox has no owner yet: run sandbox login on this machine and open the link it prints')

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
    sessions.evict(id)
    ended({ sessionId: id })
  }

  /** Runs work that may remove sessions from the book, then ends the removed ones. */
  const leaving = async <T>(work: () => Promise<T>): Promise<T> => {
    const before = Object.keys(kept.value.sessions)
    const done = await work()
    for (const id of before) if (!(id in kept.value.sessions)) endSession(id)
    return done
  }

  const fail = (address: string, message: string, credential = 'session'): never => {
    const retryAfter = failed.wait(address)
    if (retryAfter !== undefined) {
      refuse('too-many', `too many failed credentials from this address; ask again in ${retryAfter} s`, { retryAfter })
    }
    failed.add(address)
    emit?.('credential.refused', { address, credential })
    return refuse('unauthenticated', message)
  }

  const session = (text: string, address: string, unknown: string) =>
    sessions.check(text, address) ?? fail(address, unknown)

  const authenticate = ({ kind, value }: Credential, address: string, asked = NO_ROUTE): Caller => {
    if (kind === 'bearer') {
      const found = session(value, address, isJwt(value) ? IDENTITY_TOKEN : UNKNOWN.bearer)
      return sessionCaller(found.session, found.person)
    }
    const process = kind === 'extension' ? extensions.check(value) : undefined
    if (process) {
      const { caller, entry } = reachedBy(process, asked)
      emit?.('extension.reached', { extension: process.extension, entry })
      return caller
    }
    const turn = kind === 'turn' ? turns.check(value) : undefined
    if (turn) return turn
    const started = kind === 'run' ? runs.check(value) : undefined
    const starter = started && sessions.personOf(started.session)
    if (started && starter) return sessionCaller(started.session, starter, started.id)
    const token = kind === 'token' ? tokens.check(value, address) : undefined
    return token ? tokenCaller(token) : fail(address, UNKNOWN[kind], kind)
  }

  const redeem = (shown: Shown, address: string): { caller: Caller; first: boolean } => {
    const found = tickets.redeem(shown)
    const of = found && sessions.whose(found.sessionId)
    return of ? { caller: sessionCaller(of.session, of.person), first: found.first } : fail(address, TICKET, 'ticket')
  }

  const localOnly = (): void => {
    if (!local) refuse('forbidden', LOCAL_OFF)
  }

  const onlyOwner = ({ caller }: Context): void => {
    if (caller.kind === 'session' && caller.role === 'owner') return
    refuse('forbidden', `only a session of the owner can mint control tokens, found a caller of kind ${caller.kind}`)
  }

  const endInner = (secrets: { end(id: string): boolean }, tokenId: string) => {
    if (secrets.end(tokenId)) ended({ tokenId })
    return { ok: true } as const
  }

  const handlers: AuthHandlers = {
    'kernel.identity.state': () => ({ claimed: claimed(), local, claim, providers: [...providers] }),
    'kernel.session.open': ({ device, address, claimNeeded = true, ...proof }) =>
      leaving(async () => {
        if (proof.login !== undefined) localOnly()
        const rules = () => ({ now: now(), claimNeeded, claimHash: codes.claimHash, expectedOwner })
        const opening = sessions.open({ device, address }, book => admitProof(book, proof, rules()))
        const { session: made, did } = await opening.catch(error => {
          if (error instanceof BadCode) emit?.('credential.refused', { address, credential: 'code' })
          return codes.refuse(error)
        })
        failpoint('access.opened')
        return armed({ session: made, ...(did && { did }) })
      }),
    'kernel.session.renew': async ({ token, address }) =>
      armed(await sessions.renew(session(token, address, UNKNOWN.bearer).session, address)),
    'kernel.session.list': ({ email }) => ({
      sessions: sessions.list().filter(one => (email ?? one.email) === one.email),
    }),
    'kernel.session.revoke': async ({ id, email }) => {
      const named = id !== undefined && sessions.get(id)
      if (named && email !== undefined && named.email !== email) {
        refuse('forbidden', 'the session belongs to another person; only the owner can end it')
      }
      const { ended: gone, lasting } = await sessions.revoke(
        one => (id ?? one.id) === one.id && (email ?? one.email) === one.email,
      )
      gone.forEach(endSession)
      return armed({ revoked: gone.length, lasting })
    },
    ...kernelMemberCalls({ kept, now, sessions: () => sessions.list(), shrunk: email => ended({ email }), leaving }),
    'kernel.ticket.mint': (wanted, { caller }) => tickets.mint(wanted, caller),
    'kernel.ticket.redeem': ({ address, ...shown }) => redeem(shown, address),
    'kernel.extension.mint': ({ extension, reach }) => extensions.mint(id => extensionToken(id, extension, reach)),
    'kernel.extension.end': ({ id }) => endInner(extensions, id),
    'kernel.turn.mint': ({ conversationId, reach }) => turns.mint(id => turnCaller(id, conversationId, reach)),
    'kernel.turn.narrow': ({ id }) => {
      turns.change(id, ({ turn, ...caller }) => ({ ...caller, ...(turn && { turn: narrowed(turn) }) }))
      // Streams that it opened meanwhile end.
      ended({ tokenId: id })
      return { ok: true }
    },
    'kernel.turn.end': ({ id }) => endInner(turns, id),
    'kernel.run.mint': (_, { caller }) => {
      const found = caller.sessionId === undefined ? undefined : sessions.whose(caller.sessionId)
      if (!found)
        return refuse('forbidden', `only people start runs of the command line, found a caller of kind ${caller.kind}`)
      return runs.mint(id => ({ id, session: found.session }))
    },
    'kernel.run.end': ({ id }) => endInner(runs, id),
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
    ticketsLast: (purpose, ms) => tickets.lasts(purpose, ms),
    limits,
    handlers,
    ...(code !== undefined && { claim: code }),
    mintLogin: async () => {
      localOnly()
      return codes.mintLogin()
    },
    openLocal: device => {
      localOnly()
      const { session: made, dropped } = sessions.openSocket(device)
      if (dropped) ended({ sessionId: dropped })
      return armed(made)
    },
    close: async () => {
      clearTimeout(timer)
      await Promise.all([sessions.flush(), tokens.flush()])
    },
  }
}

/** Of a credential that is checked for no request. */
const NO_ROUTE: AskedRoute = { id: 'this', method: 'GET', path: '/' }

const isJwt = (text: string): boolean => /^[\w-]+\.[\w-]+\.[\w-]*$/.test(text)

/** The caller of a session, or of a run that it started. */
const sessionCaller = ({ id }: SessionRecord, person: PersonRecord, run?: string): Caller => {
  const { email, role } = person
  const areas = areasOf(person)
  const kind =
    run === undefined ? ({ kind: 'session', sessionId: id } as const) : ({ kind: 'run', tokenId: run } as const)
  return { ...kind, actor: email, role, email, ...shownOf(person), ...(areas && { areas }) }
}

const tokenCaller = ({ id, label, scope }: TokenRecord): Caller => ({
  kind: 'token',
  actor: `token:${label}`,
  role: ROLE[scope],
  scope,
  tokenId: id,
})

const narrowed = ({ accounts, capabilities = [] }: TurnReach): TurnReach => ({ sandbox: false, accounts, capabilities })

const turnCaller = (tokenId: string, conversationId: string, turn?: TurnReach): Caller => ({
  kind: 'turn',
  actor: `conversation:${conversationId}`,
  role: 'collaborator',
  tokenId,
  conversationId,
  ...(turn && { turn }),
})
