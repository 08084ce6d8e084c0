import type { Client } from '../client.js'
import { SELF } from './own-name.js'
import { oneLine } from './text.js'
import { EXIT, Failure, type Given, type Terminal } from './verb.js'
import { say } from './write.js'

/** The conversation named first on the command line; none: the newest one, which is told beside the output. */
export const conversationOf = async (terminal: Terminal, client: Client, given: Given): Promise<string> => {
  const [named] = given.args
  if (named !== undefined) return named
  const { agents } = await client.call('GET /agents', undefined, { signal: terminal.signal })
  const found = agents.find(({ startedAt }) => startedAt !== undefined) ?? agents[0]
  if (!found) throw new Failure(EXIT.failed, `there is no conversation yet; start one with ${SELF} run "PROMPT"`)
  say(terminal, `conversation ${oneLine(found.id)}, the newest one\n`)
  return found.id
}
