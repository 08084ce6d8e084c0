import { LEFT_OUT } from './instructions.js'
import type { NewEntry, SessionEntry, SummaryEntry } from './session.js'

/** From which part of the window on a conversation is made shorter. */
export const COMPACT_AT = 0.85
/** Dropping results is enough when this part is left. */
const ENOUGH = 0.6
/** What is kept word for word beside a summary. */
const TAIL = 0.25
const CHARACTERS_A_TOKEN = 3.5
const PICTURE_TOKENS = 1500
const RECENT_RESULTS = 6
const SHORT = 400
const MOST_ASKED = 8000

const charactersOf = (entry: SessionEntry | NewEntry): number => {
  if (entry.kind !== 'answer') return entry.text.length + 16
  return entry.parts.reduce(
    (sum, part) => sum + 16 + (part.kind === 'call' ? JSON.stringify(part.input ?? {}).length : part.text.length),
    0,
  )
}

/** About how many tokens entries take. */
export const tokensOf = (entries: readonly SessionEntry[]): number =>
  Math.ceil(entries.reduce((sum, entry) => sum + charactersOf(entry), 0) / CHARACTERS_A_TOKEN)
  + entries.reduce((sum, entry) => sum + (entry.kind === 'words' ? (entry.pictures?.length ?? 0) : 0), 0)
    * PICTURE_TOKENS

/** The entries without what older calls gave; undefined: that is not enough. */
export const withoutOldResults = (
  entries: readonly SessionEntry[],
  window: number,
): readonly SessionEntry[] | undefined => {
  let recent = RECENT_RESULTS
  const shorter = entries
    .toReversed()
    .map(entry =>
      entry.kind !== 'result' || entry.text.length <= SHORT || recent-- > 0 ? entry : { ...entry, text: LEFT_OUT },
    )
    .toReversed()
  return tokensOf(shorter) <= window * ENOUGH ? shorter : undefined
}

/** The entries with the beginning alone of what calls gave. */
export const inBrief = (entries: readonly SessionEntry[]): readonly SessionEntry[] =>
  entries.map(entry =>
    entry.kind === 'result' && entry.text.length > SHORT
      ? { ...entry, text: `${entry.text.slice(0, SHORT)} […]` }
      : entry,
  )

/** What is to be summed up, and what stays as it is. */
export interface Split {
  readonly head: readonly SessionEntry[]
  readonly tail: readonly SessionEntry[]
}

/** Splits a session where no call is parted from what became of it; undefined: there is nothing to sum up. */
export const splitFor = (entries: readonly SessionEntry[], window: number): Split | undefined => {
  let at = entries.length
  let tokens = 0
  for (let from = entries.length - 1; from > 0; from--) {
    tokens += tokensOf([entries[from]!])
    if (tokens > window * TAIL) break
    if (entries[from]!.kind !== 'result') at = from
  }
  return at === 0 || entries.length < 2 ? undefined : { head: entries.slice(0, at), tail: entries.slice(at) }
}

/** The entry that stands for what was summed up, with what was asked last in its own words. */
export const summaryOf = ({ head, tail }: Split, summary: string): SummaryEntry => {
  const asked = tail.some(({ kind }) => kind === 'words') ? undefined : head.findLast(({ kind }) => kind === 'words')
  const words = asked?.kind === 'words' ? `\n\nWhat was asked last:\n${asked.text.slice(0, MOST_ASKED)}` : ''
  return {
    kind: 'summary',
    n: head.at(-1)!.n,
    text: `What was said and done in this conversation before:\n${summary.trim()}${words}`,
  }
}
