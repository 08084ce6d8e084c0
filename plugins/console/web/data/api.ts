import { signal } from '@preact/signals-core'
import { createClient, type Client, type Routed, Unreached } from '../../../../sdk/client.js'
import type { Api } from '../../../../sdk/api.js'
import type { Input, Reply } from '../../../../sdk/contract.js'
import { Refusal } from '../../../../sdk/refusal.js'

/** The session token in use; never shown, stored here in memory only. */
let token: string | undefined
let client: Client | undefined
let renewing: Promise<string> | undefined
let renewer: (() => Promise<string>) | undefined

/** Whether the daemon answered the last request at all. */
export const reachable = signal(true)

/** Called when the daemon no longer accepts the session. */
export const sessionEnds = signal(0)

/** Uses a session from now on; without one, calls have no credential. */
export const useToken = (next: string | undefined): void => {
  token = next
  client = undefined
}

export const hasToken = (): boolean => token !== undefined

/** Called for a new token when the daemon refuses the current one. */
export const renewWith = (renew: () => Promise<string>): void => {
  renewer = renew
}

const renewed = (): Promise<string> =>
  (renewing ??= (renewer?.() ?? Promise.reject(new Refusal('unauthenticated', 'you are not signed in'))).finally(
    () => (renewing = undefined),
  ))

const made = (): Client =>
  (client ??= createClient({
    url: location.origin,
    ...(token !== undefined && { session: token, renew: renewed }),
    retry: { attempts: 2, silence: 15_000 },
  }))

/** A client with its own session or identity token. */
export const clientWith = (session: string): Client => createClient({ url: location.origin, session })

/** Makes a call as the signed-in person. */
export const askDaemon = async <C extends Routed>(
  call: C,
  input: Input<Api, C> | undefined = undefined,
  signal?: AbortSignal,
  onEventId?: (id: string) => void,
  once = false,
): Promise<Reply<Api, C>> => {
  try {
    const answer = await (made().call as (...args: unknown[]) => Promise<Reply<Api, C>>)(call, input, {
      ...(signal && { signal }),
      ...(onEventId && { onEventId }),
      once,
    })
    reachable.value = true
    return answer
  } catch (error) {
    if (error instanceof Unreached) reachable.value = false
    else if (error instanceof Refusal && error.reason === 'unauthenticated' && token !== undefined)
      sessionEnds.value += 1
    throw error
  }
}

/** The waits before a call without an answer is made again. */
const AGAIN_MS = [500, 2_000] as const

/**
 * Makes a call again while no answer comes: its `messageId` or `requestId` names what it does, and the daemon does that
 * once.
 */
export const askUntilAnswered = async <C extends 'POST /agent' | 'POST /agent/reply'>(
  call: C,
  input: Input<Api, C>,
): Promise<Reply<Api, C>> => {
  for (const wait of AGAIN_MS)
    try {
      return await askDaemon(call, input)
    } catch (error) {
      if (!(error instanceof Unreached)) throw error
      await new Promise(resolve => setTimeout(resolve, wait))
    }
  return askDaemon(call, input)
}

/** Asks an address of this daemon that is no published call, as the person who signed in. */
export const fetchDaemon = async (path: string, init: RequestInit = {}): Promise<Response> => {
  const ask = () =>
    fetch(location.origin + path, {
      ...init,
      redirect: 'error',
      headers: { ...(init.headers as object), ...(token !== undefined && { authorization: `Bearer ${token}` }) },
    }).catch(error => {
      throw new Unreached('the sandbox does not answer', error)
    })
  const first = await ask()
  if (first.status !== 401 || token === undefined) return first
  await first.body?.cancel()
  await renewed()
  return ask()
}

/** The message of an error for a person. */
export const faultSentence = (error: unknown): string => {
  if (error instanceof Unreached) return 'The sandbox does not answer.'
  const message = error instanceof Error ? error.message : String(error)
  const sentence = message.charAt(0).toUpperCase() + message.slice(1)
  return /[.!?]$/.test(sentence) ? sentence : `${sentence}.`
}

/** The seconds after which a refused request may be repeated. */
export const retryAfterOf = (error: unknown): number | undefined =>
  error instanceof Refusal ? error.detail.retryAfter : undefined
