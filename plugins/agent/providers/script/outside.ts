import { literal } from './variables.js'
import { type ScriptCommand, verb } from './verb.js'
import { verbs } from './verbs.js'

/** Verbs that an agent program can do with what the Agent Client Protocol offers. */
const DOABLE = new Set([
  'say',
  'think',
  'expect',
  'fail',
  'stop',
  'wait',
  'usage',
  'context',
  'permit',
  'run',
  'list',
  'delete',
  'image',
  'read',
  'write',
  'append',
  'edit',
  'move',
  'todo',
])

/** What an agent program can do and a provider of the daemon's own cannot. */
const die = verb({
  ...verbs.get('die')!,
  run: () => {
    process.stderr.write('the script told this agent program to die\n')
    process.exit(1)
  },
})

const forWords = ({ input }: ScriptCommand): boolean => 'words' in input && input.words === true

/** The script as an agent program runs it: what it cannot do it says, and goes on. */
export const outside = (commands: readonly ScriptCommand[], planning: boolean): readonly ScriptCommand[] =>
  commands.map(command => {
    const { name } = command
    if (name === 'die') return { ...command, verb: die }
    if (command.verb.native || (DOABLE.has(name) && !forWords(command)) || (name === 'plan' && planning)) return command
    const text = literal(
      `${forWords(command) ? `${name} words` : name} is not available here: the client has no way to do it.`,
    )
    return { ...command, name: 'say', verb: verbs.get('say')!, input: { text } }
  })

/** The script in words, for a plan that nobody wrote into it. */
export const outline = (commands: readonly ScriptCommand[]): string =>
  [
    'This is what I would do:',
    ...commands.map(({ name, input, times }, at) => {
      const what = Object.values(input).find(value => typeof value === 'string') ?? ''
      const often = times === undefined ? '' : `${times} times: `
      return `${at + 1}. ${often}${name} ${what.split('\n', 1)[0]!.slice(0, 120)}`.trimEnd()
    }),
  ].join('\n')
