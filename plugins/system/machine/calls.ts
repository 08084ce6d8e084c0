import { tmpdir } from 'node:os'
import type { Handlers, Host } from '../../../sdk/index.js'
import type { MachineCalls } from '../machine-contract.js'
import { Machine } from './machine.js'
import { terminalServers } from './processes.js'

/** Answers what the machine is doing. */
export const machineCalls = (host: Host): Handlers<MachineCalls> => {
  const failed = (error: unknown) => void (host.signal.aborted || host.log.warn('the machine could not be looked at', { error: String(error) }))
  const machine = new Machine({
    places: [['workspace', host.place.workspace], ['state', host.place.data], ['temp', tmpdir()]],
    owned: async seen => [...(await host.collect('system.processes')).flat(), ...(await terminalServers(seen, host.place.folder))],
    crossed: () => void host.call('kernel.events.publish', { domain: 'machine' }).catch(failed),
  })
  machine.begin(host.signal, failed)
  return { 'GET /system/usage': async ({ history }) => ({ machine: await machine.use(history === '1') }) }
}
