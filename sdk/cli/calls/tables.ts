import { existsSync, globSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CliInput, CliTable, CliVerb } from '../../cli-table.js'
import type { Terminal } from '../verb.js'
import type { Operation } from './operation.js'

/** The table of a group of this program; absent for groups without one, such as those of a newer daemon. */
export const tableOf = async ({ root }: Pick<Terminal, 'root'>, group: string): Promise<CliTable | undefined> => {
  const file = join(root, 'plugins', group, 'cli.js')
  if (!/^[a-z][a-z-]*$/.test(group) || !existsSync(file)) return undefined
  const { cli } = (await import(pathToFileURL(file).href)) as { cli: CliTable }
  return cli
}

/** The groups of this program that have a table, which are known without a daemon. */
export const groupsOf = ({ root }: Pick<Terminal, 'root'>): string[] =>
  globSync('*/cli.js', { cwd: join(root, 'plugins') })
    .map(file => dirname(file))
    .sort()

/** A call with the verb that its group's table has for it. */
export interface GroupCommand {
  readonly name: string
  readonly operation: Operation
  readonly verb?: CliVerb
  /** All verbs of its call, if it has several: the input decides which one's words fit. */
  readonly siblings?: readonly CliVerb[]
  /** For programs: not listed. */
  readonly hidden: boolean
}

/** The commands of a group: calls under the names of the table, the others under their own. */
export const groupCommands = (operations: readonly Operation[], table: CliTable | undefined): GroupCommand[] =>
  operations
    .flatMap(operation => {
      const verbs = Object.entries(table?.verbs ?? {}).filter(([, { call }]) => call === operation.call)
      const hidden = table?.hidden?.includes(operation.call) ?? false
      return verbs.length === 0
        ? [{ name: operation.name, operation, hidden }]
        : verbs.map(([name, verb]) => ({
            ...{ name, operation, verb, hidden },
            ...(verbs.length > 1 && { siblings: verbs.map(([, each]) => each) }),
          }))
    })
    .sort((one, other) => (one.name < other.name ? -1 : 1))

/** The command of a name, or of the name that the document has for its call. */
export const commandNamed = (commands: readonly GroupCommand[], name: string): GroupCommand | undefined =>
  commands.find(command => command.name === name) ?? commands.find(({ operation }) => operation.name === name)

/** The verb that an input is of: several verbs may make one call, each with fields that it fills in. */
export const verbFor = ({ verb, siblings = [] }: GroupCommand, input: CliInput): CliVerb | undefined =>
  siblings.find(({ fill }) => {
    const filled = Object.entries(fill?.({}) ?? {})
    return filled.length > 0 && filled.every(([field, value]) => input[field] === value)
  }) ?? verb

/** The verbs that a bare group does, if it has no table that says so. */
const LISTS = ['list', 'get', 'status']

/** What the group's name alone does. */
export const bareOf = (commands: readonly GroupCommand[], table: CliTable | undefined): GroupCommand | undefined =>
  (table ? [table.bare] : LISTS).map(name => commandNamed(commands, name)).find(Boolean)
