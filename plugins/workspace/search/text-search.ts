import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { Host } from '../../../sdk/index.js'
import { sweepTree } from '../tree/sweep.js'
import type { CallerTree } from '../../../sdk/node/access/caller-tree.js'
import type { SearchTag } from './contract.js'
import { byScore, excerpt, MOST_FILE_LINES, type SearchedFile, type SearchedFiles } from './found.js'
import type { TextMatch } from './match-reader.js'
import { NoRegex, ripgrep, ripgrepProgram, type TextQuery } from './ripgrep.js'
import { admits, classOf, type FileClass, type SearchScope } from './search-scope.js'

/** The scope of a search on the disk. */
export interface DiskSearch {
  readonly place: Host['place']
  readonly tree: CallerTree
  readonly scope: SearchScope
  readonly includeIgnored: boolean
  readonly signal: AbortSignal
  /** Called with each file that is searched. */
  readonly seen?: (path: string) => void
}

const MOST_FILE = 4 * 1024 * 1024
const MOST_ADMITTED = 1_000_000
/** The maximum size of a program's arguments; the system allows about 2 MiB with the environment. */
const MOST_ARGUMENTS = 768 * 1024
const MOST_KEPT_LINES = 20_000
const DAY_MS = 86_400_000

const CLASS_SCORE: { readonly [each in FileClass]: number } = { source: 3, config: 2, test: 1, docs: 0.5 }
const DEFINERS =
  'function\\*?|class|interface|type|enum|namespace|module|const|let|var|def|fn|func|struct|trait|impl|mod|sub|record'
const DEFINES = new RegExp(`(?:^|\\s)(?:${DEFINERS})\\s+$`)
const WORD = /[\p{L}\p{N}_$]/u

/** Whether a match is a whole word of its line, and whether the line defines it. */
const standing = ({ text, spans }: TextMatch): { whole: boolean; defines: boolean } => {
  const whole = spans.some(
    ({ start, end }) => end > start && !WORD.test(text[start - 1] ?? ' ') && !WORD.test(text[end] ?? ' '),
  )
  return { whole, defines: whole && spans.some(({ start }) => DEFINES.test(text.slice(0, start))) }
}

interface Kept extends SearchedFile {
  whole: boolean
  defines: boolean
}

/** Collects matches by file, within bounds. */
class Matches {
  readonly files = new Map<string, Kept>()
  #kept = 0
  partial = false

  add(match: TextMatch): void {
    const { path, line } = match
    const { whole, defines } = standing(match)
    const file = this.files.get(path) ?? { path, score: 0, lines: [], count: 0, capped: false, whole, defines }
    this.files.set(path, file)
    file.count += 1
    file.whole ||= whole
    file.defines ||= defines
    if (file.lines.length >= MOST_FILE_LINES || this.#kept >= MOST_KEPT_LINES) {
      file.capped = true
      this.partial = true
      return
    }
    this.#kept += 1
    const tags: SearchTag[] = [{ kind: 'text' }, ...(defines ? [{ kind: 'def' as const }] : [])]
    file.lines.push({ line, tags, ...excerpt(match.text, match.spans) })
  }
}

/** Whole words first, then definitions, then source before tests and docs, then the most recently changed. */
const scored = (root: string, { path, whole, defines, ...file }: Kept): SearchedFile | undefined => {
  const stats = lstatSync(join(root, path), { throwIfNoEntry: false })
  if (!stats?.isFile() || stats.size > MOST_FILE) return undefined
  const days = Math.max(0, Date.now() - stats.mtimeMs) / DAY_MS
  const score = (whole ? 100 : 0) + (defines ? 50 : 0) + CLASS_SCORE[classOf(path)] * 10 + 9 / (1 + days)
  return { ...file, path, score: Math.round(score * 1000) / 1000 }
}

/** Finds text or a regular expression on the disk. */
export const textSearch = async (search: DiskSearch, query: TextQuery): Promise<SearchedFiles> => {
  const program = await ripgrepProgram()
  try {
    return await searched(search, program, query)
  } catch (error) {
    if (!(error instanceof NoRegex)) throw error
    const found = await searched(search, program, { ...query, literal: true })
    return { ...found, note: 'the query is no regular expression, so it was searched for as text' }
  }
}

const searched = async (search: DiskSearch, program: string, query: TextQuery): Promise<SearchedFiles> => {
  const { place, tree, scope, includeIgnored, signal } = search
  const matches = new Matches()
  let [waiting, bytes, admitted]: [string[], number, number] = [[], 0, 0]
  const stop = new AbortController()
  const running: Promise<void>[] = []
  const searchIn = (files: readonly string[]): Promise<void> =>
    ripgrep(place, program, {
      ...query,
      root: tree.root,
      reach: tree.reach,
      files,
      signal: AbortSignal.any([signal, stop.signal]),
      found: match => matches.add(match),
    }).then(({ dropped }) => {
      if (dropped > 0) matches.partial = true
    })
  const flush = async () => {
    if (waiting.length === 0) return
    const started = searchIn(waiting)
    started.catch(error => stop.abort(error))
    ;[waiting, bytes] = [[], 0]
    running.push(started)
    if (running.length > 1) await running.shift()
  }
  try {
    for await (const { path, kind } of sweepTree(tree, { from: scope.dir, ignored: includeIgnored, signal })) {
      if (kind !== 'file' || !admits(scope, path)) continue
      if (++admitted > MOST_ADMITTED) break
      search.seen?.(path)
      waiting.push(path)
      bytes += Buffer.byteLength(path) + 11
      if (bytes > MOST_ARGUMENTS) await flush()
    }
    await flush()
    await Promise.all(running)
  } catch (error) {
    stop.abort()
    await Promise.allSettled(running)
    if (!isTimeout(signal)) throw error
    matches.partial = true
  }
  if (admitted > MOST_ADMITTED) matches.partial = true
  const files = [...matches.files.values()].flatMap(file => scored(tree.root, file) ?? [])
  for (const { lines } of files) lines.sort((one, other) => one.line - other.line)
  return { files: files.sort(byScore), partial: matches.partial }
}

/** Whether a search ended by its time limit. */
export const isTimeout = ({ aborted, reason }: AbortSignal): boolean =>
  aborted && (reason as Error | undefined)?.name === 'TimeoutError'
