const PREFIX = 'sandbox.draft.'
const held = new Map<string, string>()

/** The unsent or unsaved text of a place: the composer of a conversation, a file, the message of a commit. */
export const draftOf = (place: string): string => {
  // What this tab could not store is newer than what is stored.
  const here = held.get(place)
  if (here !== undefined) return here
  try {
    return localStorage.getItem(PREFIX + place) ?? ''
  } catch {
    return ''
  }
}

/** Keeps a draft, an empty one is deleted; says whether it survives a reload. */
export const keepDraft = (place: string, text: string): boolean => {
  held.delete(place)
  try {
    if (text) localStorage.setItem(PREFIX + place, text)
    else localStorage.removeItem(PREFIX + place)
    return true
  } catch {
    // It is kept for this tab alone.
    if (text) held.set(place, text)
    return false
  }
}

/** Deletes every draft, as at the end of a session. */
export const dropDrafts = (): void => {
  held.clear()
  try {
    for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key)
  } catch {
    // Nothing is kept.
  }
}
