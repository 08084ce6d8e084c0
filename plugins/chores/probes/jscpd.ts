import type { CodeClone } from '../contract.js'
import { parseJscpdReport, type JscpdClonedFile } from './contract.js'
import { notUnderstood, ProbeUnavailable, reportOf, type Probe } from './probe.js'

const PROGRAM = 'node_modules/.bin/jscpd'
const LIMIT_MS = 15 * 60_000
const MOST_TOP = 5
/** It writes its report to a file, which goes to the standard output instead of what it prints. */
const SCRIPT = [
  'folder=$(mktemp -d) || exit 125',
  '"$0" --reporters json --silent --output "$folder" --ignore "**/node_modules/**" . >&2; code=$?',
  'cat "$folder/jscpd-report.json"; rm -rf "$folder"; exit "$code"',
].join('\n')

const placeOf = ({ name, start }: JscpdClonedFile): string => `${name.replace(/^\.\//, '')}:${start}`

/** What was copied within the repository, by its own jscpd. */
export const jscpdProbe: Probe = {
  limitMs: LIMIT_MS,
  measure: async tools => {
    if (!(await tools.has(PROGRAM))) throw new ProbeUnavailable(`jscpd is not installed in the repository (${PROGRAM})`)
    const output = await tools.run('', 'sh', ['-c', SCRIPT, `./${PROGRAM}`])
    // A threshold of the repository's own settings ends it with 1.
    const report = reportOf(output, parseJscpdReport)
    if (!report) return notUnderstood('jscpd', output)
    const top = report.duplicates
      .toSorted((one, other) => other.lines - one.lines)
      .slice(0, MOST_TOP)
      .map(({ lines, firstFile, secondFile }): CodeClone => {
        return { lines, first: placeOf(firstFile), second: placeOf(secondFile) }
      })
    const { clones, percentage } = report.statistics.total
    return { facts: { id: 'jscpd', duplication: { percentage: Math.round(percentage * 100) / 100, clones, top } } }
  },
}
