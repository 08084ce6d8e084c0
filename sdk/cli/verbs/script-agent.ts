import { spawn } from 'node:child_process'
import { ended } from '../daemon/daemon-process.js'
import type { Verb } from '../verb.js'
import { programFile } from '../../node/programs/package.js'

/** Runs the bundled agent program. */
export const scriptAgentVerb: Verb = {
  name: 'script-agent',
  usage: '',
  summary: 'run as an agent program that executes scripts, for clients of the Agent Client Protocol',
  examples: ['script-agent'],
  notes: [
    'It speaks the protocol on standard input and output and runs scripts instead of a model. Clients start it; '
      + 'people do not.',
  ],
  flags: {},
  run: (terminal, _given) => {
    const { cwd, env } = terminal
    const program = programFile('plugins/agent/providers/script-agent.js')
    return ended(spawn(process.execPath, [program], { cwd, env: { ...env }, stdio: 'inherit' }), terminal)
  },
}
