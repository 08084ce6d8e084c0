import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { misused, type Terminal } from '../verb.js'

/** Reads a file, or standard input for `-`; `what` begins the error message. */
export const inputText = async (
  { cwd, in: input }: Pick<Terminal, 'cwd' | 'in'>,
  file: string,
  what: string,
): Promise<string> => {
  if (file === '-') return text(input)
  return readFile(resolve(cwd, file), 'utf8').catch((error: NodeJS.ErrnoException) =>
    misused(`${what}: ${file} cannot be read (${error.code})`),
  )
}
