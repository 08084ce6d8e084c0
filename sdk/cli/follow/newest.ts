import { type Client, Unreached } from '../../client.js'
import { Refusal } from '../../refusal.js'
import { SELF } from '../terminal/own-name.js'
import { jsonLine, oneLine } from '../terminal/text.js'
import { EXIT, CommandFailure, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { say } from '../terminal/write.js'

/**
 * The conversation named first on the command line; default: the newest one, whose id goes to standard error. With
 * `working` the newest one at work, if there is one: what follows or stops a turn is meant for that.
 */
export const conversationOf = async (
  terminal: Terminal,
  client: Client,
  given: GivenArguments,
  { working = false } = {},
): Promise<string> => {
  const [named] = given.args
  if (named !== undefined) return named
  const { agents } = await client.call('GET /agents', undefined, { signal: terminal.signal })
  const newest = agents.toSorted((one, other) => other.updatedAt - one.updatedAt)
  const found = (working && newest.find(({ startedAt }) => startedAt !== undefined)) || newest[0]
  if (!found)
    throw new CommandFailure(EXIT.refused, `there is no conversation yet; start one with ${SELF} run "PROMPT"`)
  const busy = working && found.startedAt !== undefined ? ' at work' : ''
  const note = `conversation ${oneLine(found.id)}, the newest one${busy}`
  say(terminal, given.on('json') ? jsonLine({ note, conversationId: found.id }) : `${note}\n`)
  return found.id
}

/**
 * The conversation of a verb with `[CONVERSATION] "TEXT"`. A single argument is the text, unless a conversation has
 * this id: then it may be meant as either, and is refused.
 */
export const conversationBefore = async (
  terminal: Terminal,
  client: Client,
  { name, usage }: Pick<Verb, 'name' | 'usage'>,
  { before, text }: { readonly before: GivenArguments; readonly text: string },
  how: { readonly working?: boolean } = {},
): Promise<string> => {
  if (before.args.length === 0 && isId(text)) {
    const found = await client.call('GET /agents/{id}', { id: text }, { signal: terminal.signal }).catch(notFound)
    if (found)
      misused(
        `expected ${SELF} ${name} ${usage}, found the conversation ${text} alone; as a text, it needs its conversation `
          + 'before it',
      )
  }
  return conversationOf(terminal, client, before, how)
}

const isId = (text: string): boolean => /^[a-zA-Z0-9][a-zA-Z0-9_-]{0,63}$/.test(text)

const notFound = (error: unknown): undefined => {
  if (error instanceof Refusal && !(error instanceof Unreached)) return undefined
  throw error
}

/** Splits `[CONVERSATION] "TEXT"` into the text and the arguments before it. A single argument is the text. */
export const withText = (
  { name, usage }: Pick<Verb, 'name' | 'usage'>,
  given: GivenArguments,
): { before: GivenArguments; text: string } => {
  const { args } = given
  if (args.length > 2) misused(`expected ${SELF} ${name} ${usage}, found ${args.length} words; put the text in quotes`)
  return { before: { ...given, args: args.slice(0, -1) }, text: args.at(-1) ?? '' }
}
