import type { Contract, Host } from '../../sdk/index.js'
import { repeat } from '../../sdk/node/concurrency/repeat.js'
import { disksContract, type DisksCalls } from './contract.js'
import { assertTurnMay } from '../../sdk/node/access/turns/turn-asks.js'
import { usesConnection } from '../../sdk/node/access/turns/turn-connections.js'
import { Disks } from './disks.js'
import { examples } from './examples.js'
import { kindCalls, SHARE_KIND } from './kind.js'
import { probeServer } from './servers/probe.js'

export const contract: Contract<DisksCalls> = { ...disksContract, examples }

const LOOK_MS = 10_000

/** Mounts shares of other machines as folders of this one. */
export const activate = async (host: Host): Promise<void> => {
  const disks = new Disks(host)
  host.contribute('capabilities.kinds', () => [SHARE_KIND])
  host.boot('Network disks', () => disks.recover())
  host.on('daemon.ready', () => {
    disks
      .mountAll()
      .catch(error => host.signal.aborted || host.log.warn('mounting shares failed', { error: String(error) }))
  })
  host.on('vpn.connected', () => {
    disks
      .mountFailed()
      .catch(error => host.signal.aborted || host.log.warn('mounting shares failed', { error: String(error) }))
  })
  repeat(host, LOOK_MS, 'looking at the mounted shares', () => disks.look())

  await host.serve(disksContract, {
    ...kindCalls(host, disks),
    'disks.forTurn': ({ capabilities }) => disks.forTurn(capabilities),
    'GET /disks': async (_, context) => {
      await assertTurnMay(host, context, { type: 'disks', text: 'list the disks' })
      const all = await disks.list(context)
      return { disks: all.filter(({ id }) => usesConnection(context.caller, id)) }
    },
    'GET /disks/{id}': ({ id }) => disks.read(id),
    'POST /disks/probe': target => {
      const { password, privateKey } = { password: undefined, privateKey: undefined, ...target }
      const secrets = { ...(password !== undefined && { password }), ...(privateKey !== undefined && { privateKey }) }
      return probeServer(host, target, secrets)
    },
    'POST /disks/{id}/mount': async ({ id }, context) => {
      await assertTurnMay(host, context, { type: 'disks', text: `mount ${id}` }, id)
      return disks.mount(id, context)
    },
    'POST /disks/{id}/unmount': async ({ id, force = false }, context) => {
      await assertTurnMay(host, context, { type: 'disks', text: `unmount ${id}` }, id)
      return disks.unmount(id, force, context)
    },
  })
}
