import { join } from 'node:path'
import { type Handlers, type Host, refuse } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { Bundle, BundleCalls } from './contract.js'
import { downloadOf, Downloads } from './download.js'
import { Exports, sweepMaking } from './exports.js'
import { checkBundle, stageBundle, sweepCutOff, sweepPoints } from './restoring.js'
import { BundleStore } from './bundle-store.js'

const SWEEP_MS = 6 * 3_600_000

/** Lists, packs and removes backups, and restores the sandbox from one. */
export const bundleCalls = async (
  host: Host,
): Promise<{ calls: Handlers<BundleCalls>; has: (name: string) => boolean }> => {
  const { place, log, signal } = host
  const failed = (what: string) => (error: unknown) => void (signal.aborted || log.warn(what, { error: String(error) }))
  const changed = () =>
    void host.call('kernel.events.publish', { domain: 'bundles' }).catch(failed('publishing a bundle change failed'))
  const recordEntry = (
    type: string,
    { name }: Pick<Bundle, 'name'>,
    { error, actor }: { error?: string; actor?: string } = {},
  ) =>
    record(host, {
      type,
      outcome: error === undefined ? 'ok' : 'error',
      extra: { name },
      ...(error !== undefined && { error }),
      ...(actor !== undefined && { actor }),
    })
  await sweepMaking(place.folder)
  const store = await BundleStore.open(host.files, join(place.folder, 'exports'))
  const exports = new Exports({ host, store, record: recordEntry, changed })
  const downloads = new Downloads()
  let restoring = false
  const sweep = () => Promise.all([store.sweep(), sweepPoints(host)]).catch(failed('removing old bundles failed'))
  const sweeper = setInterval(() => void sweep(), SWEEP_MS).unref()
  signal.addEventListener('abort', () => clearInterval(sweeper), { once: true })
  host.boot('Backups', () => sweepCutOff(host).catch(failed('removing the files of an interrupted restore failed')))
  // Not in a boot step: removing much may take long, and nothing waits for it.
  host.on('daemon.ready', () => void sweep())
  host.stopping(() => exports.stop())

  const calls: Handlers<BundleCalls> = {
    'GET /bundles': () => ({ exports: store.all }),
    'POST /bundles': async (asked, { caller }) => {
      if (restoring) refuse('conflict', 'the sandbox is being restored: pack it after the restart')
      return { name: (await exports.begin(asked, caller)).name }
    },
    'GET /bundles/download': async ({ name, ticket = '' }, { caller, http }) => {
      const bundle = store.find(name)
      if (bundle.state !== 'ready')
        refuse(
          'conflict',
          `${name} is not ready to be downloaded: it `
            + `${bundle.state === 'packing' ? 'is still being packed' : 'could not be packed'}`,
        )
      const bytes = await downloadOf(bundle, store.place(name), http)
      if (downloads.begun(ticket)) await recordEntry('bundle.downloaded', bundle, { actor: caller.actor })
      return bytes
    },
    'DELETE /bundles/{name}': async ({ name }, { caller }) => {
      const bundle = store.find(name)
      await exports.stop(name)
      await store.remove(name)
      changed()
      await recordEntry('bundle.removed', bundle, { actor: caller.actor })
      return { ok: true }
    },
    'POST /bundles/restore': async ({ mode, ...asked }, { caller }) => {
      if (mode === 'check') return checkBundle(host, asked)
      if (restoring) refuse('conflict', 'the sandbox is being restored already')
      if (exports.busy) refuse('conflict', 'a bundle is being packed: wait for it, or delete it, and restore again')
      restoring = true
      let staged = false
      try {
        const report = await stageBundle(host, asked)
        staged = true
        await recordEntry('bundle.restored', { name: asked.path.split('/').at(-1)! }, { actor: caller.actor })
        const { restarting } = await host.call('kernel.restart', { reason: 'restored' })
        return {
          ...report,
          restarting,
          todo: [...report.todo, ...(restarting ? [] : ['restart the sandbox: the bundle replaces its state then'])],
        }
      } finally {
        // Once it is recorded, nothing else may begin before the restart that applies it.
        restoring = staged
      }
    },
  }
  return { calls, has: name => store.all.some(bundle => bundle.name === name) }
}
