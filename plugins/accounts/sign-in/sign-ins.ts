import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { Refusal, refuse, type Log } from '../../../sdk/index.js'
import { Failures } from '../../../sdk/node/access/failures.js'
import { isPrivateAddress } from '../../../sdk/node/models/outgoing.js'
import type { ProviderDefinition, SignInFlow } from '../../providers/contract.js'
import type { ProviderSignIn, SignInStart } from '../contract.js'
import { triedKey } from '../provider-key.js'
import type { AskProvider } from '../provider-wire.js'
import type { StoredAccount } from '../stored-accounts.js'
import type { SignInAttempt, SignInAttempts, SignInProof } from './attempts.js'
import { openLoopback, type LoopbackListener, type LoopbackPage } from './loopback.js'
import { asClient, signInPage, OAuthRefusal, type GrantedAccount, type OAuth } from './oauth.js'

/** What signing in needs of the group. */
export interface SignInDeps {
  readonly attempts: SignInAttempts
  readonly oauth: OAuth
  readonly ask: AskProvider
  readonly log: Pick<Log, 'warn'>
  readonly signal: AbortSignal
  readonly definition: (provider: string) => Promise<ProviderDefinition>
  /** Stores what was granted as an account: a new one, or the one that it renews. */
  readonly connect: (attempt: SignInAttempt, granted: GrantedAccount) => Promise<StoredAccount>
  /** The account that an attempt connected. */
  readonly connected: (attempt: Pick<SignInAttempt, 'provider' | 'handshake'>) => StoredAccount | undefined
  readonly changed: (provider: string) => void
  /** Called with the ports on which answers are awaited. */
  readonly listening: (ports: readonly number[]) => Promise<void>
}
/** What a person begins a sign-in with. */
export interface SignInAsked {
  readonly flow?: SignInFlow
  readonly account?: string
  readonly label?: string
  /** The person's own client at the provider. */
  readonly clientId?: string
  readonly by: string
}
/** What a person finishes one with. */
export interface SignInFinish {
  readonly handshake: string
  readonly code?: string
  readonly redirectUrl?: string
  readonly key?: string
  readonly label?: string
}

const MOST_STARTS = 10
const STARTS_MS = 600_000
const LASTS_MS = 900_000
const SLOWER_MS = 5000
const OVER = 'start the sign-in again'

/** Signing in at providers: one engine for every definition. */
export class SignIns {
  readonly #deps: SignInDeps
  readonly #starts = new Failures(MOST_STARTS, STARTS_MS, Date.now)
  readonly #listeners = new Map<string, LoopbackListener>()
  readonly #timers = new Map<string, NodeJS.Timeout>()

  constructor(deps: SignInDeps) {
    this.#deps = deps
    deps.signal.addEventListener('abort', () => {
      for (const timer of this.#timers.values()) clearTimeout(timer)
      for (const listener of this.#listeners.values()) listener.close()
    })
  }

  /** Goes on with the attempts of the last run of the daemon. */
  async recover(): Promise<void> {
    for (const attempt of this.#deps.attempts.all.filter(({ state }) => isOpen(state))) {
      const account = this.#deps.connected(attempt)
      if (account) await this.#end(attempt, 'done', { account: account.id })
      else if (attempt.expiresAt <= Date.now()) await this.#end(attempt, 'expired')
      else if (attempt.state === 'waiting' || isPasted(attempt.flow)) this.#await(await this.#set(attempt, 'waiting'))
      else await this.#end(attempt, 'failed', { detail: `the sandbox ended while it was completed: ${OVER}` })
    }
  }

  async start(
    known: ProviderDefinition,
    { by, account, label, flow: asked, clientId }: SignInAsked,
  ): Promise<SignInStart> {
    if (clientId !== undefined) assertTakesClient(known)
    const definition = asClient(known, clientId)
    const flow = flowOf(definition, asked)
    const retryAfter = this.#starts.wait(by)
    if (retryAfter !== undefined)
      refuse('too-many', `more than ${MOST_STARTS} sign-ins were started in 10 minutes: wait, then start again`, {
        retryAfter,
      })
    this.#starts.add(by)
    for (const before of this.#deps.attempts.all)
      if (before.by === by && before.provider === definition.id && before.state === 'waiting')
        await this.#end(before, 'abandoned')
    const startedAt = Date.now()
    const attempt: SignInAttempt = {
      handshake: randomBytes(16).toString('hex'),
      provider: definition.id,
      flow,
      state: 'waiting',
      startedAt,
      expiresAt: startedAt + LASTS_MS,
      by,
      ...(account !== undefined && { reconnects: account }),
      ...(label !== undefined && { label }),
    }
    const { proof, lastsMs = LASTS_MS, ...shown } = await this.#begin(definition, attempt)
    const expiresAt = startedAt + Math.min(lastsMs, LASTS_MS)
    try {
      const page = shown.finish !== 'none' && { page: shown.url }
      const client = flow !== 'key' && clientId !== undefined && { clientId }
      this.#await(await this.#deps.attempts.set({ ...attempt, expiresAt, proof: { ...proof, ...client }, ...page }))
    } catch (error) {
      this.#release(attempt.handshake)
      throw error
    }
    this.#deps.changed(definition.id)
    return { ...shown, handshake: attempt.handshake, expiresAt, flow }
  }

  async #begin(
    definition: ProviderDefinition,
    { flow, handshake }: SignInAttempt,
  ): Promise<Pick<SignInStart, 'url' | 'code' | 'finish'> & { proof: SignInProof; lastsMs?: number }> {
    const { auth, baseUrl, label } = definition
    if (flow === 'key') return { url: auth.keyUrl ?? new URL(baseUrl).origin, finish: 'key', proof: {} }
    if (flow === 'device') {
      const { url, code, deviceCode, intervalMs, lastsMs } = await this.#deps.oauth.device(definition)
      if (!isOpenable(url)) refuse('dependency', `${label} names no page that is opened: expected https`)
      return { url, code, finish: 'none', lastsMs, proof: { deviceCode, intervalMs } }
    }
    const secrets = { verifier: randomBytes(32).toString('base64url'), state: randomBytes(32).toString('base64url') }
    const listener = flow === 'redirect' ? await this.#listen(auth, handshake, secrets.state) : undefined
    const redirectUri = listener?.redirectUri ?? auth.redirectUri
    const proof = { ...secrets, ...(redirectUri !== undefined && { redirectUri }) }
    const finish = flow === 'code' ? 'code' : listener ? 'none' : 'redirect-url'
    return { url: signInPage(definition, proof), finish, proof }
  }

  /** Completes an attempt with what a person typed or pasted. */
  async finish(definition: ProviderDefinition, asked: SignInFinish): Promise<StoredAccount> {
    const { handshake, label, ...given } = asked
    const attempt = this.#found(definition.id, handshake)
    const [kind, ...others] = (['code', 'redirectUrl', 'key'] as const).filter(name => given[name] !== undefined)
    if (kind === undefined || others.length > 0)
      return refuse(
        'invalid',
        `expected one of code, redirectUrl and key, found ${kind ? others.length + 1 : 0} of them`,
      )
    if (attempt.flow === 'device')
      return refuse('conflict', 'there is nothing to finish: the sandbox completes the sign-in of a device alone')
    if ((attempt.flow === 'key') !== (kind === 'key'))
      return refuse('invalid', `expected ${attempt.flow === 'key' ? 'key' : 'code or redirectUrl'}, found ${kind}`)
    if (attempt.state === 'done')
      return (
        this.#deps.connected(attempt)
        ?? refuse('conflict', `the account of this sign-in was disconnected meanwhile: ${OVER}`)
      )
    if (attempt.state === 'exchanging') return refuse('conflict', 'the sign-in is being completed: wait a moment')
    if (attempt.state !== 'waiting' || attempt.expiresAt <= Date.now())
      return refuse('conflict', `the sign-in is ${attempt.state === 'waiting' ? 'expired' : attempt.state}: ${OVER}`)
    const named = label === undefined ? attempt : { ...attempt, label }
    if (kind === 'key') return this.#complete(named, () => triedKey(this.#deps.ask, definition, given.key!), true)
    return this.#redeem(
      named,
      kind === 'code' ? codeIn(attempt, given.code!) : codeOfUrl(attempt, given.redirectUrl!),
      true,
    )
  }

  async cancel(provider: string, handshake: string): Promise<void> {
    const attempt = this.#found(provider, handshake)
    if (attempt.state === 'done') refuse('conflict', 'the sign-in is done: disconnect the account instead')
    if (isOpen(attempt.state)) await this.#end(attempt, 'abandoned')
  }

  #found(provider: string, handshake: string): SignInAttempt {
    const attempt = this.#deps.attempts.get(handshake)
    return attempt?.provider === provider
      ? attempt
      : refuse('not-found', `there is no such sign-in at ${provider}, or it is long over: ${OVER}`)
  }

  #redeem(attempt: SignInAttempt, code: string, pasted: boolean): Promise<StoredAccount> {
    const { verifier = '', redirectUri, clientId } = attempt.proof ?? {}
    const asked = { code, verifier, ...(redirectUri !== undefined && { redirectUri }) }
    return this.#complete(
      attempt,
      async () => this.#deps.oauth.redeem(asClient(await this.#deps.definition(attempt.provider), clientId), asked),
      pasted,
    )
  }

  /** Asks the provider once, and stores what it grants; a refusal of what was pasted leaves the attempt waiting. */
  async #complete(
    attempt: SignInAttempt,
    grant: () => Promise<GrantedAccount>,
    pasted: boolean,
  ): Promise<StoredAccount> {
    const exchanging = await this.#set(attempt, 'exchanging')
    const stands = () => this.#deps.attempts.get(attempt.handshake)?.state === 'exchanging'
    const withdrawn = () => refuse('conflict', `the sign-in was abandoned meanwhile: ${OVER}`)
    let granted: GrantedAccount
    try {
      granted = toClient(exchanging, await grant())
    } catch (error) {
      if (!stands()) return withdrawn()
      const refusal = refusalFor(error)
      const detail = refusal.message
      if (!pasted) await this.#end(exchanging, 'failed', { detail })
      else if (attempt.expiresAt <= Date.now()) await this.#end(exchanging, 'expired', { detail })
      else await this.#set(exchanging, 'waiting', { detail })
      throw refusal
    }
    if (!stands()) {
      void this.#deps.definition(attempt.provider).then(found => this.#deps.oauth.revoke(found, granted.credential))
      return withdrawn()
    }
    const account = await this.#deps.connect(exchanging, granted)
    await this.#end(exchanging, 'done', { account: account.id })
    return account
  }

  async #listen(
    { redirectUri, grants }: ProviderDefinition['auth'],
    handshake: string,
    state: string,
  ): Promise<LoopbackListener | undefined> {
    const ending = grants === 'key' ? state : undefined
    const listener = await openLoopback(redirectUri, ending, query =>
      this.#answered(handshake, query, ending ?? query.get('state')),
    )
    if (!listener) return undefined
    this.#listeners.set(handshake, listener)
    await this.#tellListeners()
    return listener
  }

  /** Takes the answer with which a browser came back. */
  async #answered(handshake: string, query: URLSearchParams, state: string | null): Promise<LoopbackPage> {
    const failed = (status: 400 | 424, text: string) => ({ status, title: 'The sign-in failed', text })
    const attempt = this.#deps.attempts.get(handshake)
    if (attempt?.state !== 'waiting' || !isSame(state, attempt.proof?.state))
      return failed(400, 'No sign-in waits for this answer.')
    const code = query.get('code')
    if (code === null) {
      const said = query.get('error_description') ?? query.get('error') ?? 'no code'
      const detail = `the provider reported ${JSON.stringify(said.slice(0, 300).toWellFormed())}`
      await this.#end(attempt, 'failed', { detail })
      return failed(400, detail)
    }
    try {
      await this.#redeem(attempt, code, false)
      return { status: 200, title: 'You are signed in', text: 'You can close this page.' }
    } catch (error) {
      return failed(424, refusalFor(error).message)
    }
  }

  /** Waits for an attempt: for its end, and for the approval of a device. */
  #await(attempt: SignInAttempt): void {
    const { handshake, flow, expiresAt, proof } = attempt
    const left = expiresAt - Date.now()
    const wait = flow === 'device' ? Math.min(left, proof?.intervalMs ?? SLOWER_MS) : left
    const timer = setTimeout(
      () => {
        const now = this.#deps.attempts.get(handshake)
        if (now?.state !== 'waiting') return
        const isOver = now.expiresAt <= Date.now()
        // A timer may come a millisecond early.
        if (!isOver && flow !== 'device') return this.#await(now)
        const next = isOver ? this.#end(now, 'expired') : this.#poll(now)
        next.catch(error => this.#deps.log.warn('waiting for a sign-in failed', { error: String(error) }))
      },
      Math.max(0, wait),
    )
    this.#timers.set(handshake, timer.unref())
  }

  async #poll(attempt: SignInAttempt): Promise<void> {
    const { provider, proof = {}, handshake } = attempt
    let granted: GrantedAccount
    try {
      const definition = asClient(await this.#deps.definition(provider), proof.clientId)
      granted = await this.#deps.oauth.poll(definition, proof.deviceCode ?? '')
    } catch (error) {
      const now = this.#deps.attempts.get(handshake)
      if (now?.state !== 'waiting') return
      const code = error instanceof OAuthRefusal ? error.code : undefined
      if (code === 'authorization_pending') return this.#await(now)
      if (code === 'expired_token') return void (await this.#end(now, 'expired'))
      // A provider that does not answer is asked less often too (RFC 8628, section 3.5).
      if (code !== undefined && code !== 'slow_down' && !/^status_5/.test(code))
        return void (await this.#end(now, 'failed', { detail: refusalFor(error).message }))
      const intervalMs = (proof.intervalMs ?? SLOWER_MS) + SLOWER_MS
      return this.#await(await this.#deps.attempts.set({ ...now, proof: { ...proof, intervalMs } }))
    }
    const now = this.#deps.attempts.get(handshake)
    if (now?.state !== 'waiting')
      return void (await this.#deps.oauth.revoke(
        await this.#deps.definition(provider),
        toClient(attempt, granted).credential,
      ))
    await this.#complete(now, async () => granted, false)
  }

  async #set(
    attempt: SignInAttempt,
    state: ProviderSignIn['state'],
    more: Partial<SignInAttempt> = {},
  ): Promise<SignInAttempt> {
    const { detail: _detail, ...rest } = attempt
    const now = await this.#deps.attempts.set({ ...rest, ...more, state })
    this.#deps.changed(attempt.provider)
    return now
  }

  /** Ends an attempt: nothing waits for it any more, and its proof is destroyed. */
  async #end(
    { proof: _proof, page: _page, ...attempt }: SignInAttempt,
    state: ProviderSignIn['state'],
    more: Pick<SignInAttempt, 'account' | 'detail'> = {},
  ): Promise<void> {
    this.#release(attempt.handshake)
    await this.#set(attempt, state, more)
  }

  #release(handshake: string): void {
    clearTimeout(this.#timers.get(handshake))
    this.#timers.delete(handshake)
    const listener = this.#listeners.get(handshake)
    if (!listener) return
    listener.close()
    this.#listeners.delete(handshake)
    void this.#tellListeners()
  }

  async #tellListeners(): Promise<void> {
    await this.#deps
      .listening([...this.#listeners.values()].map(({ port }) => port))
      .catch(error => this.#deps.log.warn('declaring the ports of sign-ins failed', { error: String(error) }))
  }
}

const isOpen = (state: ProviderSignIn['state']): boolean => state === 'waiting' || state === 'exchanging'

const isPasted = (flow: SignInFlow): boolean => flow === 'code' || flow === 'key'

const flowOf = ({ id, label, auth }: ProviderDefinition, asked: SignInFlow | undefined): SignInFlow => {
  const [first] = auth.flows
  if (first === undefined) return refuse('unprocessable', `${label} has no sign-in`)
  const flow = asked ?? first
  if (!auth.flows.includes(flow))
    return refuse('unprocessable', `flow: expected one of ${auth.flows.join(', ')}, found ${flow}`)
  if (flow !== 'key' && lacksClient(auth))
    return refuse(
      'unprocessable',
      `${label} has no client id: give that of a client of your own as clientId, or set auth.clientId in ${id}.json, `
        + 'in the folder that models.providers of the deployment names',
    )
  return flow
}

/** The flow of clients that know one: the first that the sandbox completes by itself, where there is one. */
export const plainFlow = ({ auth }: ProviderDefinition): SignInFlow | undefined =>
  auth.flows.find(flow => (flow === 'device' || flow === 'redirect') && !lacksClient(auth)) ?? auth.flows[0]

/** What was granted, with the client that it was given to. */
const toClient = ({ proof: { clientId } = {} }: SignInAttempt, granted: GrantedAccount): GrantedAccount =>
  clientId === undefined ? granted : { ...granted, credential: { ...granted.credential, clientId } }

const assertTakesClient = ({ label, auth }: ProviderDefinition): void => {
  if (auth.clientId !== undefined || auth.grants === 'key')
    refuse('unprocessable', `clientId: expected none, for ${label} has a client or needs none`)
}

const lacksClient = ({ grants, clientId }: ProviderDefinition['auth']): boolean =>
  grants !== 'key' && clientId === undefined

const isOpenable = (address: string): boolean => {
  const url = URL.parse(address)
  return url !== null && isPrivateAddress(url)
}

/** Compares in constant time. */
const isSame = (given: string | null | undefined, expected: string | undefined): boolean => {
  const digest = (text: string) => createHash('sha256').update(text).digest()
  return typeof given === 'string' && expected !== undefined && timingSafeEqual(digest(given), digest(expected))
}

const OTHER_STATE = 'expected the state of this sign-in, found another or none: paste what its own page shows'

/** The code in what a page shows, which may name the state behind it. */
const codeIn = ({ proof }: SignInAttempt, text: string): string => {
  const [code = '', state] = text.trim().split('#')
  if (state !== undefined && !isSame(state, proof?.state)) refuse('unprocessable', `code: ${OTHER_STATE}`)
  return code || refuse('invalid', 'code: expected the code that the page shows, found none')
}

const codeOfUrl = ({ proof }: SignInAttempt, text: string): string => {
  const address = URL.parse(text.trim()) ?? refuse('invalid', 'redirectUrl: expected a whole address')
  const query = address.searchParams
  // Where the page takes an address alone, that ends with the state.
  const state = query.get('state') ?? address.pathname.split('/').at(-1)
  if (!isSame(state, proof?.state)) refuse('unprocessable', `redirectUrl: ${OTHER_STATE}`)
  return (
    query.get('code')
    ?? refuse('dependency', `the provider reported ${JSON.stringify(query.get('error') ?? 'no code')}`)
  )
}

const refusalFor = (error: unknown): Refusal => {
  if (error instanceof OAuthRefusal)
    return new Refusal('dependency', `the provider refused: ${error.message}`, { cause: error })
  return Refusal.from(error)
}
