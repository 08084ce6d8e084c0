import { refuse } from '../../../sdk/index.js'

/** A pattern of paths, as its segments. */
export type PathGlob = readonly string[]

const MOST_EXPANDED = 64
const ANY_DEPTH = '**'

/** Whether a text fits a pattern of `*` and `?`; the time is bounded by the product of their lengths. */
const segmentFits = (pattern: string, text: string): boolean => {
  let [p, s, star, from] = [0, 0, -1, 0]
  while (s < text.length) {
    if (pattern[p] === '*') {
      star = p++
      from = s
    } else if (p < pattern.length && (pattern[p] === '?' || pattern[p] === text[s])) {
      p++
      s++
    } else if (star >= 0) {
      p = star + 1
      s = ++from
    } else return false
  }
  while (pattern[p] === '*') p++
  return p === pattern.length
}

/** Whether a path matches a pattern, in which `**` stands for any number of folders. */
export const globFits = (glob: PathGlob, path: string): boolean => {
  const segments = path.split('/')
  let [p, s, star, from] = [0, 0, -1, 0]
  while (s < segments.length) {
    if (glob[p] === ANY_DEPTH) {
      star = p++
      from = s
    } else if (p < glob.length && segmentFits(glob[p]!, segments[s]!)) {
      p++
      s++
    } else if (star >= 0) {
      p = star + 1
      s = ++from
    } else return false
  }
  while (glob[p] === ANY_DEPTH) p++
  return p === glob.length
}

/** Expands braces: `a.{ts,js}` gives `a.ts` and `a.js`. */
const withoutBraces = (text: string): string[] => {
  let waiting = [text]
  for (;;) {
    const next = waiting.flatMap(each => {
      const inner = /\{([^{}]*)\}/.exec(each)
      if (!inner) return [each]
      return inner[1]!
        .split(',')
        .map(part => each.slice(0, inner.index) + part + each.slice(inner.index + inner[0].length))
    })
    if (next.length > MOST_EXPANDED)
      refuse('invalid', `include: expected braces that stand for at most ${MOST_EXPANDED} patterns`, {
        errors: [{ path: 'include', expected: `at most ${MOST_EXPANDED} patterns`, value: text }],
      })
    if (next.every(each => waiting.includes(each))) return next
    waiting = next
  }
}

/** The parts of a text between commas that are not in braces. */
const partsOf = (text: string): string[] => {
  const parts = ['']
  let depth = 0
  for (const char of text) {
    if (char === '{') depth++
    if (char === '}') depth--
    if (char === ',' && depth <= 0) parts.push('')
    else parts[parts.length - 1] += char
  }
  return parts.map(part => part.trim()).filter(part => part !== '')
}

/** A pattern matches at any depth, unless it begins with `./`; a folder's pattern matches everything below it. */
export const globsOf = (text: string): PathGlob[] =>
  withoutBraces(text).flatMap(each => {
    const anchored = each.startsWith('./')
    const bare = each.replace(/^\.?\/+/, '').replace(/\/+$/, '')
    if (bare === '') return []
    const named = /^\.[\w]+$/.test(bare) ? `*${bare}` : bare
    const glob = [...(anchored || named.startsWith(`${ANY_DEPTH}/`) ? [] : [ANY_DEPTH]), ...named.split('/')]
    return [glob, [...glob, ANY_DEPTH]]
  })

/** Patterns that a path must fit one of, and others that it must not fit. */
export interface IncludePatterns {
  readonly include: readonly PathGlob[]
  readonly exclude: readonly PathGlob[]
}

/** Reads patterns separated by commas; those with `!` in front exclude. */
export const includePatterns = (text: string): IncludePatterns => {
  const parts = partsOf(text)
  return {
    include: parts.filter(part => !part.startsWith('!')).flatMap(globsOf),
    exclude: parts.filter(part => part.startsWith('!')).flatMap(part => globsOf(part.slice(1))),
  }
}

/** Whether a path passes such patterns. */
export const isIncluded = ({ include, exclude }: IncludePatterns, path: string): boolean =>
  (include.length === 0 || include.some(glob => globFits(glob, path))) && !exclude.some(glob => globFits(glob, path))
