import { existsSync } from 'node:fs'
import { refuse } from '../../../sdk/index.js'
import { ownProgram } from '../../../sdk/node/programs/run.js'
import { LinuxMachine } from './linux.js'
import { LsofMachine } from './lsof.js'
import type { SystemSockets } from './system-sockets.js'

/** What this system offers: socket tables, else `lsof`. */
export const findSockets = async (): Promise<SystemSockets> => {
  if (existsSync('/proc/self/net/tcp')) return new LinuxMachine()
  const [lsof, ps] = await Promise.all([ownProgram('lsof'), ownProgram('ps')])
  return lsof && ps
    ? new LsofMachine(lsof, ps)
    : refuse('missing-program', 'this system shows its sockets through lsof, which is not installed: install lsof')
}
