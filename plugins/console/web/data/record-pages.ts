import type { ActivityEvent } from '../../../activity/contract.js'

/** The number of entries that a page of the record keeps. */
export const MOST_SHOWN_ENTRIES = 2_000

/** Entries, newest first, after the newest page was read again; drops those beyond a gap. */
export const withNewest = (
  known: readonly ActivityEvent[],
  page: readonly ActivityEvent[],
): readonly ActivityEvent[] => {
  const [head] = known
  const last = page.at(-1)
  if (!head || !last || last.seq > head.seq) return page
  const fresh = page.filter(({ seq }) => seq > head.seq)
  return fresh.length ? [...fresh, ...known].slice(0, MOST_SHOWN_ENTRIES) : known
}

/** Entries, newest first, with an older page. */
export const withOlder = (
  known: readonly ActivityEvent[],
  page: readonly ActivityEvent[],
): readonly ActivityEvent[] => {
  const last = known.at(-1)?.seq ?? Infinity
  return [...known, ...page.filter(({ seq }) => seq < last)].slice(0, MOST_SHOWN_ENTRIES)
}

/** The kind of an entry in words: `session.opened` is "Session opened". */
export const typeWords = (type: string): string => {
  const words = type.replace(/[A-Z]/g, letter => ` ${letter.toLowerCase()}`).replace(/[._-]+/g, ' ')
  return words.charAt(0).toUpperCase() + words.slice(1)
}

/** The milliseconds of a day of the person's calendar, `2026-03-31`. */
export const daySpan = (day: string): { from: number; to: number } | undefined => {
  const begin = new Date(`${day}T00:00`)
  if (!day || Number.isNaN(begin.getTime())) return undefined
  const end = new Date(begin)
  end.setDate(end.getDate() + 1)
  return { from: begin.getTime(), to: end.getTime() - 1 }
}
