import { refuse, type Contract, type Host, ignored } from '../../sdk/index.js'
import { ownProgram } from '../../sdk/node/programs/run.js'
import { record } from '../../sdk/node/record/record.js'
import { portsContract, type PortsCalls } from './contract.js'
import { examples } from './examples.js'
import { Forwards } from './forwards/forwards.js'
import { PortListing } from './listing.js'
import { Labels } from './preview/labels.js'
import { Previews } from './preview/previews.js'
import { speaksHttps } from './preview/probe.js'
import { PreviewStore } from './preview/store.js'
import { sample } from './sampler.js'
import { findSockets } from './scan/find-sockets.js'
import type { SystemSockets } from './scan/system-sockets.js'
import { PortScan } from './scan/scan.js'

export const contract: Contract<PortsCalls> = { ...portsContract, examples }

/** Lists ports, forwards them, and serves previews. */
export const activate = async (host: Host): Promise<void> => {
  const { call, log } = host
  let found: Promise<SystemSockets> | undefined
  const machine = () => {
    found ??= findSockets()
    found.catch(() => (found = undefined))
    return found
  }
  const store = new PreviewStore(host.files)
  await store.load()
  const scan = new PortScan(host, machine)
  const changed = () =>
    void call('kernel.events.publish', { domain: 'ports' }).catch(
      ignored('clients read the state again when they connect'),
    )
  const previews = new Previews({ host, store, scan, forwards: () => forwards, labels: () => labels })
  const labels = new Labels({
    store,
    machine,
    own: async () => new Set((await call('kernel.listeners')).listeners.map(({ port }) => port)),
    cut: label => previews.cut(label),
  })
  const forwards: Forwards = new Forwards({
    store,
    scan: fresh => (fresh ? scan.fresh() : scan.shared()),
    boot: async () => (await machine()).boot,
    probe: port => {
      const inodes = port.takers.map(({ inode }) => inode)
      const connect = async () =>
        (await previews.dial(port, inodes)) ?? refuse('dependency', `nothing is listening on port ${port.port}`)
      return speaksHttps(port.port, connect)
    },
    changed,
    ended: ({ port, conversationId, forward }, reason) =>
      void record(host, {
        type: 'port.unforwardedBySandbox',
        actor: 'sandbox:ports',
        ...(conversationId !== undefined && { conversationId }),
        content: `port ${port}: ${reason}`,
        extra: { port, title: forward!.title, reason },
      }),
    cut: slot => previews.cut(slot),
  })
  const listing = new PortListing({
    host,
    forwarded: port => {
      const slot = forwards.at(port)
      const url = slot && previews.urlOf(slot)
      return slot && { slot, ...(url !== undefined && { url }) }
    },
  })

  host.boot('Forwarded ports', async () => {
    const isUsed = forwards.active.length > 0 || store.state.labels.some(({ program }) => program)
    if (!isUsed) return
    try {
      await forwards.recover()
      await previews.listen()
    } catch (error) {
      log.error('the previews of the last run are not served', { error: String(error) })
    }
  })
  host.on('daemon.ready', () => {
    const failed = (error: unknown) => log.warn('reading the listening ports failed', { error: String(error) })
    machine().then(
      ({ sampleMs }) =>
        sample({
          scan,
          everyMs: sampleMs,
          changed: async () => {
            scan.outdated()
            changed()
            await forwards.settle()
          },
          // A program that does not come back ends its forward, although no socket changes then.
          sampled: () => forwards.expire(),
          failed,
          signal: host.signal,
        }),
      () => {},
    )
  })
  host.stopping(() => previews.close())
  host.contribute('system.programs', async () =>
    process.platform === 'linux'
      ? []
      : [
          {
            name: 'lsof',
            present: (await ownProgram('lsof')) !== undefined,
            neededBy: ['ports'],
            install: 'brew install lsof',
          },
        ],
  )

  await host.serve(contract, {
    'GET /ports': async (_input, { caller }) => ({ ports: await listing.of(await scan.shared(), caller) }),
    'ports.scan': async () => ({ ports: await listing.of(await scan.shared()) }),
    'POST /ports/forward': async (place, context) => {
      const isNew = !forwards.at(place)
      await forwards.assert(place)
      await previews.listen()
      const { slot, title } = await forwards.forward(place)
      const { port, conversationId } = place
      if (isNew)
        await record(
          host,
          {
            type: 'port.forwarded',
            ...(conversationId !== undefined && { conversationId }),
            extra: { port, title, by: context.caller.actor },
          },
          context,
        )
      return { previewUrl: previews.urlOf(slot)! }
    },
    'POST /ports/unforward': async (place, context) => {
      const { port, conversationId } = place
      if (await forwards.unforward(place))
        await record(
          host,
          {
            type: 'port.unforwarded',
            ...(conversationId !== undefined && { conversationId }),
            extra: { port, by: context.caller.actor },
          },
          context,
        )
      return { ok: true }
    },
    'preview.register': async ({ label, target }) => {
      const registered = await labels.register(label, target)
      await previews.listen().catch(error => log.warn('a preview is not served', { label, error: String(error) }))
      changed()
      const url = previews.urlOf(registered)
      return url === undefined ? {} : { url }
    },
    'preview.unregister': async ({ label }) => {
      if (await labels.unregister(label)) changed()
      return { ok: true }
    },
    'preview.urlOf': async ({ label }) => {
      const known = labels.at(label)
      const url = known?.program && previews.urlOf(known)
      return url === undefined ? {} : { url }
    },
  })
}
