import { lstatSync } from 'node:fs'
import { join } from 'node:path'
import type { SearchTag } from './contract.js'
import { byScore, MOST_FILE_LINES, type SearchedFile, type FoundLine } from './found.js'
import { classOf, type FileClass } from './search-scope.js'

/** A file changed lately counts only a little more where words rank it. */
const RECENT_WORDS = 0.05
/** A symbol whose name is the words, or begins with them, counts as much as the best file. */
const LEAST_NAMED = 600

/** Ranks files by words, and by symbols that are named by all of them. */
export const rankWords = (
  root: string,
  found: readonly SearchedFile[],
  named: readonly SearchedFile[],
): SearchedFile[] => {
  const files = new Map(found.map(file => [file.path, file]))
  const best = Math.max(1, ...found.map(({ score }) => score))
  for (const file of named) {
    if (file.score < LEAST_NAMED) continue
    const known = files.get(file.path)
    files.set(file.path, {
      ...file,
      score: (known?.score ?? 0) + (best * file.score) / 1000,
      lines: [...file.lines, ...(known?.lines ?? [])].slice(0, MOST_FILE_LINES),
      count: Math.max(file.count, known?.count ?? 0),
    })
  }
  return [...files.values()]
    .map(file => {
      const score = file.score * WORD_CLASS[classOf(file.path)] * recentFactor(root, file.path, RECENT_WORDS)
      return { ...file, score: Math.round(score * 1e3) / 1e3 }
    })
    .sort(byScore)
}

/** What one engine contributes: its files, best first. */
export interface EngineResult {
  readonly kind: 'find' | 'files' | 'def' | 'refs'
  readonly files: readonly SearchedFile[]
}

const RANK_OFFSET = 60
const DEFINITION = 1.5
const PATH_WORD = 1.25
const RECENT = 0.2
const HALF_LIFE_DAYS = 14
const DAY_MS = 86_400_000
const MOST_RANKED = 2_000
const WORD_CLASS: { readonly [each in FileClass]: number } = { source: 1, config: 0.9, test: 0.75, docs: 0.7 }

interface Fused {
  readonly path: string
  readonly line: FoundLine
  score: number
}

const merged = (one: FoundLine, other: FoundLine): FoundLine => {
  const tags: SearchTag[] = [...one.tags]
  for (const tag of other.tags) if (!tags.some(({ kind }) => kind === tag.kind)) tags.push(tag)
  return { ...other, ...one, tags }
}

const pathFactor = (path: string, words: readonly string[]): number => {
  const tokens = path.toLowerCase().split(/[^\p{L}\p{N}]+/u)
  return words.some(word => word.length > 2 && tokens.some(token => token.startsWith(word))) ? PATH_WORD : 1
}

/** Files changed lately count more, by default up to a fifth. */
const recentFactor = (root: string, path: string, most = RECENT): number => {
  const stats = lstatSync(join(root, path), { throwIfNoEntry: false })
  if (!stats) return 1
  return 1 + most * 0.5 ** (Math.max(0, Date.now() - stats.mtimeMs) / DAY_MS / HALF_LIFE_DAYS)
}

/** Joins what several engines found by the ranks that they give (reciprocal rank fusion). */
export const fuse = (root: string, results: readonly EngineResult[], words: readonly string[]): SearchedFile[] => {
  const lines = new Map<string, Fused>()
  for (const { kind, files } of results) {
    let rank = 0
    for (const { path, lines: found } of files) {
      for (const line of found) {
        if (++rank > MOST_RANKED) break
        const key = `${path}:${line.line}`
        const known = lines.get(key)
        const defines = line.tags.some(tag => tag.kind === 'def')
        const share = (1 / (RANK_OFFSET + rank)) * (defines && kind !== 'find' ? DEFINITION : 1)
        // A match of the name identifies the file, not a line.
        const placed = kind === 'files' ? { ...line, spans: undefined, text: undefined } : line
        if (known) lines.set(key, { path, score: known.score + share, line: merged(known.line, placed as FoundLine) })
        else lines.set(key, { path, score: share, line: placed as FoundLine })
      }
    }
  }
  const files = new Map<string, Fused[]>()
  for (const each of lines.values()) files.set(each.path, [...(files.get(each.path) ?? []), each])
  const counted = new Map(results.flatMap(({ files: all }) => all).map(file => [file.path, file]))
  return [...files]
    .map(([path, all]): SearchedFile => {
      const factor = pathFactor(path, words) * recentFactor(root, path)
      const ranked = all.sort((one, other) => other.score - one.score || one.line.line - other.line.line)
      const kept = ranked.slice(0, MOST_FILE_LINES)
      const score = ranked[0]!.score * factor * (1 + 0.05 * Math.log(ranked.length))
      return {
        path,
        score: Math.round(score * 1e6) / 1e6,
        lines: kept.map(({ line }) => line),
        count: Math.max(ranked.length, counted.get(path)?.count ?? 0),
        capped: ranked.length > MOST_FILE_LINES || (counted.get(path)?.capped ?? false),
      }
    })
    .sort(byScore)
}
