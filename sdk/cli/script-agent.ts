import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { ended } from './daemon-process.js'
import type { Verb } from './verb.js'

/** Runs the bundled agent program in this program's place. */
export const scriptAgentVerb: Verb = {
  name: 'script-agent',
  usage: '',
  summary: 'be an agent program that runs scripts, for clients of the Agent Client Protocol',
  examples: ['script-agent'],
  notes: [
    'It speaks the protocol on standard input and output, in the place of a model; a client starts it, a person '
      + 'has no use for it by hand.',
  ],
  flags: {},
  run: (terminal, _given) => {
    const { root, cwd, env } = terminal
    const program = join(root, 'plugins', 'agent', 'providers', 'script-agent.js')
    return ended(spawn(process.execPath, [program], { cwd, env: { ...env }, stdio: 'inherit' }), terminal)
  },
}
