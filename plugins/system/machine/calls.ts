import { tmpdir } from 'node:os'
import type { Context, Handlers, Host } from '../../../sdk/index.js'
import { limitsOf } from '../../../sdk/node/access/access-view.js'
import type { MachineCalls, OwnedProcess, ProcessUse } from './contract.js'
import { Machine } from './machine.js'
import { terminalServers, type Seen } from './processes.js'

/** Which of some processes groups started, and the servers of terminals. */
export const ownedProcesses =
  ({ collect, place }: Pick<Host, 'collect' | 'place'>) =>
  async (seen: readonly Seen[]): Promise<OwnedProcess[]> => [
    ...(await collect('system.processes')).flat(),
    ...(await terminalServers(seen, place.folder)),
  ]

/** Serves the figures of the machine. */
export const machineCalls = (host: Host): Handlers<MachineCalls> => {
  const failed = (error: unknown) =>
    void (host.signal.aborted || host.log.warn('measuring the machine failed', { error: String(error) }))
  const machine = new Machine({
    places: [
      ['workspace', host.place.workspace],
      ['state', host.place.data],
      ['temp', tmpdir()],
    ],
    owned: ownedProcesses(host),
    crossed: () => void host.call('kernel.events.publish', { domain: 'machine' }).catch(failed),
  })
  machine.begin(host.signal, failed)
  return {
    'GET /system/usage': async ({ history }, context) => {
      const use = await machine.use(history === '1')
      return {
        machine: limitsOf(context.caller) ? { ...use, processes: await insideOf(host, use.processes, context) } : use,
      }
    },
  }
}

/**
 * The processes that a person limited to areas may see: the daemon's own, and those of conversations inside the areas.
 */
const insideOf = async (
  { call, serves }: Pick<Host, 'call' | 'serves'>,
  processes: readonly ProcessUse[],
  context: Context,
): Promise<ProcessUse[]> => {
  const named = [...new Set(processes.flatMap(served))]
  const { ids } =
    named.length > 0 && (await serves('agent.visible'))
      ? await call('agent.visible', { ids: named }, { as: context })
      : { ids: [] }
  return processes.filter(process => {
    const conversations = served(process)
    return conversations.length === 0 ? process.origin === 'daemon' : conversations.every(id => ids.includes(id))
  })
}

/** The conversations that a process serves. */
const served = ({ conversationId, conversationIds = [] }: ProcessUse): string[] =>
  conversationId === undefined ? conversationIds : [conversationId]
