import { refuse } from '../../../sdk/index.js'
import { splitWords } from '../../../sdk/node/programs/split-words.js'

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
