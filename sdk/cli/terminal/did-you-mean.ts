import { nearest } from '../../node/nearest.js'

/** The fewest letters of a word that is taken for the beginning of another. */
const BEGINNING = 3

/** `; did you mean X?` with the nearest word, or the only one that begins so; else nothing. */
export const didYouMean = (found: string, words: Iterable<string>, before = ''): string => {
  const all = [...new Set(words)]
  const begun = found.length >= BEGINNING ? all.filter(word => word.startsWith(found)) : []
  const meant = begun.length === 1 ? begun[0] : nearest(found, all)
  return meant === undefined ? '' : `; did you mean ${before}${meant}?`
}
