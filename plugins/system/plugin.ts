import type { Contract, Host } from '../../sdk/index.js'
import { accessCalls } from './access/calls.js'
import { browserCalls } from './browsers/calls.js'
import { chromiumProgram } from './browsers/chromium.js'
import { certificateProgram } from './browsers/trusted-authorities.js'
import { bundleCalls } from './bundles/calls.js'
import { system, type System } from './contract.js'
import { examples } from './examples.js'
import { subagentSessionCalls } from './subagents/calls.js'
import { infoCalls } from './info/calls.js'
import { machineCalls } from './machine/calls.js'
import { metricsCalls } from './metrics/calls.js'
import { streamCalls } from './stream/calls.js'
import { terminals } from './terminals/calls.js'
import { terminalPrograms } from './terminals/programs.js'

export const contract: Contract<System> = { ...system, examples }

/** Serves what the sandbox is, who may reach it, and everything that belongs to no other group. */
export const activate = async (host: Host): Promise<void> => {
  host.contribute('system.programs', async () => [
    ...(await terminalPrograms()),
    await chromiumProgram(),
    ...(await certificateProgram()),
  ])
  const bundles = await bundleCalls(host)
  await host.serve(system, {
    ...infoCalls(host),
    ...accessCalls(host, bundles.has),
    ...(await streamCalls(host)),
    ...browserCalls(host),
    ...terminals(host),
    ...bundles.calls,
    ...subagentSessionCalls(host),
    ...machineCalls(host),
    ...metricsCalls(host),
  })
}
