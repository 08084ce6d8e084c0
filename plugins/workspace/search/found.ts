import type { SearchTag } from './contract.js'

/** A line that an engine found; its text is read when it is shown, unless the engine has it. */
export interface FoundLine {
  readonly line: number
  readonly tags: readonly SearchTag[]
  readonly text?: string
  readonly spans?: readonly { readonly start: number; readonly end: number }[]
  readonly context?: string
  /** The word that the line must contain to be shown. */
  readonly name?: string
  /** The text to mark in the line, in lower case. */
  readonly words?: readonly string[]
}

/** A file that an engine found, with its lines. */
export interface SearchedFile {
  readonly path: string
  score: number
  readonly lines: FoundLine[]
  /** The total number of lines, more than are kept if capped. */
  count: number
  capped: boolean
}

/** The results of an engine, best file first. */
export interface SearchedFiles {
  readonly files: SearchedFile[]
  readonly partial: boolean
  readonly note?: string
}

/** The most lines of one file. */
export const MOST_FILE_LINES = 50

/** Orders by score, then by the bytes of the path. */
export const byScore = (
  one: Pick<SearchedFile, 'score' | 'path'>,
  other: Pick<SearchedFile, 'score' | 'path'>,
): number => other.score - one.score || (one.path < other.path ? -1 : one.path > other.path ? 1 : 0)

const MOST_TEXT = 200
const BEFORE = 60

/** At most 200 characters of a line around its first match, and where the matches are in them. */
export const excerpt = (
  line: string,
  spans: readonly { start: number; end: number }[],
): { text: string; spans: { start: number; end: number }[] } => {
  const whole = line.replace(/[\r\n]+$/, '')
  const first = spans[0]?.start ?? 0
  const from = whole.length <= MOST_TEXT ? 0 : Math.max(0, Math.min(first - BEFORE, whole.length - MOST_TEXT))
  const text = whole.slice(from, from + MOST_TEXT)
  return {
    // A cut may go through a pair of surrogates.
    text: text.toWellFormed(),
    spans: spans.flatMap(({ start, end }) => {
      const cut = { start: Math.max(0, start - from), end: Math.min(text.length, end - from) }
      return cut.end > cut.start ? [cut] : []
    }),
  }
}
