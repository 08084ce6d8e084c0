import { programFile } from '../../../sdk/node/programs/package.js'
import type { BundleSize, ProbeFacts, UiScan } from '../contract.js'
import { parseScanBundle, parseScanUi, type ScanFailed, type ScanMissing } from './contract.js'
import { notUnderstood, parsedBy, ProbeFailed, ProbeUnavailable, type Probe } from './probe.js'

const CHILD = programFile('plugins/chores/scans/scan-child.js')
const LIMIT_MS = 120_000

/** A measurement that reads files itself, in a process of its own behind the wall. */
const scan = <Found>(
  id: 'ui' | 'bundle',
  parse: (text: string) => ScanMissing | ScanFailed | { found: Found } | null,
  facts: (found: Found) => ProbeFacts,
): Probe => ({
  limitMs: LIMIT_MS,
  measure: async tools => {
    const output = await tools.run('', process.execPath, [CHILD, id])
    const answer = output.code === 0 ? parsedBy(parse, output.text) : undefined
    if (!answer) return notUnderstood(`the scan ${id}`, output)
    if ('missing' in answer) throw new ProbeUnavailable(answer.missing)
    if ('failed' in answer) throw new ProbeFailed(answer.failed)
    return { facts: facts(answer.found) }
  },
})

/** How the shared components are used. */
export const uiProbe = scan<UiScan>('ui', parseScanUi, found => ({ id: 'ui', scan: found }))

/** How large a build is that is there already. */
export const bundleProbe = scan<BundleSize>('bundle', parseScanBundle, bundle => ({ id: 'bundle', bundle }))
