import type { Handlers } from '../../../sdk/index.js'
import type { DevCalls } from './contract.js'
import type { DevRuns } from './dev-runs.js'

/** Serves extensions that run from folders of the workspace and of private copies. */
export const devCalls = (dev: DevRuns): Handlers<DevCalls> => ({
  'GET /extensions/dev': async () => ({ checkouts: await dev.checkouts() }),
  'POST /extensions/{id}/dev': async ({ id, digest, ...from }, context) => ({
    ok: true,
    dev: await dev.begin(id, from, digest, context),
  }),
  'DELETE /extensions/{id}/dev': async ({ id }, context) => ({ ok: true, ref: await dev.end(id, context) }),
  'POST /extensions/{id}/dev/reload': async ({ id, digest }, context) => ({
    ok: true,
    dev: await dev.reload(id, digest, context),
  }),
})
