/**
 * The words of a command line: split at blanks, with '…', "…" and \ as in a POSIX shell, and nothing else of one.
 *
 * Undefined: a quote is not closed, or a \ stands last.
 */
export const splitWords = (line: string): string[] | undefined => {
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let at = 0; at < line.length; at++) {
    const sign = line[at]!
    if (quote === "'" ? sign !== "'" : quote === '"' && sign !== '"' && sign !== '\\') word = (word ?? '') + sign
    else if (sign === quote) quote = ''
    else if (sign === '\\') {
      const next = line[++at]
      if (next === undefined) return undefined
      word = (word ?? '') + (quote === '"' && next !== '"' && next !== '\\' ? `\\${next}` : next)
    } else if (sign === "'" || sign === '"') {
      quote = sign
      word ??= ''
    } else if (/\s/.test(sign)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else word = (word ?? '') + sign
  }
  if (quote) return undefined
  return word === undefined ? words : [...words, word]
}
