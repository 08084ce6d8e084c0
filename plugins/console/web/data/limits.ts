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
