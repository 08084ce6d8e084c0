import { LEFT_OUT } from './instructions.js'
import type { NewEntry, SessionEntry, SummaryEntry } from './session.js'

/** The part of the context window from which a session is compacted. */
export const COMPACT_AT = 0.85
/** Dropping tool results is enough if it leaves this part. */
const ENOUGH = 0.6
/** The part that is kept word for word after a summary. */
const TAIL = 0.25
/** About how many characters a token has. */
export const CHARACTERS_A_TOKEN = 3.5
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

/** The entries without the results of older calls; undefined: that is not enough. */
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

/** The entries with only the beginning of each call's result. */
export const inBrief = (entries: readonly SessionEntry[]): readonly SessionEntry[] =>
  entries.map(entry =>
    entry.kind === 'result' && entry.text.length > SHORT
      ? { ...entry, text: `${entry.text.slice(0, SHORT)} […]` }
      : entry,
  )

/** The entries to summarize, and those to keep. */
export interface Split {
  readonly head: readonly SessionEntry[]
  readonly tail: readonly SessionEntry[]
}

/** Splits a session without separating a call from its result; undefined: there is nothing to summarize. */
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

/** The entry that replaces the summarized ones, with the last request word for word. */
export const summaryOf = ({ head, tail }: Split, summary: string): SummaryEntry => {
  const asked = tail.some(({ kind }) => kind === 'words') ? undefined : head.findLast(({ kind }) => kind === 'words')
  const words = asked?.kind === 'words' ? `\n\nWhat was asked last:\n${asked.text.slice(0, MOST_ASKED)}` : ''
  return {
    kind: 'summary',
    n: head.at(-1)!.n,
    text: `What was said and done in this conversation before:\n${summary.trim()}${words}`,
  }
}
