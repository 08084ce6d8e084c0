import { Refusal, refuse } from '../../../../sdk/index.js'
import { pathAsMeant } from '../../tool-inputs/as-meant.js'
import type { FileForm } from '../file-form.js'
import { replaced, type ReplacedText } from '../replaced.js'

/** A part of a patch: lines that are there, and what comes in their place. */
interface Hunk {
  /** A line above it, such as the head of a function. */
  readonly below?: string
  readonly old: readonly string[]
  readonly next: readonly string[]
  /** Of each line in `next`, which one of `old` it is; undefined: a new one. */
  readonly kept: readonly (number | undefined)[]
}

const OTHER_FILE = /^\*\*\* (Add|Delete) File:/
const MOVE = /^\*\*\* Move to:/
const NAMED = /^\*\*\* Update File:\s*(.+?)\s*$/
/** Lines around hunks that say nothing more: those of the patch's own form, and the head of a unified diff. */
const AROUND = /^(?:\*\*\* (?:Begin|End) (?:Patch|of File)|\\ No newline)/
const HEAD = /^(?:diff |index |--- |\+\+\+ |(?:new|deleted|old) (?:file )?mode )/
const RANGE = /^@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@/

/** The hunks of a patch of one file. */
const hunksOf = (patch: string, path: string): readonly Hunk[] => {
  const hunks: { below?: string; old: string[]; next: string[]; kept: (number | undefined)[] }[] = []
  const lines = patch.replaceAll('\r\n', '\n').replace(/\n$/, '').split('\n')
  let [begun, files] = [false, 0]
  for (const [at, line] of lines.entries()) {
    if (OTHER_FILE.test(line)) refuse('unprocessable', 'a patch changes one file: use Write and Delete for others')
    if (MOVE.test(line)) refuse('unprocessable', 'a patch renames nothing: use Move')
    const named = NAMED.exec(line)?.[1]
    if (named !== undefined && (files++ > 0 || pathAsMeant(named, []) !== path))
      refuse('unprocessable', `the patch changes ${named.slice(0, 200)} too: make one call of Edit for each file`)
    if (named !== undefined || AROUND.test(line) || (!begun && HEAD.test(line))) continue
    if (line.startsWith('@@')) {
      const below = (RANGE.test(line) ? line.replace(RANGE, '') : line.slice(2)).trim()
      hunks.push({ old: [], next: [], kept: [], ...(below !== '' && { below }) })
      begun = true
      continue
    }
    // The first one may begin without a mark.
    if (hunks.length === 0) hunks.push({ old: [], next: [], kept: [] })
    begun = true
    const [mark, text] = [line.slice(0, 1), line.slice(1)]
    if (mark !== '' && !' -+'.includes(mark))
      refuse(
        'unprocessable',
        `line ${at + 1} of the patch begins with ${JSON.stringify(mark)}, not with @@, " ", - or +`,
      )
    const { old, next, kept } = hunks.at(-1)!
    if (mark !== '-') kept.push(mark === '+' ? undefined : old.length)
    if (mark !== '+') old.push(text)
    if (mark !== '-') next.push(text)
  }
  return hunks.filter(({ old, next }) => old.length > 0 || next.length > 0)
}

const bare = (line: string): string => line.replace(/\r$/, '')

/** Where lines stand one after another, from a line on. */
const placesOf = (lines: readonly string[], old: readonly string[], from: number): readonly number[] => {
  const fits = (at: number): boolean => old.every((line, nth) => bare(lines[at + nth]!) === line)
  const places: number[] = []
  for (let at = from; at + old.length <= lines.length; at++) if (fits(at)) places.push(at)
  return places
}

/** Where a hunk begins, of the places that fit. */
const placeOf = (lines: readonly string[], { below, old }: Hunk, from: number): number | undefined => {
  const head = below === undefined ? -1 : lines.findIndex((line, at) => at >= from && line.trim() === below)
  const named = head >= 0
  if (old.length === 0) return named ? head + 1 : refuse('unprocessable', 'it has no line that is there already')
  const places = placesOf(lines, old, named ? head + 1 : from)
  if (places.length > 1 && !named)
    return refuse('unprocessable', `its lines are there ${places.length} times: include more lines around them`)
  return places[0]
}

/** The one place where lines stand with other blanks around them. */
const loosePlaceOf = (lines: readonly string[], old: readonly string[]): number => {
  const wanted = old.map(line => line.trim())
  const trimmed = lines.map(line => line.trim())
  const places = wanted.every(line => line === '') ? [] : placesOf(trimmed, wanted, 0)
  if (places.length === 1) return places[0]!
  const advice = places.length === 0 ? 'read the file again' : 'include more lines around them'
  return refuse('unprocessable', `its lines are there ${places.length} times: ${advice}`)
}

/** The lines of a file with a hunk made at a place: lines that stay are as they were, and nothing ends the last one. */
const withHunk = (lines: readonly string[], at: number, { old, next, kept }: Hunk, end: string): string[] => {
  const behind = at + old.length
  const now = next.map((line, nth) => (kept[nth] === undefined ? line + end : lines[at + kept[nth]]!))
  const all = [...lines.slice(0, at), ...now, ...lines.slice(behind)]
  if (end === '' || behind < lines.length) return all
  const last = all.length - 1
  return all.map((line, nth) => (nth === last ? bare(line) : nth < at - 1 ? line : bare(line) + end))
}

/** Lines that a hunk fits with other blanks, with it made; the last one keeps its end. */
const looselyMade = (there: readonly string[], path: string, { old, next }: Hunk, form: FileForm): string[] => {
  const text = there.join('\n')
  const asked = { old: old.join('\n'), next: next.join('\n'), all: false }
  const now = replaced(bare(text), path, asked, form).text
  return next.length === 0 ? [] : (now + text.slice(bare(text).length)).split('\n')
}

/** Makes the changes of a patch in the text of a file; refuses all of them if one does not fit. */
export const patched = (text: string, path: string, patch: string, form: FileForm): ReplacedText => {
  const hunks = hunksOf(patch, path)
  if (hunks.length === 0) refuse('unprocessable', 'the patch changes nothing')
  const end = form.eol === '\r\n' ? '\r' : ''
  const loose: number[] = []
  let lines = text.split('\n')
  let from = 0
  for (const [nth, hunk] of hunks.entries()) {
    try {
      const at = placeOf(lines, hunk, from)
      if (at === undefined) {
        const begin = loosePlaceOf(lines, hunk.old)
        const now = looselyMade(lines.slice(begin, begin + hunk.old.length), path, hunk, form)
        lines = [...lines.slice(0, begin), ...now, ...lines.slice(begin + hunk.old.length)]
        from = begin + now.length
        loose.push(nth + 1)
        continue
      }
      lines = withHunk(lines, at, hunk, end)
      from = at + hunk.next.length
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      refuse(error.reason, `hunk ${nth + 1} of ${hunks.length}: ${error.message}; nothing was changed`)
    }
  }
  const found = loose.length > 0 ? { found: `hunk ${loose.join(', ')} was found with other blanks or line ends` } : {}
  return { text: lines.join('\n'), ...found }
}
