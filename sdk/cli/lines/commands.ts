import { DEPLOY_COMMANDS } from '../deploy/deploy.js'
import { readDocument } from '../calls/document.js'
import { CONNECTION, EXIT, type Verb } from '../verb.js'
import { linePrinter } from './lines.js'

/** A command that a daemon runs for people. */
interface ListedCommand {
  readonly args: readonly string[]
  readonly summary: string
  readonly flags: readonly { readonly name: string; readonly value?: string; readonly summary: string }[]
  readonly run: 'stream' | 'apply'
  readonly changes: boolean
}

const listed = (args: readonly string[], summary: string, more: Partial<ListedCommand> = {}): ListedCommand => ({
  args,
  summary,
  flags: [],
  run: 'stream',
  changes: false,
  ...more,
})

const COMMANDS: readonly ListedCommand[] = [
  listed(['version'], 'print the version of this program'),
  listed(['commands'], 'list these commands'),
  listed(['doctor'], 'show what each group lacks on this machine, and the command that installs it'),
  listed(['contract'], 'print the served contract as OpenAPI'),
  listed(['call'], "make one call of the contract: 'METHOD /path' KEY=VALUE…"),
  ...DEPLOY_COMMANDS.map(({ name, summary, applies = false, changes = false }) =>
    listed(['deploy', name], summary, { run: applies ? 'apply' : 'stream', changes }),
  ),
]

const json = { help: 'print JSON, one value a line' }

/** Lists the commands that a daemon runs for people. */
export const commandsVerb: Verb = {
  name: 'commands',
  usage: '',
  summary: 'list the commands that a daemon runs for people (POST /cli)',
  examples: ['commands'],
  flags: { json },
  most: 0,
  run: async (terminal, given) => {
    const words = COMMANDS.map(({ args, summary }) => `${args.join(' ')}: ${summary}`)
    await linePrinter(terminal, given.on('json')).result({ commands: COMMANDS }, words)
    return EXIT.ok
  },
}

/** Prints the version. */
export const versionVerb: Verb = {
  name: 'version',
  usage: '',
  summary: 'print the version of this program',
  examples: ['version'],
  flags: { json },
  most: 0,
  run: async (terminal, given) => {
    const { version } = terminal
    await linePrinter(terminal, given.on('json')).result({ version }, [version])
    return EXIT.ok
  },
}

/** Prints the published document. */
export const contractVerb: Verb = {
  name: 'contract',
  usage: '',
  summary: 'print the served contract as OpenAPI',
  examples: ['contract'],
  flags: CONNECTION,
  most: 0,
  run: async (terminal, given) => {
    const document = await readDocument(terminal, given)
    const words = [JSON.stringify(document, undefined, 2)]
    await linePrinter(terminal, given.on('json')).result({ document }, words)
    return EXIT.ok
  },
}
