import { copyFile, mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { bytePath } from '../../../sdk/node/byte-names.js'
import type { ScratchRepo } from '../work/scratch-repo.js'
import { treeEntriesOf } from '../work/tree-diff.js'
import { copyOf } from './main-state.js'
import type { Step } from './plan.js'

const MOST_BYTES = 16 * 1024 * 1024
const CRLF = '\r\n'

/** The line ends of a text: all of them alike, or mixed; undefined: it is no text, or has none. */
const endsOf = (text: string): '\n' | typeof CRLF | 'mixed' | undefined => {
  if (text.includes('\0')) return undefined
  const lines = text.split('\n').length - 1
  const long = text.split(CRLF).length - 1
  if (lines === 0) return undefined
  return long === 0 ? '\n' : long < lines ? 'mixed' : CRLF
}

/** A run of lines that two texts do not share: where it begins in each, from 0, and how many lines it has there. */
interface Hunk {
  readonly old: number
  readonly oldLines: number
  readonly new: number
  readonly newLines: number
}

/** What differs between two files, line by line, by their stored forms. */
const hunksBetween = async (scratch: ScratchRepo, before: string, after: string): Promise<Hunk[]> => {
  const { text } = await scratch.git(['diff', '-U0', '--no-color', before, after])
  return [...text.matchAll(/^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/gm)].map(
    ([, old, oldLines = '1', now, newLines = '1']) => ({
      // A side without lines names the line before it.
      old: Number(old) - (oldLines === '0' ? 0 : 1),
      oldLines: Number(oldLines),
      new: Number(now) - (newLines === '0' ? 0 : 1),
      newLines: Number(newLines),
    }),
  )
}

/** The lines of a text without their ends, and these. */
const linesOf = (text: string): { lines: string[]; ends: string[] } => {
  const found = text.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const ends = found.map(line => (line.endsWith(CRLF) ? CRLF : line.endsWith('\n') ? '\n' : ''))
  return { lines: found.map((line, at) => line.slice(0, line.length - ends[at]!.length)), ends }
}

/** A text in which each line has the end that it had in an earlier one, and a new line that of its neighbour there. */
const withEndsOf = (text: string, earlier: string, hunks: readonly Hunk[]): string => {
  const { lines, ends } = linesOf(text)
  const before = linesOf(earlier).ends.filter(end => end !== '')
  const wanted: (string | undefined)[] = []
  let old = 0
  for (const hunk of [...hunks, { old: before.length, oldLines: 0, new: lines.length, newLines: 0 }]) {
    while (wanted.length < hunk.new) wanted.push(before[old++])
    const last = hunk.old + Math.max(hunk.oldLines, 1) - 1
    for (let at = 0; at < hunk.newLines; at++)
      wanted.push(before[Math.min(hunk.old + at, last)] ?? before[hunk.old - 1])
    old = hunk.old + hunk.oldLines
  }
  return lines.map((line, at) => line + (ends[at] === '' ? '' : (wanted[at] ?? before.at(-1) ?? ends[at]))).join('')
}

/** The text of a file, one character for each byte; undefined: it is too large. */
const textAt = async (path: string): Promise<string | undefined> => {
  const place = bytePath(path)
  return (await stat(place)).size > MOST_BYTES ? undefined : readFile(place, 'latin1')
}

/** The text of a new file with the line ends of the file that it is like; undefined: they are alike already. */
const changedText = async (
  scratch: ScratchRepo,
  out: string,
  { path, like, after }: Step,
  before: string | undefined,
): Promise<string | undefined> => {
  if (like === undefined || !after?.mode.startsWith('100')) return undefined
  const [text, kept] = [await textAt(join(out, path)), await textAt(copyOf(scratch, like))]
  if (text === undefined || kept === undefined) return undefined
  const [from, to] = [endsOf(text), endsOf(kept)]
  if (from === undefined || to === undefined) return undefined
  if (to === 'mixed')
    return before === undefined ? undefined : withEndsOf(text, kept, await hunksBetween(scratch, before, after.id))
  return from === 'mixed' || from === to ? undefined : text.replaceAll(from, to)
}

/**
 * Gives new files the line ends of the person's files that they replace or were renamed from, line by line where those
 * are mixed, and where git stores the same for both: a setting or attribute that came after a checkout changes no file
 * that is not touched otherwise.
 *
 * @param out The folder with the new files, which the index `out` lists.
 */
export const keepLineEnds = async (scratch: ScratchRepo, out: string, steps: readonly Step[]): Promise<void> => {
  const tree = await scratch.place('ends')
  const changed = new Map<string, Step>()
  for (const step of steps) {
    const before = steps.find(({ path }) => path === step.like)?.before
    const text = await changedText(scratch, out, step, before?.mode.startsWith('100') ? before.id : undefined)
    if (text === undefined) continue
    const place = join(tree, step.path)
    await mkdir(bytePath(dirname(place)), { recursive: true })
    await writeFile(bytePath(place), text, 'latin1')
    changed.set(step.path, step)
  }
  if (changed.size === 0) return
  const index = 'ends'
  await copyFile(scratch.index('out'), scratch.index(index))
  await scratch.convert(['update-index', '--add', '--replace', '-z', '--stdin'], [...changed.keys()], { index, tree })
  const stored = await treeEntriesOf(scratch, index, new Set(changed.keys()))
  for (const [path, { after }] of changed) {
    if (stored.get(path)?.id !== after!.id) continue
    // Written into the file that is there, which keeps its mode.
    await writeFile(bytePath(join(out, path)), await readFile(bytePath(join(tree, path))))
  }
}
