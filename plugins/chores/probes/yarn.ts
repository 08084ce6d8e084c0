import { join } from 'node:path/posix'
import type { OutdatedPackage, PackageAdvisory } from '../contract.js'
import { parseYarnAny, parseYarnLine, type YarnReadLine } from './contract.js'
import {
  manifestSection,
  notUnderstood,
  parsedBy,
  ProbeFailed,
  ProbeUnavailable,
  type MeasuredProject,
  type ProbeOutput,
  type ProbeTools,
} from './probe.js'
import { changeBetween } from './versions.js'

const HEAD = ['Package', 'Current', 'Wanted', 'Latest', 'Package Type']
const READ: ReadonlySet<string> = new Set(['error', 'table', 'auditAdvisory'] satisfies YarnReadLine['type'][])
/** What else yarn prints when it succeeds. */
const OTHERS = new Set([
  'info',
  'warning',
  'auditSummary',
  'step',
  'success',
  'progressStart',
  'progressEnd',
  'activityEnd',
])
const QUIET = [
  '--json',
  '--non-interactive',
  '--no-progress',
  '--network-timeout',
  '30000',
  '--cache-folder',
  '/tmp/yarn',
]
/** The exit code of an audit is a sum of one bit for each severity. */
const MOST_CODE = 31

interface ReadLines {
  readonly lines: YarnReadLine[]
  readonly types: ReadonlySet<string>
}

/** What yarn 1 printed: a JSON value a line; a line of an error fails. */
const linesOf = (program: string, output: ProbeOutput): ReadLines => {
  const types = new Set<string>()
  const lines: YarnReadLine[] = []
  for (const text of `${output.text}\n${output.errors}`.split('\n').filter(line => line.trim() !== '')) {
    const { type } = parsedBy(parseYarnAny, text) ?? notUnderstood(program, output)
    types.add(type)
    if (OTHERS.has(type)) continue
    const line = READ.has(type) ? parsedBy(parseYarnLine, text) : undefined
    lines.push(line ?? notUnderstood(program, output))
  }
  const error = lines.find(line => line.type === 'error')
  if (error) throw new ProbeFailed(`${program} failed: ${error.data.split('\n')[0]!.slice(0, 300)}`)
  return { lines, types }
}

const needYarnOne = async (tools: ProbeTools, { dir }: MeasuredProject): Promise<void> => {
  const lock = await tools.text(join(dir, 'yarn.lock'))
  if (lock === undefined) throw new ProbeUnavailable('no lock file: yarn reads yarn.lock')
  if (lock.includes('__metadata:'))
    throw new ProbeUnavailable('the lock file is that of yarn 2 or later, and only yarn 1 is asked here')
}

/** What yarn 1 says of a project. */
export const yarn = {
  outdated: async (tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]> => {
    await needYarnOne(tools, project)
    const output = await tools.run(project.dir, 'yarn', ['outdated', ...QUIET])
    const { lines } = linesOf('yarn outdated', output)
    const tables = lines.flatMap(line => (line.type === 'table' ? [line.data] : []))
    if (output.code > 1 || (output.code === 1) !== tables.length > 0) return notUnderstood('yarn outdated', output)
    return tables.flatMap(({ head, body }) => {
      if (HEAD.some((title, column) => head[column] !== title)) return notUnderstood('yarn outdated', output)
      return body.flatMap(([name = '', current = '', _wanted, latest = '', type = '']): OutdatedPackage[] => {
        const kind = changeBetween(current, latest)
        return kind === undefined ? [] : [{ name, current, latest, kind, section: manifestSection(project, type) }]
      })
    })
  },

  audit: async (tools: ProbeTools, project: MeasuredProject): Promise<PackageAdvisory[]> => {
    await needYarnOne(tools, project)
    const output = await tools.run(project.dir, 'yarn', ['audit', ...QUIET])
    const { lines, types } = linesOf('yarn audit', output)
    if (output.code > MOST_CODE || !types.has('auditSummary')) return notUnderstood('yarn audit', output)
    return lines.flatMap((line): PackageAdvisory[] => {
      if (line.type !== 'auditAdvisory') return []
      const { resolution, advisory } = line.data
      const { module_name: name, severity, title, patched_versions: patched } = advisory
      return [{ name, severity, title, ...(patched && patched !== '<0.0.0' && { patched }), dev: resolution.dev }]
    })
  },
}
