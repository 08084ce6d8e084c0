import { createInterface } from 'node:readline/promises'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from '../verb.js'
import { say } from './write.js'

/** Asks for confirmation at the terminal; without a terminal fails and names the flag to use. */
export const confirmed = async (
  terminal: Terminal,
  given: GivenArguments,
  question: string,
  flag: string,
): Promise<boolean> => {
  if (!terminal.interactive || given.on('json'))
    throw new CommandFailure(EXIT.usage, `${question} expected ${flag}, because there is no terminal to ask at`)
  const lines = createInterface({ input: terminal.in, output: terminal.out })
  try {
    const yes = /^y(es)?$/i.test((await lines.question(`${question} [y/N] `, { signal: terminal.signal })).trim())
    if (!yes) say(terminal, 'cancelled\n')
    return yes
  } finally {
    lines.close()
  }
}
