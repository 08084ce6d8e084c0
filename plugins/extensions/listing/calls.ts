import { refuse, type Handlers } from '../../../sdk/index.js'
import { record } from '../../../sdk/node/record/record.js'
import { approve, setEnabled } from '../approval/approval.js'
import { removalPlan, removeExtension } from '../removal/removal.js'
import { createExtension } from '../scaffold/scaffold.js'
import type { ListingCalls } from './contract.js'
import { declaredEntries, listExtensions, type ListingDeps } from './listing.js'
import type { LoadedExtensions } from './loaded-extensions.js'
import { pageCode } from './page-code.js'
import { readinessOf } from './readiness.js'

/** The calls of updates that the list and removals use. */
export interface ListingNeeds {
  /** Whether an update of it is being applied. */
  readonly updating: (id: string) => boolean
  readonly checkedAt: () => string | undefined
  readonly devRun: ListingDeps['devRun']
}

const MOST_REPORTS = 200
const MOST_ENTRIES = 100

/** Serves the list, approvals, switches and settings. */
export const listingCalls = (
  all: LoadedExtensions,
  { updating, checkedAt, devRun }: ListingNeeds,
): Handlers<ListingCalls> => ({
  'GET /extensions': (_, context) => listExtensions({ all, checkedAt, devRun }, context),
  'POST /extensions/workspace': (given, context) => createExtension(all, given, context),
  'GET /extensions/{id}/removal': ({ id }) => removalPlan(all, id, updating),
  'POST /extensions/{id}/remove': ({ id }, context) => removeExtension(all, id, updating, context),
  'GET /extensions/{id}/settings': async ({ id }) => {
    if (all.isBuiltin(id)) return { settings: {}, secretsSet: [] }
    await all.refresh()
    return all.values.of(id, all.get(id).manifest)
  },
  'POST /extensions/{id}/settings': (given, context) =>
    all.turns.with(given.id, async () => {
      const { id, settings } = given
      const manifest = all.isBuiltin(id) ? {} : all.get(id).manifest
      const keys = await all.values.set(id, manifest, settings)
      if (keys.length > 0) {
        all.settingsChanged(id, keys)
        all.changed(id)
        await record(all.host, { type: 'extension.settings', outcome: 'ok', extra: { id, keys } }, context)
      }
      return { ok: true }
    }),
  'POST /extensions/{id}/approve': async ({ id, digest }, context) => {
    await approve(all, id, digest, context)
    return { ok: true }
  },
  'POST /extensions/{id}/enabled': async ({ id, enabled }, context) => {
    await setEnabled(all, id, enabled, context)
    return { ok: true }
  },
  'POST /extensions/usage': async ({ reports }) => {
    const counted = Object.entries(reports)
    if (counted.length > MOST_REPORTS)
      refuse('invalid', `reports: expected at most ${MOST_REPORTS} extensions, found ${counted.length}`)
    const long = counted.find(([, entries]) => Object.keys(entries).length > MOST_ENTRIES)
    if (long) refuse('invalid', `reports.${long[0].slice(0, 121)}: expected at most ${MOST_ENTRIES} entries`)
    await all.usage.report(reports, id => {
      const found = all.catalog.loaded.get(id)
      return found && declaredEntries(found)
    })
    return { ok: true }
  },
  'GET /extensions/{id}/bundle': ({ id }) => pageCode(all, id),
  'GET /extensions/{id}/readiness': async ({ id }) => ({ checks: await readinessOf(all, id) }),
})
