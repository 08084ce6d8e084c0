import { signal } from '@preact/signals-core'
import { askDaemon } from './api.js'

const WORKER = '/console/service-worker.js'
const SCOPE = '/console/'

/** Whether the sandbox sends notifications to this browser, also while no page is open. */
export const pushed = signal<'none' | 'off' | 'on'>('none')

const keyOf = (bytes: ArrayBuffer | null | undefined): string =>
  btoa(String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer(0))))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')

const subscriptionHere = async (): Promise<PushSubscription | undefined> => {
  const registration = await navigator.serviceWorker?.getRegistration(SCOPE)
  return (await registration?.pushManager?.getSubscription()) ?? undefined
}

/** Finds out whether this browser can be sent notifications, and whether it is for this person. */
export const findPush = async (): Promise<void> => {
  if (!globalThis.isSecureContext || !('serviceWorker' in navigator) || !('PushManager' in globalThis)) return
  pushed.value = 'off'
  const subscription = await subscriptionHere()
  if (!subscription) return
  const { subscribed } = await askDaemon('GET /push/config', { id: subscription.endpoint })
  pushed.value = subscribed ? 'on' : 'off'
}

/** The worker once it can receive something. */
const worker = async (): Promise<ServiceWorkerRegistration> => {
  // The browser takes the address of a script from this policy alone.
  const trusted = trustedAddress(WORKER)
  const registration = await navigator.serviceWorker.register(trusted, { scope: SCOPE })
  const begun = registration.installing ?? registration.waiting
  if (registration.active || !begun) return registration
  await new Promise<void>((resolve, reject) => {
    begun.addEventListener('statechange', () => {
      if (begun.state === 'activated') resolve()
      if (begun.state === 'redundant') reject(new Error('the browser did not start the service worker of this page'))
    })
  })
  return registration
}

interface TypePolicies {
  createPolicy(
    name: string,
    rules: { createScriptURL(text: string): string },
  ): {
    createScriptURL(text: string): string
  }
}

const trustedAddress = (address: typeof WORKER): string => {
  const { trustedTypes } = globalThis as { trustedTypes?: TypePolicies }
  policy ??= trustedTypes?.createPolicy('console', {
    createScriptURL: text => {
      if (text === WORKER) return text
      throw new TypeError('the page loads no other script by its address')
    },
  })
  return policy ? policy.createScriptURL(address) : address
}
let policy: ReturnType<TypePolicies['createPolicy']> | undefined

/** Has the sandbox send notifications to this browser; the person has allowed them before. */
export const registerDevice = async (): Promise<void> => {
  const { publicKey } = await askDaemon('GET /push/config', {})
  const { pushManager } = await worker()
  const known = await pushManager.getSubscription()
  // A subscription is bound to the key that it was made with.
  if (known && keyOf(known.options.applicationServerKey) !== publicKey) await known.unsubscribe()
  const subscription = await pushManager
    .subscribe({ userVisibleOnly: true, applicationServerKey: publicKey })
    .catch(error => {
      throw new Error('the push service of this browser cannot be used', { cause: error })
    })
  await askDaemon('POST /push/subscribe', {
    ...{ kind: 'webpush', endpoint: subscription.endpoint },
    keys: { p256dh: keyOf(subscription.getKey('p256dh')), auth: keyOf(subscription.getKey('auth')) },
  })
  pushed.value = 'on'
}

/** Has the sandbox send nothing more to this browser. */
export const forgetDevice = async (): Promise<void> => {
  const subscription = await subscriptionHere()
  if (!subscription) return
  const { endpoint } = subscription
  await askDaemon('POST /push/unsubscribe', { id: endpoint })
  await subscription.unsubscribe()
  if (pushed.value === 'on') pushed.value = 'off'
}

/** Sends a test to the person's devices; returns how many took it. */
export const testPush = async (): Promise<number> => (await askDaemon('POST /push/test')).delivered
