import type { Frame } from '../../turn/frames/frames.js'
import { shortText } from '../../outputs/head-and-tail.js'
import { LEFT_OUT } from './instructions.js'
import { DECIDING, fitted, keptIn, keptText, summaryIn } from './kept.js'
import { tokensSpent, type CallPart, type NewEntry, type SessionEntry, type SummaryEntry } from './session.js'

/** The part of the context window from which a session is compacted. */
export const COMPACT_AT = 0.85
/** Dropping tool results is enough if it leaves this part. */
const ENOUGH = 0.6
/** The part that is kept word for word after a summary. */
const TAIL = 0.25
/** What results that the model has not read yet may take. */
const FRESH = 0.3
/** What is kept of earlier words, decisions, plan and list. */
const KEPT = 0.2
const SUMMARY = 0.08
/** How much is summarized at once. */
const PIECE = 0.7
const MOST_PIECES = 8
/** About how many characters a token has. */
export const CHARACTERS_A_TOKEN = 3.5
const PICTURE_TOKENS = 1500
const RECENT_RESULTS = 6
const SHORT = 400
/** The part of its tokens that a session may have at most once it is shorter, where nobody asked for it. */
const WORTH = 0.9
const LEAST_FACTOR = 0.5
const MOST_FACTOR = 4

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
  + entries.reduce((sum, entry) => sum + (entry.kind === 'answer' ? 0 : (entry.pictures?.length ?? 0)), 0)
    * PICTURE_TOKENS

/** How many tokens a request has, and how many the server counts where one is estimated. */
export interface Measured {
  readonly tokens: number
  readonly factor: number
}

/**
 * Measures a request: the server's last count, and an estimate of what came since.
 *
 * @param overhead The estimated tokens of instructions and tools.
 * @param known The factor of earlier requests.
 */
export const measured = (entries: readonly SessionEntry[], overhead: number, known = 1): Measured => {
  const at = entries.findLastIndex(entry => entry.kind === 'answer' && tokensSpent(entry.usage) > 0)
  const answer = entries[at]
  if (answer?.kind !== 'answer') return { tokens: Math.ceil((overhead + tokensOf(entries)) * known), factor: known }
  const count = tokensSpent(answer.usage)
  const estimate = overhead + tokensOf(entries.slice(0, at + 1))
  const factor = Math.min(MOST_FACTOR, Math.max(LEAST_FACTOR, count / estimate))
  return { tokens: Math.ceil(count + tokensOf(entries.slice(at + 1)) * Math.max(1, factor)), factor }
}

/** What became of a request for a summary. */
export type Summarized =
  | { readonly text: string }
  | { readonly failed: string; /** The piece did not fit. */ readonly long: boolean }

/** How a session is made shorter. */
export interface Compaction {
  /** The tokens that its entries may take, as they are estimated. */
  readonly room: number
  /** A person asked for it: a summary is written although there is room. */
  readonly asked?: boolean
  readonly summarize: (piece: readonly SessionEntry[]) => AsyncGenerator<Frame, Summarized>
}

/** A session that was made shorter, and in a sentence what was lost. */
export interface Compacted {
  readonly entries: readonly SessionEntry[]
  readonly detail: string
}

/** Makes a session shorter; what counts stays in it word for word. Undefined: there is nothing to leave out. */
export async function* compacted(
  entries: readonly SessionEntry[],
  { room, asked = false, summarize }: Compaction,
): AsyncGenerator<Frame, Compacted | undefined> {
  const fresh = freshFrom(entries)
  const first = shortenedResults(entries, fresh, room * FRESH * CHARACTERS_A_TOKEN)
  const cleared = withoutOldResults(first.entries, fresh)
  if (!asked && tokensOf(cleared.entries) <= room * ENOUGH) {
    const detail = inWords([...shortenedWords(first.count), ...clearedWords(cleared.count)])
    return cleared.count + first.count > 0 ? { entries: cleared.entries, detail } : undefined
  }
  const size = asked ? Math.min(room, tokensOf(entries)) : room
  const at = tailFrom(first.entries, size * TAIL, fresh)
  const [head, tail] = [first.entries.slice(0, at), first.entries.slice(at)]
  if (head.length === 0 || (head.length === 1 && head[0]!.kind !== 'answer'))
    return first.count > 0 ? { entries: first.entries, detail: inWords(shortenedWords(first.count)) } : undefined
  const run = entries.findLast(entry => entry.kind === 'words' && entry.by !== 'sandbox')
  const present = run?.kind === 'words' ? run.run : keptIn(head).words.at(-1)?.run
  const { kept, cut, gone, undecided, planCut } = fitted(keptIn(head), room * KEPT * CHARACTERS_A_TOKEN, present)
  const pictures = kept.words.filter(words => words.run === present).flatMap(words => words.pictures ?? [])
  const summaryWith = (text: string): SummaryEntry => ({
    kind: 'summary',
    n: head.at(-1)!.n,
    text: keptText(kept, text, present),
    kept,
    ...(pictures.length > 0 && { pictures }),
  })
  // What stays word for word is most of it: a summary would be paid for and change nothing.
  if (!isShorter([summaryWith(''), ...tail], entries, asked))
    return first.count > 0 ? { entries: first.entries, detail: inWords(shortenedWords(first.count)) } : undefined
  const most = Math.floor(room * SUMMARY * CHARACTERS_A_TOKEN)
  const told = yield* summaryOf(head, room * PIECE, most, summarize)
  const detail = inWords([
    `${head.length} earlier entries became a summary${told.pieces > 1 ? ` in ${told.pieces} parts` : ''}`,
    ...shortenedWords(first.count),
    ...(cut > 0 ? [`${cut} earlier messages were shortened`] : []),
    ...(gone > 0 ? [`${gone} earlier messages were left out`] : []),
    ...(undecided > 0 ? [`${undecided} earlier decisions were shortened or left out`] : []),
    ...(planCut ? ['the plan was shortened'] : []),
    ...(told.failed === undefined ? [] : [`a list of calls stands in for a summary, because ${told.failed}`]),
  ])
  return { entries: [summaryWith(told.text), ...tail], detail }
}

/** Whether a session became so much shorter that it is worth it. */
export const isShorter = (after: readonly SessionEntry[], before: readonly SessionEntry[], asked: boolean): boolean =>
  tokensOf(after) <= tokensOf(before) * (asked ? 1 : WORTH)

const inWords = (parts: readonly string[]): string => parts.join('; ')
const shortenedWords = (count: number): string[] =>
  count > 0 ? [`${count} results were shortened to their beginning and end`] : []
const clearedWords = (count: number): string[] => (count > 0 ? [`${count} results of earlier calls were left out`] : [])

/** Where what the model has not read yet begins: the newest answer, if results follow it. */
const freshFrom = (entries: readonly SessionEntry[]): number => {
  const at = entries.findLastIndex(({ kind }) => kind === 'answer')
  return at >= 0 && entries[at + 1]?.kind === 'result' ? at : entries.length
}

interface Changed {
  readonly entries: readonly SessionEntry[]
  readonly count: number
}

/**
 * Shortens the longest results from an entry on until all of them have at most `most` characters, and the calls of one
 * answer until they have half as many.
 */
const shortenedResults = (entries: readonly SessionEntry[], from: number, most: number): Changed => {
  const sizes = entries.slice(from).flatMap(entry => (entry.kind === 'result' ? [entry.text.length] : []))
  const cap = levelOf(sizes, most)
  let count = 0
  let pictures = Math.floor(most / CHARACTERS_A_TOKEN / PICTURE_TOKENS)
  const changed = entries.map((each, at) => {
    if (at < from) return each
    const shown = each.kind === 'result' ? (each.pictures?.length ?? 0) : 0
    const entry = shown > pictures ? withoutPictures(each) : each
    if (entry === each) pictures -= shown
    else count++
    const answer = entry.kind === 'answer' && charactersOf(entry) > most / 2 ? entry : undefined
    if (!answer && (entry.kind !== 'result' || entry.text.length <= cap)) return entry
    count++
    return inBrief(entry, Math.max(SHORT / 4, answer ? most / 2 / answer.parts.length : cap))
  })
  return count > 0 ? { entries: changed, count } : { entries, count }
}

/** The size to which the largest must be shortened so that all together fit. */
const levelOf = (sizes: readonly number[], most: number): number => {
  const sorted = sizes.toSorted((one, other) => one - other)
  let left = most
  for (const [at, size] of sorted.entries()) {
    const share = left / (sorted.length - at)
    if (size > share) return Math.floor(share)
    left -= size
  }
  return Infinity
}

/** The names of the tools that results are of. */
const namesOf = (entries: readonly SessionEntry[]): ReadonlyMap<string, string> =>
  new Map(
    entries.flatMap(entry =>
      entry.kind === 'answer'
        ? entry.parts.flatMap(part => (part.kind === 'call' ? [[part.frame, part.name] as const] : []))
        : [],
    ),
  )

const NO_PICTURE = '[the picture is left out to save room; read it again if you need it]'

const withoutPictures = (entry: SessionEntry): SessionEntry => {
  if (entry.kind !== 'result') return entry
  const { pictures: _, ...rest } = entry
  return { ...rest, text: `${rest.text}\n${NO_PICTURE}` }
}

const WHOLE = /All of it: Read \S+|The whole output: Read \S+\.txt/

/** Leaves out the results of older calls, except what people decided; a file that has the whole of one is named. */
const withoutOldResults = (entries: readonly SessionEntry[], fresh: number): Changed => {
  const names = namesOf(entries)
  let [recent, count] = [RECENT_RESULTS, 0]
  const shorter = entries
    .map((entry, at) => ({ entry, at }))
    .toReversed()
    .map(({ entry, at }) => {
      if (entry.kind !== 'result' || (entry.text.length <= SHORT && !entry.pictures) || at >= fresh) return entry
      if (DECIDING.has(names.get(entry.frame) ?? '') || recent-- > 0) return entry
      count++
      const { pictures, ...rest } = entry
      if (pictures && rest.text.length <= SHORT) return { ...rest, text: `${rest.text}\n${NO_PICTURE}` }
      const whole = WHOLE.exec(entry.text)?.[0]
      return { ...rest, text: whole === undefined ? LEFT_OUT : `${LEFT_OUT}\n[${whole}]` }
    })
    .toReversed()
  return { entries: shorter, count }
}

/** Where the tail begins that stays as it is: with what the model has not read yet, and never with a result. */
const tailFrom = (entries: readonly SessionEntry[], most: number, fresh: number): number => {
  let at = Math.min(fresh, entries.length)
  let tokens = tokensOf(entries.slice(at))
  for (let from = at - 1; from > 0; from--) {
    tokens += tokensOf([entries[from]!])
    if (tokens > most) break
    if (entries[from]!.kind !== 'result') at = from
  }
  return at
}

interface Told {
  readonly text: string
  readonly pieces: number
  readonly failed?: string
}

/** Summarizes entries in pieces that fit, each with the summary of those before it. */
async function* summaryOf(
  head: readonly SessionEntry[],
  room: number,
  most: number,
  summarize: Compaction['summarize'],
): AsyncGenerator<Frame, Told> {
  for (let size = room; ; size /= 2) {
    const pieces = piecesOf(head, size)
    const skipped = pieces.slice(0, -MOST_PIECES).flat()
    let told = skipped.length > 0 ? shortText(listOf(skipped), most) : ''
    let failed: string | undefined
    let long = false
    for (const piece of pieces.slice(-MOST_PIECES)) {
      const before: SummaryEntry[] = told === '' ? [] : [{ kind: 'summary', n: 0, text: told }]
      const asked = yield* summarize([...before, ...piece])
      if ('text' in asked) {
        told = shortText(asked.text, most)
        continue
      }
      failed = asked.failed
      long = asked.long
      if (long) break
      told = shortText([told, listOf(piece)].filter(Boolean).join('\n'), most)
    }
    if (!long) return { text: told, pieces: pieces.length, ...(failed !== undefined && { failed }) }
    if (size < room / 4)
      return { text: shortText(listOf(head), most), pieces: pieces.length, failed: failed ?? 'no piece fitted' }
  }
}

/** Groups entries into pieces of at most so many tokens, without separating a call from its result. */
const piecesOf = (entries: readonly SessionEntry[], most: number): readonly (readonly SessionEntry[])[] => {
  if (tokensOf(entries) <= most) return [entries]
  const longest = Math.max(SHORT, Math.floor((most * CHARACTERS_A_TOKEN) / 8))
  const pieces: SessionEntry[][] = [[]]
  let tokens = 0
  for (const entry of entries) {
    const brief = inBrief(entry, longest)
    const size = tokensOf([brief])
    if (tokens + size > most && entry.kind !== 'result' && pieces.at(-1)!.length > 0) {
      pieces.push([])
      tokens = 0
    }
    // Results of one answer that are too many for a piece stay with it, each in fewer words.
    const room = Math.max(SHORT, Math.floor((most - tokens) * CHARACTERS_A_TOKEN))
    const fits = tokens + size > most ? inBrief(entry, Math.min(longest, room)) : brief
    pieces.at(-1)!.push(fits)
    tokens += tokensOf([fits])
  }
  return pieces
}

/** An entry with only the beginning and end of its texts. */
const inBrief = (entry: SessionEntry, most: number): SessionEntry => {
  if (entry.kind !== 'answer') return { ...entry, text: shortText(entry.text, most) }
  const parts = entry.parts.map(part => {
    if (part.kind === 'call') return briefCall(part, most)
    // Servers refuse a thought that they signed and find changed.
    return part.kind === 'thought' && part.meta ? part : { ...part, text: shortText(part.text, most) }
  })
  return { ...entry, parts }
}

const briefCall = (part: CallPart, most: number): CallPart => {
  if (!part.input || DECIDING.has(part.name) || JSON.stringify(part.input).length <= most) return part
  const fields = Object.entries(part.input).map(([key, value]) => [
    key,
    shortText(typeof value === 'string' ? value : JSON.stringify(value), Math.max(SHORT / 8, most / 2)),
  ])
  return { ...part, input: Object.fromEntries(fields) as CallPart['input'] & object }
}

const MOST_SAID = 300

/** What was done, as a list that no model has to write. */
const listOf = (entries: readonly SessionEntry[]): string => {
  const results = new Map(entries.flatMap(entry => (entry.kind === 'result' ? [[entry.frame, entry.ok] as const] : [])))
  return entries
    .flatMap(entry => {
      if (entry.kind === 'summary') return [summaryIn(entry.text)]
      if (entry.kind !== 'answer') return []
      return entry.parts.flatMap(part => {
        if (part.kind === 'text') return [`- you said: ${shortText(part.text, MOST_SAID)}`]
        if (part.kind !== 'call') return []
        const ok = results.get(part.frame)
        const how = ok === undefined ? 'no result' : ok ? 'done' : 'failed'
        return [`- ${part.name} ${shortText(JSON.stringify(part.input ?? {}), MOST_SAID / 2)}: ${how}`]
      })
    })
    .filter(Boolean)
    .join('\n')
}
