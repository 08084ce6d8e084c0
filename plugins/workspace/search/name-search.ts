import { sweepTree } from '../tree/sweep.js'
import { byScore, type SearchedFile, type SearchedFiles } from './found.js'
import { globFits, globsOf } from './globs.js'
import { admits } from './search-scope.js'
import { isTimeout, type DiskSearch } from './text-search.js'

const MOST_KEPT = 5_000
const MOST_ADMITTED = 1_000_000

interface NameFit {
  readonly score: number
  readonly spans: { start: number; end: number }[]
  readonly kind: 'path' | 'fuzzy'
}

const at = (start: number, length: number) => [{ start, end: start + length }]

/** The positions of the letters of a query in a path, searched from its end, so that the name is preferred. */
const subsequence = (path: string, query: string): NameFit['spans'] | undefined => {
  const spans: NameFit['spans'] = []
  let from = path.length - 1
  for (let letter = query.length - 1; letter >= 0; letter--) {
    const place = path.lastIndexOf(query[letter]!, from)
    if (place < 0 || from < 0) return undefined
    const first = spans[0]
    if (first?.start === place + 1) first.start = place
    else spans.unshift({ start: place, end: place + 1 })
    from = place - 1
  }
  return spans
}

/** How well a path fits a query in lower case; undefined: not at all. */
const fitOf = (path: string, query: string): NameFit | undefined => {
  const low = path.toLowerCase()
  const name = low.slice(low.lastIndexOf('/') + 1)
  const nameAt = low.length - name.length
  const short = 1 - Math.min(path.length, 4096) / 8192
  const stem = name.replace(/\.[^.]+$/, '')
  if (low === query || name === query)
    return { score: 900 + short, spans: at(low.length - query.length, query.length), kind: 'path' }
  if (stem === query) return { score: 850 + short, spans: at(nameAt, query.length), kind: 'path' }
  if (name.startsWith(query)) return { score: 700 + short, spans: at(nameAt, query.length), kind: 'path' }
  if (low.endsWith(`/${query}`))
    return { score: 600 + short, spans: at(low.length - query.length, query.length), kind: 'path' }
  const inName = name.indexOf(query)
  if (inName >= 0) return { score: 500 + short, spans: at(nameAt + inName, query.length), kind: 'path' }
  const inPath = low.lastIndexOf(query)
  if (inPath >= 0) return { score: 400 + short, spans: at(inPath, query.length), kind: 'path' }
  const spans = subsequence(low, query)
  if (!spans) return undefined
  const density = query.length / (low.length - spans[0]!.start)
  return { score: Math.round((100 + 100 * density - 5 * spans.length + short) * 1000) / 1000, spans, kind: 'fuzzy' }
}

/** Finds files by their names. */
export const nameSearch = async (search: DiskSearch, query: string): Promise<SearchedFiles> => {
  const { tree, scope, includeIgnored, signal } = search
  const isGlob = /[*?]/.test(query)
  const globs = isGlob ? globsOf(query) : []
  const low = query.toLowerCase().replace(/\s+/g, '')
  let files: SearchedFile[] = []
  let [admitted, count, partial] = [0, 0, false]
  const keep = () => {
    files = files.sort(byScore).slice(0, MOST_KEPT)
  }
  try {
    for await (const { path, kind } of sweepTree(tree, { from: scope.dir, ignored: includeIgnored, signal })) {
      if (kind !== 'file' || !admits(scope, path)) continue
      if (++admitted > MOST_ADMITTED) break
      const fit: NameFit | undefined = isGlob
        ? globs.some(glob => globFits(glob, path))
          ? { score: 1 - path.length / 8192, spans: [], kind: 'path' }
          : undefined
        : fitOf(path, low)
      if (!fit) continue
      count += 1
      const text = path.slice(0, 200)
      const spans = fit.spans.filter(({ end }) => end <= text.length)
      const tags = [{ kind: fit.kind, score: fit.score }]
      files.push({ path, score: fit.score, count: 1, capped: false, lines: [{ line: 1, text, spans, tags }] })
      if (files.length > 2 * MOST_KEPT) keep()
    }
  } catch (error) {
    if (!isTimeout(signal)) throw error
    partial = true
  }
  keep()
  return { files, partial: partial || admitted > MOST_ADMITTED || count > MOST_KEPT }
}
