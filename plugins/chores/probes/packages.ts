import type { ProbeFacts } from '../contract.js'
import { MANAGERS, type AskedManager } from './managers.js'
import { ProbeFailed, ProbeUnavailable, type MeasuredProject, type Probe, type ProbeTools } from './probe.js'

const LIMIT_MS = 120_000
const MOST_PROJECTS = 20
const MOST_ROWS = 1_000
const MOST_SHOWN = 10

/** The same failure, with the project that it is about. */
const about = ({ dir }: MeasuredProject, error: unknown): unknown =>
  error instanceof ProbeFailed && dir !== '' ? new ProbeFailed(`${dir}: ${error.message}`) : error

type Question<Row> = (tools: ProbeTools, project: MeasuredProject) => Promise<Row[]>

/** Asks the package manager of each project one question; unavailable where none can answer it. */
const askEach = async <Row>(
  tools: ProbeTools,
  what: string,
  questionOf: (manager: AskedManager) => Question<Row> | undefined,
): Promise<{ rows: Row[]; reason?: string }> => {
  const projects = await tools.projects()
  if (projects.length === 0) throw new ProbeUnavailable('no manifest of a package manager is in the repository')
  const rows: Row[] = []
  const left: string[] = []
  let measured = 0
  for (const project of projects) {
    const ask = questionOf(MANAGERS[project.manager] ?? {})
    try {
      if (!ask) throw new ProbeUnavailable(`${project.manager} is not asked what is ${what}`)
      if (measured >= MOST_PROJECTS) throw new ProbeUnavailable(`only ${MOST_PROJECTS} projects are asked`)
      rows.push(...(await ask(tools, project)))
      measured++
    } catch (error) {
      if (!(error instanceof ProbeUnavailable)) throw about(project, error)
      left.push(project.dir === '' ? error.message : `${project.dir}: ${error.message}`)
    }
  }
  const missing = left.slice(0, MOST_SHOWN).join('; ')
  if (measured === 0) throw new ProbeUnavailable(missing)
  return { rows: rows.slice(0, MOST_ROWS), ...(missing !== '' && { reason: `not measured: ${missing}` }) }
}

const finding = (facts: ProbeFacts, reason: string | undefined) => ({
  facts,
  ...(reason !== undefined && { reason }),
})

const unique = <Row>(rows: readonly Row[]): Row[] => [...new Map(rows.map(row => [JSON.stringify(row), row])).values()]

/** Which packages have newer versions. */
export const outdatedProbe: Probe = {
  limitMs: LIMIT_MS,
  measure: async tools => {
    const { rows, reason } = await askEach(tools, 'outdated', manager => manager.outdated)
    return finding({ id: 'outdated', packages: unique(rows) }, reason)
  },
}

const RANK = ['critical', 'high', 'moderate', 'low', 'info']

/** Which packages have known vulnerabilities. */
export const auditProbe: Probe = {
  limitMs: LIMIT_MS,
  measure: async tools => {
    const { rows, reason } = await askEach(tools, 'vulnerable', manager => manager.audit)
    const advisories = unique(rows).sort((one, other) => RANK.indexOf(one.severity) - RANK.indexOf(other.severity))
    return finding({ id: 'audit', advisories }, reason)
  },
}
