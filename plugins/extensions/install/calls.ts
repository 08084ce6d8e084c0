import { refuse, type Handlers } from '../../../sdk/index.js'
import type { LoadedExtensions } from '../listing/loaded-extensions.js'
import { UpdateChecks } from '../update/checking.js'
import { HealthWatch } from '../update/health.js'
import { Registries } from '../update/registry.js'
import { ExtensionUpdates } from '../update/updates.js'
import { connectedExtensions } from './connected.js'
import type { ConnectedExtensionCalls, InstallCalls } from './contract.js'
import { installExtension, installPreview } from './installing.js'
import { CodeStaging } from './staging.js'

/** The parts of the installation: its calls, its start and its use by others. */
export interface InstallParts {
  readonly calls: Handlers<ConnectedExtensionCalls & InstallCalls>
  readonly updates: ExtensionUpdates
  readonly checks: UpdateChecks
  /** Completes or undoes interrupted installations. */
  recover(): Promise<void>
  /** Starts the checks for updates. */
  start(): void
}

/** Serves installing and updating. */
export const installParts = (all: LoadedExtensions): InstallParts => {
  const staging = new CodeStaging(all.host)
  const registries = new Registries(all.host)
  const deps = { all, staging, registries }
  const health: HealthWatch = new HealthWatch(all, (id, health) => updates.exchange(id, { health }))
  const updates: ExtensionUpdates = new ExtensionUpdates(deps, health)
  const checks = new UpdateChecks(all, registries, updates)
  return {
    updates,
    checks,
    recover: async () => {
      await Promise.all([staging.sweep(true), updates.sweep(), checks.load()])
    },
    start: () => {
      health.resume()
      checks.start()
    },
    calls: {
      ...connectedExtensions({ install: deps, updates: () => updates }),
      'POST /extensions/install/preview': source => installPreview(deps, source),
      'POST /extensions/install': (source, context) => installExtension(deps, source, context),
      'POST /extensions/updates/check': async () => ({ ok: true, checkedAt: await checks.check() }),
      'POST /extensions/{id}/update/preview': ({ id, ref }) => updates.preview(id, ref),
      'POST /extensions/{id}/update': ({ id, ...given }, context) => updates.apply(id, given, context),
      'POST /extensions/{id}/revert': ({ id, ref }, context) => updates.revert({ id, ref }, context),
      'POST /extensions/{id}/update-policy': async ({ id, updates: when, advisories }) => {
        if (when === undefined && advisories === undefined)
          refuse('invalid', 'expected updates, advisories or both, found neither')
        const { installed: known } = updates.installed(id)
        await all.turns.with(id, async () => {
          const kept = updates.installed(id)
          const policy = { ...known.policy, ...(when && { updates: when }), ...(advisories && { advisories }) }
          await all.keep({ ...kept, installed: { ...kept.installed, policy } })
        })
        return { ok: true }
      },
    },
  }
}
