import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import type { Terminal } from '../verb.js'
import { say } from './write.js'

/** Asks for a line at the terminal without echoing it. */
export const askHidden = async (
  terminal: Pick<Terminal, 'in' | 'err' | 'signal'>,
  question: string,
): Promise<string> => {
  const nowhere = new Writable({ write: (_bytes, _encoding, done) => done() })
  const lines = createInterface({ input: terminal.in, output: nowhere, terminal: true })
  try {
    say(terminal, question)
    return await lines.question('', { signal: terminal.signal })
  } finally {
    lines.close()
    say(terminal, '\n')
  }
}
