import { signal } from '@preact/signals-core'
import type { OpenedSession } from '../../../../../sdk/kernel.js'
import type { SignInOptions } from '../../../../system/contract.js'
import { Refusal } from '../../../../../sdk/refusal.js'
import { askDaemon, clientWith, sessionEnds, renewWith, faultSentence, useToken } from '../api.js'
import { addLimit } from '../limits.js'
import { linkCodeOf } from './link.js'
import { dropOwn, remembers } from '../own-storage.js'
import { fragmentOf, showPlace } from '../route.js'
import type { SignInCodes } from './oidc.js'
import { dropSession, keepSession, readSession, type KeptSession } from './vault.js'
import { ignored } from '../../../../../sdk/ignored.js'

/** The user of the page. */
export interface SignedInPerson {
  readonly email: string
  readonly role: OpenedSession['role']
  readonly name?: string
  readonly areas?: readonly string[]
}

/** The progress of signing in. */
export type SignInState =
  | { readonly kind: 'checking' }
  | { readonly kind: 'out'; readonly message?: string; readonly codes: SignInCodes; readonly options?: SignInOptions }
  | { readonly kind: 'in' }

export const signIn = signal<SignInState>({ kind: 'checking' })
export const person = signal<SignedInPerson | undefined>(undefined)

const device = (): string => {
  const { userAgentData, platform } = navigator as Navigator & { userAgentData?: { platform?: string } }
  return (userAgentData?.platform || platform || 'browser').slice(0, 100)
}

const tabs = 'BroadcastChannel' in globalThis ? new BroadcastChannel('sandbox.session') : undefined

/** Where a session ended: its person comes back there with a link that is opened in the same tab. */
let leftAt = ''

/** The session of this tab, if the browser stores none. */
let held: KeptSession | undefined

const accept = async ({ token, expiresAt, email, role, name, areas }: OpenedSession): Promise<void> => {
  useToken(token)
  held = { token, expiresAt }
  if (remembers.value && !(await keepSession({ token, expiresAt })))
    addLimit('This browser keeps nothing for this page: you are signed in until you close the tab.')
  person.value = { email, role, ...(name && { name }), ...(areas && { areas }) }
  signIn.value = { kind: 'in' }
}

const signedOut = async (message?: string, codes: SignInCodes = {}): Promise<void> => {
  useToken(undefined)
  held = undefined
  person.value = undefined
  const state = { kind: 'out', codes, ...(message && { message }) } as const
  signIn.value = state
  const options = await askDaemon('GET /system/sign-in').catch(() => undefined)
  if (signIn.value === state && options) signIn.value = { ...state, options }
}

/** Opens a session with a code, and stores it. */
export const openSession = async (
  proof: { login?: string; invite?: string; claim?: string; name?: string },
  identity?: string,
): Promise<void> => {
  const input = { ...proof, device: device() }
  await accept(
    identity
      ? await clientWith(identity).call('POST /system/session', input)
      : await askDaemon('POST /system/session', input),
  )
}

const renew = async (): Promise<string> => {
  // A stored session may be that of another person, who is signed in in another tab.
  const kept = (remembers.value && (await readSession())) || held
  if (!kept) throw new Refusal('unauthenticated', 'your session has ended')
  const opened = await clientWith(kept.token).call('POST /system/session', {})
  await accept(opened)
  return opened.token
}

/** Renews the session, also for the other tabs. */
export const renewSession = async (): Promise<void> => {
  await renew()
  tabs?.postMessage('renewed')
}

/** Ends the session on the daemon and in this browser. */
export const signOut = async (): Promise<void> => {
  // The event stream ends first: it would be refused.
  signIn.value = { kind: 'checking' }
  // The next person at this browser must not read this one's notifications.
  await import('../push.js').then(({ forgetDevice }) => forgetDevice()).catch(ignored('signing out goes on without it'))
  await askDaemon('POST /system/sessions/revoke', { current: true }).catch(ignored('signing out goes on without it'))
  await dropSession()
  dropOwn()
  tabs?.postMessage('out')
  await signedOut('You are signed out.')
}

const resume = async (): Promise<void> => {
  const kept = await readSession()
  if (!kept) return signedOut()
  try {
    await renew()
  } catch (error) {
    if (error instanceof Refusal && error.reason === 'unauthenticated') {
      await dropSession()
      return signedOut('Your session has ended.')
    }
    // The daemon does not answer yet: the session may still be good.
    useToken(kept.token)
    person.value = undefined
    signIn.value = { kind: 'in' }
  }
}

/** Signs in with the code in the address, or with the stored session. Removes the code from the address first. */
export const beginSession = async (): Promise<void> => {
  const link = linkCodeOf(location.hash)
  if (!link) return resume()
  history.replaceState(null, '', location.pathname)
  try {
    if (link.kind === 'login') {
      await openSession({ login: link.login })
      if (link.conversation) showPlace(fragmentOf('c', link.conversation))
      else if (leftAt) showPlace(leftAt)
      leftAt = ''
      return
    }
    if (link.kind === 'invite' || link.kind === 'claim') {
      const { kind, ...codes } = link
      return await signedOut(undefined, codes)
    }
    // Only a person who comes back from a provider needs it.
    const { exchangeCode, takePending } = await import('./oidc.js')
    const pending = takePending(link.state)
    if (link.kind === 'refused') return await signedOut(`The provider refused: ${link.message}`)
    const { invite, claim, returnTo } = pending
    remembers.value = pending.remember
    const identity = link.idToken ?? (await exchangeCode(pending, link.code!))
    await openSession({ ...(invite && { invite }), ...(claim && { claim }) }, identity)
    if (returnTo) showPlace(returnTo)
  } catch (error) {
    await signedOut(faultSentence(error))
  }
}

/** Follows links opened in the page, ended sessions, and changes by other tabs. */
export const watchSession = (): void => {
  renewWith(renew)
  addEventListener('hashchange', () => {
    if (linkCodeOf(location.hash)) void beginSession()
  })
  sessionEnds.subscribe(times => {
    if (times === 0 || signIn.value.kind !== 'in') return
    leftAt = location.hash.startsWith('#/') ? location.hash : ''
    void dropSession().then(() => signedOut('Your session has ended.'))
  })
  tabs?.addEventListener('message', ({ data }) => {
    if (data === 'out') {
      dropOwn()
      void signedOut('You are signed out.')
    }
    if (data === 'renewed' && remembers.value) void readSession().then(kept => kept && useToken(kept.token))
  })
}
