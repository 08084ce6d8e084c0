import { SELF } from '../terminal/own-name.js'
import { columns } from '../terminal/text.js'
import { CONNECTION, type GivenArguments, misused, type Terminal, type Verb } from '../verb.js'
import { printResult } from '../terminal/asked.js'
import { readDocument } from './document.js'
import { operationsOf, type Operation } from './operation.js'

/** All calls of the selected daemon. */
export const operations = async (terminal: Terminal, given: GivenArguments): Promise<Operation[]> =>
  operationsOf(await readDocument(terminal, given))

/** Lists every call of the daemon as the command that makes it. */
export const calls: Verb = {
  name: 'calls',
  usage: '[GROUP]',
  summary: 'list every call of the daemon as a command, GROUP CALL',
  examples: ['calls', 'calls agents'],
  notes: [
    `Each of them is also a command, with --help: ${SELF} settings get, ${SELF} agents get c-1, ${SELF} areas list `
      + '--json.',
    'They come from the document the daemon publishes, so calls of its extensions are among them.',
  ],
  flags: {
    names: { help: 'only the names, one a line: the groups, or the calls of GROUP' },
    ...CONNECTION,
  },
  least: 0,
  most: 1,
  run: async (terminal, given) => {
    const [group] = given.args
    const all = await operations(terminal, given)
    const groups = [...new Set(all.map(each => each.group))]
    if (group !== undefined && !groups.includes(group))
      misused(`expected a group (${groups.join(', ')}), found ${group}`)
    const shown = group === undefined ? all : all.filter(each => each.group === group)
    if (given.on('names')) {
      const names = group === undefined ? groups : shown.map(({ name }) => name)
      return printResult(terminal, given, names, () => names)
    }
    return printResult(terminal, given, shown, (_, width) =>
      columns([['COMMAND', 'WHAT IT DOES'], ...shown.map(each => [`${each.group} ${each.name}`, each.summary])], width),
    )
  },
}
