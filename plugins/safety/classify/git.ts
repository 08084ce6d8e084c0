import type { CommandClass } from '../../settings/contract.js'
import { afterOptions, hasOption, operands } from './words.js'

const VALUED = ['-C', '-c', '--git-dir', '--work-tree', '--namespace', '--exec-path', '--config-env']
const NETWORK = new Set(['push', 'pull', 'fetch', 'clone', 'ls-remote', 'send-email'])
const ENDS = ['abort', 'quit', 'continue', 'skip', 'show-current-patch', 'edit-todo']

/** The classes of a command of git, by the words after the program. */
export const gitClasses = (words: readonly string[]): CommandClass[] => {
  const [command = '', ...rest] = afterOptions(words, VALUED)
  return [
    ...(destroys(command, rest) ? (['git.destructive'] as const) : []),
    ...(command === 'push' || command === 'send-email' ? (['git.publish'] as const) : []),
    ...(NETWORK.has(command) || reaches(command, rest) ? (['network.outbound'] as const) : []),
    ...(command === 'credential' || command === 'credential-store' ? (['secrets.access'] as const) : []),
  ]
}

const reaches = (command: string, [first = '']: readonly string[]): boolean =>
  (command === 'remote' && ['update', 'show', 'prune'].includes(first))
  || (command === 'submodule' && first === 'update')

const destroys = (command: string, rest: readonly string[]): boolean => {
  switch (command) {
    case 'push':
      return (
        hasOption(rest, 'f', 'force', 'force-with-lease', 'force-if-includes', 'mirror', 'prune', 'delete')
        || hasOption(rest, 'd')
        || operands(rest).some(word => /^[+:]./.test(word))
      )
    case 'reset':
      return hasOption(rest, undefined, 'hard', 'merge', 'keep')
    case 'clean':
      return hasOption(rest, 'f', 'force') && !hasOption(rest, 'n', 'dry-run')
    case 'branch':
      return (
        hasOption(rest, 'D')
        || (hasOption(rest, 'd', 'delete') && hasOption(rest, 'f', 'force'))
        || hasOption(rest, 'M')
      )
    case 'checkout':
      return hasOption(rest, 'f', 'force') || rest.includes('--') || rest.includes('.') || hasOption(rest, 'B')
    case 'switch':
      return hasOption(rest, 'f', 'force', 'discard-changes') || hasOption(rest, 'C', 'force-create')
    case 'restore':
      return !hasOption(rest, 'S', 'staged') || hasOption(rest, 'W', 'worktree')
    case 'rebase':
      return !hasOption(rest, undefined, ...ENDS)
    case 'commit':
      return hasOption(rest, undefined, 'amend')
    case 'filter-branch':
    case 'filter-repo':
    case 'update-ref':
    case 'replace':
      return true
    case 'reflog':
      return ['expire', 'delete'].includes(rest[0] ?? '')
    case 'gc':
    case 'prune':
      return command === 'prune' || rest.some(word => /^--prune(?:=|$)/.test(word))
    case 'stash':
      return ['drop', 'clear'].includes(rest[0] ?? '')
    case 'tag':
      return hasOption(rest, 'd', 'delete') || hasOption(rest, 'f', 'force')
    case 'worktree':
      return rest[0] === 'remove' && hasOption(rest, 'f', 'force')
    case 'remote':
      return rest[0] === 'remove' || rest[0] === 'rm'
    default:
      return false
  }
}
