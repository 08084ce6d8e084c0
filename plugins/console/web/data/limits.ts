import { computed, signal } from '@preact/signals-core'

const KEY = 'sandbox.known-limits'

const kept = (): readonly string[] => {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '[]') as string[]
  } catch {
    return []
  }
}

/** What this browser does not do for the page, as sentences. */
export const limits = signal<readonly string[]>([])

const hidden = signal<readonly string[]>(kept())

/** Those that the person has not hidden. */
export const shownLimits = computed(() => limits.value.filter(sentence => !hidden.value.includes(sentence)))

/** Adds a sentence about what this browser does not do. */
export const addLimit = (sentence: string): void => {
  if (!limits.value.includes(sentence)) limits.value = [...limits.value, sentence]
}

/** Shows a sentence in this browser on the page "You" alone from now on. */
export const hideLimit = (sentence: string): void => {
  hidden.value = [...hidden.value, sentence]
  try {
    localStorage.setItem(KEY, JSON.stringify(hidden.value))
  } catch {
    // It is kept for this tab alone.
  }
}

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
