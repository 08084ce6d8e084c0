import type { Contract, Host } from '../../sdk/index.js'
import { panelsCalls } from './calls.js'
import { panelsContract, type PanelsCalls } from './contract.js'
import { examples } from './examples.js'
import { Panels } from './panels.js'
import { PanelServers } from './servers.js'

export const contract: Contract<PanelsCalls> = { ...panelsContract, examples }

/** Starts, ends and finds the development servers of repositories. */
export const activate = async (host: Host): Promise<void> => {
  const failed = (what: string) => (error: unknown) =>
    void (host.signal.aborted || host.log.warn(`${what} failed`, { error: String(error) }))
  const panels = await Panels.open(host, new PanelServers(host))
  host.on(
    'terminal.ended',
    ({ purpose, exitCode }) => void panels.ended(purpose, exitCode).catch(failed('noting the end of a panel')),
  )
  host.on('daemon.ready', () => void panels.resume().catch(failed('finding the panels of the last run')))
  await host.serve(panelsContract, panelsCalls(host, panels))
}
