import type { Action, Command } from './command.js'
import { literal } from './variables.js'

/** Verbs that an agent program can do with what the Agent Client Protocol offers. */
const VERBS = new Set<Action['verb']>([
  'say', 'think', 'expect', 'fail', 'wait', 'usage', 'stop', 'permit',
  'run', 'list', 'delete', 'image', 'read', 'write', 'append', 'edit', 'move', 'todo',
])

const doable = ({ action }: Command, planning: boolean): boolean =>
  VERBS.has(action.verb) || (action.verb === 'plan' && planning) || (action.verb === 'absent' && action.name === 'die')

const nameOf = (action: Action): string => (action.verb === 'absent' ? action.name : action.verb)

/** The script as an agent program runs it: what it cannot do it says, and goes on. */
export const outside = (commands: readonly Command[], planning: boolean): readonly Command[] =>
  commands.map(command => (doable(command, planning) ? command
    : { ...command, action: { verb: 'say', text: literal(`${nameOf(command.action)}: not available here`) } }))

/** The script in words, for a plan that nobody wrote into it. */
export const outline = (commands: readonly Command[]): string =>
  ['This is what I would do:', ...commands.map(({ action, times }, at) => {
    const what = 'path' in action ? action.path : 'text' in action ? action.text : 'from' in action ? `${action.from} -> ${action.to}` : ''
    return `${at + 1}. ${times === undefined ? '' : `${times} times: `}${nameOf(action)} ${what.split('\n', 1)[0]!.slice(0, 120)}`.trimEnd()
  })].join('\n')
