const PREFIX = 'sandbox.draft.'
const held = new Map<string, string>()

/** The unsent text in the composer of a conversation. */
export const draftOf = (conversation: string): string => {
  try {
    return localStorage.getItem(PREFIX + conversation) ?? held.get(conversation) ?? ''
  } catch {
    return held.get(conversation) ?? ''
  }
}

/** Keeps a draft; an empty one is deleted. */
export const keepDraft = (conversation: string, text: string): void => {
  if (text) held.set(conversation, text)
  else held.delete(conversation)
  try {
    if (text) localStorage.setItem(PREFIX + conversation, text)
    else localStorage.removeItem(PREFIX + conversation)
  } catch {
    // It is kept for this tab alone.
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
