import { connectionArgs, firstWord, parsed, withoutWord } from '../arguments.js'
import { didYouMean } from '../terminal/did-you-mean.js'
import { SELF } from '../terminal/own-name.js'
import { plain } from '../terminal/text.js'
import { type CommandFailure, CONNECTION, EXIT, misused, type Terminal, type Verb } from '../verb.js'
import { commandOf, groupCommand } from './command.js'
import { calls, operations } from './list.js'
import { bareOf, commandNamed, groupCommands, groupsOf, tableOf } from './tables.js'

const WORD = /^[a-z][a-z-]*$/

/** A verb of a group, with the arguments behind its name. */
export interface FoundVerb {
  readonly verb: Verb
  readonly rest: readonly string[]
}

/**
 * Finds the verb of `sandbox GROUP VERB`: a call of the daemon's document, as the table of its group says. The group
 * alone does what its table says, and with --help lists its verbs. A written verb of that name has the rest.
 */
export const groupVerb = async (
  terminal: Terminal,
  group: string,
  rest: readonly string[],
  written?: Verb,
): Promise<FoundVerb | undefined> => {
  if (!WORD.test(group)) return undefined
  const table = await tableOf(terminal, group)
  const given = parsed(calls, connectionArgs(rest))
  const helped = rest.some(arg => arg === '--help' || arg === '-h')
  const all = await operations(terminal, given).catch((error: unknown) => {
    if (table && !written && !(helped && (error as CommandFailure).code === EXIT.noDaemon)) throw error
    return undefined
  })
  if (all === undefined && written) return undefined
  if (all === undefined) return table && { verb: unreachedGroup(group, Object.keys(table.verbs)), rest }
  const commands = groupCommands(
    all.filter(each => each.group === group),
    table,
  )
  if (commands.length === 0) return undefined
  const word = firstWord(rest)
  if (word !== undefined) {
    const command = commandNamed(commands, word)
    if (command) return { verb: commandOf(command), rest: withoutWord(rest, word) }
    const names = commands.filter(({ hidden }) => !hidden).map(({ name }) => name)
    return misused(
      `no verb ${plain(word)} of ${group}${didYouMean(word, names, `${group} `)}; `
        + `${SELF} ${group} --help lists them: ${names.join(', ')}`,
    )
  }
  const bare = bareOf(commands, table)
  return { verb: helped || !bare ? groupCommand(group, commands, table) : commandOf(bare), rest }
}

/** The help of a group without a daemon: the names of its verbs. */
const unreachedGroup = (group: string, names: readonly string[]): Verb => ({
  name: group,
  usage: '[VERB] [ARGUMENTS] [OPTIONS]',
  summary: `The verbs of group ${group}: ${names.join(', ')}.`,
  notes: ['While a daemon runs, this page says what each of them does.'],
  examples: [group],
  flags: CONNECTION,
  run: async () => misused(`expected a verb of ${group}`),
})

/** The groups that are known: of this program, and of the daemon if one answers. */
export const knownGroups = async (terminal: Terminal, rest: readonly string[]): Promise<string[]> => {
  const all = await operations(terminal, parsed(calls, connectionArgs(rest))).catch(() => [])
  return [...new Set([...groupsOf(terminal), ...all.map(({ group }) => group)])]
}
