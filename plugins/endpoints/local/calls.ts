import { type Handlers, type Host, refuse } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import type { LocalModelCalls } from './contract.js'
import type { Fitting } from './fit.js'
import { Prefetching } from './prefetch.js'
import type { WeightsTransfers } from './transfers.js'

/** Parts of the group that these calls work with. */
export interface LocalModelCallsDeps {
  readonly fitting: Fitting
  readonly folder: string
  readonly transfers: WeightsTransfers
  readonly publish: (key: string) => void
}

/** The calls of local models: what fits this machine, and fetching the small one ahead of time. */
export const localModelCalls = (
  host: Host,
  { fitting, folder, transfers, publish }: LocalModelCallsDeps,
): Handlers<LocalModelCalls> => {
  const { files, log, signal } = host
  const prefetching = new Prefetching({
    folder,
    files,
    signal,
    transfers,
    changed: () => publish('local-model'),
    ended: (type, model, detail) => {
      if (detail !== undefined) log.warn('a local model could not be fetched', { model, detail })
      void record(host, {
        type,
        outcome: type === 'localmodel.held' ? 'ok' : 'error',
        extra: { model, ...(detail !== undefined && { detail }) },
      })
    },
  })
  host.on('daemon.ready', () => {
    fitting
      .models()
      .then(models => prefetching.resume(models))
      .catch(error => log.warn('a fetch could not go on after the restart', { error: String(error) }))
  })

  return {
    'GET /endpoints/local-model/fit': async () => {
      const [fit, small] = await Promise.all([fitting.now(), fitting.small()])
      return { ...structuredClone(fit), prefetch: await prefetching.state(small) }
    },
    'POST /endpoints/local-model/prefetch': async ({ action }) => {
      const small = await fitting.small()
      if (action === 'stop') await prefetching.stop()
      else {
        const { options, budgetBytes } = await fitting.now()
        await prefetching.start(small ?? noneLoads(options, budgetBytes))
      }
      return prefetching.state(small)
    },
  }
}

const noneLoads = (options: readonly { windows: readonly { totalBytes: number }[] }[], budget: number): never => {
  const needed = Math.min(...options.flatMap(({ windows }) => windows.map(({ totalBytes }) => totalBytes)))
  return refuse(
    'unprocessable',
    Number.isFinite(needed)
      ? `no local model can be loaded: the smallest needs ${needed} bytes, and ${budget} are there`
      : 'this sandbox offers no local models: its deployment names a list of them with models.local',
  )
}
