import { posix } from 'node:path'
import { refuse, type Context } from '../../../sdk/index.js'
import { failpoint } from '../../../sdk/node/failpoint.js'
import { record } from '../../../sdk/node/record/record.js'
import { powersDigest } from '../powers/compared.js'
import type { ExtensionPower } from '../powers/power.js'
import { switchedOff } from '../records/extension-records.js'
import type { ExtensionApproval, KeptExtension } from '../records/kept-extension.js'
import { noExtension, type LoadedExtensions } from '../listing/loaded-extensions.js'

/** The record of an approval of these powers by a caller. */
export const approvedBy = (powers: readonly ExtensionPower[], { caller }: Context): ExtensionApproval => ({
  powers: powers.map(power => ({ ...power })),
  by: caller.actor,
  at: new Date().toISOString(),
})

/** Approves the current powers of a workspace extension, if they are those that the caller saw. */
export const approve = (all: LoadedExtensions, id: string, digest: string, context: Context): Promise<void> =>
  all.turns.with(id, async () => {
    await all.catalog.rescan()
    const found = all.catalog.loaded.get(id)
    if (!found) return broken(all, id)
    if (found.source !== 'workspace') refuse('not-found', `${id} is not an extension of the workspace`)
    if (!found.compatible) refuse('unprocessable', `${id} is for host versions ${found.engines}: it is not used here`)
    const { powers } = found
    if (powersDigest(id, powers) !== digest)
      refuse('conflict', `the powers of ${id} are others by now: read GET /extensions again, and approve what it shows`)
    const before = all.kept.get(id) ?? { id, source: 'workspace', enabled: true }
    const next: KeptExtension = {
      ...before,
      approval: approvedBy(powers, context),
      folder: posix.basename(found.shown),
    }
    await all.kept.put(next)
    failpoint('extensions.approved')
    await all.converge(id)
    await all.endQuarantine(id)
    all.changed(id)
    const extra = { id, powers: powers.map(({ text }) => text).join('; ') }
    await record(all.host, { type: 'extension.approved', outcome: 'ok', extra }, context)
  })

/** A known workspace extension whose manifest is now invalid or missing. */
const broken = (all: LoadedExtensions, id: string): never => {
  const name = id.slice(id.indexOf('.') + 1)
  const invalid = all.catalog.invalid.find(({ dir }) => dir.endsWith(`/${name}`))
  return invalid ? refuse('unprocessable', `${invalid.dir} cannot be used: ${invalid.error}`) : noExtension(id)
}

/** Switches an extension on or off. */
export const setEnabled = (all: LoadedExtensions, id: string, enabled: boolean, context: Context): Promise<void> => {
  if (all.isBuiltin(id)) {
    if (!enabled) refuse('conflict', `${id} is built in and cannot be switched off`)
    return Promise.resolve()
  }
  return all.turns.with(id, async () => {
    await all.refresh()
    const found = all.get(id)
    if (found.compatible && all.isPending(found))
      refuse('conflict', `${id} waits for approval: POST /extensions/${id}/approve`)
    const before = all.kept.get(id) ?? { id, source: found.source, enabled: true }
    const same = before.enabled === enabled
    if (!same) await all.kept.put(enabled ? { ...before, enabled } : switchedOff(before))
    if (!same) failpoint('extensions.switched')
    // Also if it is already switched on, because this ends a quarantine.
    await all.converge(id, { anew: enabled && all.backendOf(found)?.state !== 'running' })
    if (same) return
    all.changed(id)
    await record(all.host, { type: 'extension.enabled', outcome: 'ok', extra: { id, enabled } }, context)
  })
}
