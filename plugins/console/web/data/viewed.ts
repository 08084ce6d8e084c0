import { signal } from '@preact/signals-core'

const PREFIX = 'sandbox.viewed.'
const marks = signal<{ readonly [conversation: string]: ReadonlySet<string> }>({})

/** The files of a conversation that the person marked as viewed in this browser. */
export const viewedOf = (conversation: string): ReadonlySet<string> => {
  const known = marks.value[conversation]
  if (known) return known
  try {
    return new Set(JSON.parse(localStorage.getItem(PREFIX + conversation) ?? '[]') as string[])
  } catch {
    return new Set()
  }
}

/** Marks a file as viewed, or takes the mark away. */
export const markViewed = (conversation: string, place: string, viewed: boolean): void => {
  const next = new Set(viewedOf(conversation))
  if (viewed) next.add(place)
  else next.delete(place)
  marks.value = { ...marks.value, [conversation]: next }
  try {
    localStorage.setItem(PREFIX + conversation, JSON.stringify([...next]))
  } catch {
    // It is kept for this tab alone.
  }
}
