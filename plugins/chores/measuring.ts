import type { Host } from '../../sdk/index.js'
import { redacted } from '../../sdk/node/access/redact.js'
import type { ProbeOutcome } from './chore-book.js'
import type { ProbeId, ProbeTarget } from './contract.js'
import { jscpdProbe } from './probes/jscpd.js'
import { knipProbe } from './probes/knip.js'
import { auditProbe, outdatedProbe } from './probes/packages.js'
import { ProbeFailed, ProbeUnavailable, type Probe } from './probes/probe.js'
import { probeTools } from './probes/probe-tools.js'
import { bundleProbe, uiProbe } from './probes/scans.js'

const PROBES: { readonly [id in ProbeId]: Probe } = {
  ui: uiProbe,
  bundle: bundleProbe,
  outdated: outdatedProbe,
  audit: auditProbe,
  jscpd: jscpdProbe,
  knip: knipProbe,
}

/** Takes one measurement; rejects if the signal is aborted. */
export const measureProbe = async (
  host: Pick<Host, 'place' | 'call' | 'serves' | 'log'>,
  { repo, id }: ProbeTarget,
  signal: AbortSignal,
): Promise<ProbeOutcome> => {
  const { limitMs, measure } = PROBES[id]
  try {
    return { state: 'ok', ...(await measure(probeTools(host, { repo, limitMs, signal }))) }
  } catch (error) {
    if (signal.aborted) throw error
    if (error instanceof ProbeUnavailable) return { state: 'unavailable', reason: error.message }
    if (error instanceof ProbeFailed) return { state: 'failed', reason: redacted(error.message) }
    host.log.error('a measurement failed', { repo, id, error: String(error) })
    return { state: 'failed', reason: 'the sandbox failed to measure it; its log says why' }
  }
}
