import { createInterface } from 'node:readline/promises'
import { EXIT, CommandFailure, type GivenArguments, type Terminal } from './verb.js'
import { say } from './write.js'

/** Asks the person at the terminal for a yes; where nobody can be asked it takes the flag, and says so. */
export const confirmed = async (
  terminal: Terminal,
  given: GivenArguments,
  question: string,
  flag: string,
): Promise<boolean> => {
  if (!terminal.interactive || given.on('json'))
    throw new CommandFailure(EXIT.usage, `${question} expected ${flag}, since nobody can be asked here`)
  const lines = createInterface({ input: terminal.in, output: terminal.out })
  try {
    const yes = /^y(es)?$/i.test((await lines.question(`${question} [y/N] `, { signal: terminal.signal })).trim())
    if (!yes) say(terminal, 'nothing was done\n')
    return yes
  } finally {
    lines.close()
  }
}
