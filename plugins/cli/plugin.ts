import type { Contract, Host } from '../../sdk/index.js'
import { programFile } from '../../sdk/node/programs/package.js'
import { Applies } from './applies.js'
import { cliCalls } from './calls.js'
import { ProgramCommands } from './commands.js'
import { cliContract, type CliCalls } from './contract.js'
import { examples } from './examples.js'
import { CliRuns } from './runs.js'

export const contract: Contract<CliCalls> = { ...cliContract, examples }

/** Runs the program inside of the sandbox. */
export const activate = async (host: Host): Promise<void> => {
  const file = programFile('sdk/cli.js')
  const program = { file, commands: new ProgramCommands(file) }
  const applies = await Applies.open(host, program)
  host.on('terminal.ended', () => applies.look())
  await host.serve(cliContract, cliCalls(host, { program, applies, runs: new CliRuns(host, program, applies) }))
}
