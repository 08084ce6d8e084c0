import { signal } from '@preact/signals-core'

/** Whether this browser remembers the person; otherwise their session and what they left end with the tab. */
export const remembers = signal(true)

const PREFIX = 'sandbox.own.'

/** What could not be stored: it is kept for this tab alone. */
const held = new Map<string, string>()

const storage = (): Storage => (remembers.peek() ? localStorage : sessionStorage)

/** What the person left under a key; empty if nothing. */
export const readOwn = (key: string): string => {
  // What this tab could not store is newer than what is stored.
  const here = held.get(key)
  if (here !== undefined) return here
  try {
    return storage().getItem(PREFIX + key) ?? ''
  } catch {
    return ''
  }
}

/** Keeps what the person left, an empty text is deleted; says whether it survives a reload. */
export const keepOwn = (key: string, text: string): boolean => {
  held.delete(key)
  try {
    if (text) storage().setItem(PREFIX + key, text)
    else storage().removeItem(PREFIX + key)
    return true
  } catch {
    if (text) held.set(key, text)
    return false
  }
}

/** Deletes all that the person left, as when they sign out. */
export const dropOwn = (): void => {
  held.clear()
  try {
    for (const stored of [localStorage, sessionStorage])
      for (const key of Object.keys(stored)) if (key.startsWith(PREFIX)) stored.removeItem(key)
  } catch {
    // Nothing is stored.
  }
}
