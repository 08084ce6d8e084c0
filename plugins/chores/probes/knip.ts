import type { DeadCode } from '../contract.js'
import { parseKnipReport, type KnipReport } from './contract.js'
import { notUnderstood, ProbeFailed, ProbeUnavailable, reportOf, type Probe } from './probe.js'

const PROGRAM = 'node_modules/.bin/knip'
const LIMIT_MS = 15 * 60_000
const MOST_SAMPLE = 8
const KINDS = ['exports', 'types', 'dependencies', 'devDependencies'] as const

const deadCodeOf = ({ files: listed = [], issues }: KnipReport): DeadCode => {
  const files = new Set([...listed, ...issues.flatMap(({ file, files = [] }) => (files.length > 0 ? [file] : []))])
  const count = (kind: (typeof KINDS)[number]) => issues.reduce((sum, issue) => sum + (issue[kind]?.length ?? 0), 0)
  const names = issues.flatMap(issue =>
    KINDS.flatMap(kind => (issue[kind] ?? []).map(({ name }) => `${issue.file}: ${name}`)),
  )
  return {
    files: files.size,
    exports: count('exports'),
    types: count('types'),
    dependencies: count('dependencies'),
    devDependencies: count('devDependencies'),
    sample: [...files, ...names].slice(0, MOST_SAMPLE),
  }
}

/** What nothing in the repository uses, by its own knip. */
export const knipProbe: Probe = {
  limitMs: LIMIT_MS,
  measure: async tools => {
    if (!(await tools.has('package.json'))) throw new ProbeUnavailable('no package.json is in its root')
    if (!(await tools.has(PROGRAM))) throw new ProbeUnavailable(`knip is not installed in the repository (${PROGRAM})`)
    const output = await tools.run('', `./${PROGRAM}`, ['--reporter', 'json', '--no-progress', '--no-exit-code'])
    const report = reportOf(output, parseKnipReport)
    if (output.code > 1) throw new ProbeFailed(`knip ended with ${output.code}: ${firstLine(output.errors)}`)
    if (!report) return notUnderstood('knip', output)
    return { facts: { id: 'knip', deadCode: deadCodeOf(report) } }
  },
}

const firstLine = (text: string): string =>
  (text.split('\n').find(line => /\w/.test(line)) ?? 'it printed nothing').trim().slice(0, 300)
