import { refuse } from '../../../sdk/index.js'

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

/** The words of a field, of which there must be one. */
export const commandWords = (field: string, line: string): [program: string, ...args: string[]] => {
  if (line.includes('\0')) refuse('invalid', `config.${field}: expected a command line without NUL characters`)
  const words = splitWords(line) ?? refuse('invalid', `config.${field}: expected every quote to be closed`)
  const [program = '', ...args] = words
  if (program === '') refuse('invalid', `config.${field}: expected a program, found nothing`)
  return [program, ...args]
}

const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)=(.*)$/

/** The variables of a field with `NAME=value` lines; blank lines and those with # before them are skipped. */
export const variablesOf = (field: string, text = ''): { [name: string]: string } => {
  const lines = text.split(/\r?\n/).map((line, at) => [line, at + 1] as const)
  return Object.fromEntries(
    lines
      .filter(([line]) => line.trim() !== '' && !line.trimStart().startsWith('#'))
      .map(([line, number]) => {
        const [, name, value] = VARIABLE.exec(line) ?? []
        if (name === undefined || line.includes('\0'))
          return refuse('invalid', `config.${field}: expected NAME=value in line ${number}`)
        return [name, value!] as const
      }),
  )
}
