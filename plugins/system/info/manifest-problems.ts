import type { Handlers, Host } from '../../../sdk/index.js'
import type { ManifestProblemCalls } from './contract.js'

/** Answers what the groups found wrong in their files. */
export const manifestProblemCalls = (host: Pick<Host, 'collect'>): Handlers<ManifestProblemCalls> => ({
  'GET /system/manifest-problems': async () => {
    const reports = (await host.collect('system.manifestProblems')).flat()
    return reports.filter(({ problems }) => problems.length > 0).sort((one, other) => (one.path < other.path ? -1 : 1))
  },
})
