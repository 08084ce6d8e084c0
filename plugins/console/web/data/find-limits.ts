import { addLimit } from './limits.js'

/** Finds out what this browser does not do. */
export const findLimits = (): void => {
  if (!('indexedDB' in globalThis)) addLimit('This browser keeps nothing for this page.')
  if (!globalThis.isSecureContext)
    addLimit(
      'This page came over plain HTTP: each of its tabs holds a connection of its own, so keep few of them open. '
        + 'Signing in with a provider, notifications and the clipboard need HTTPS.',
    )
  else if (!navigator.locks || !('BroadcastChannel' in globalThis))
    addLimit('This browser does not let tabs share a connection: keep few tabs of this page open.')
}
