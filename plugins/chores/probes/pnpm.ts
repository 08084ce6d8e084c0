import { join } from 'node:path/posix'
import type { OutdatedPackage, PackageAdvisory } from '../contract.js'
import { parsePnpmAudit, parsePnpmError, parsePnpmOutdated } from './contract.js'
import {
  manifestSection,
  notUnderstood,
  parsedBy,
  ProbeFailed,
  ProbeUnavailable,
  reportOf,
  type MeasuredProject,
  type ProbeOutput,
  type ProbeTools,
} from './probe.js'
import { changeBetween } from './versions.js'

const LOCK = 'pnpm-lock.yaml'
const QUIET = [
  ...['--config.ignore-scripts=true', '--config.manage-package-manager-versions=false', '--config.fetch-retries=1'],
  ...['--config.fetch-retry-mintimeout=1000', '--config.fetch-timeout=30000', '--config.cache-dir=/tmp/pnpm'],
]

const assertNoError = (program: string, { text }: ProbeOutput): void => {
  const found = parsedBy(parsePnpmError, text)?.error
  if (found) throw new ProbeFailed(`${program} failed: ${found.code}: ${found.message.split('\n')[0]!.slice(0, 300)}`)
}

const needLock = async (tools: ProbeTools, { dir }: MeasuredProject): Promise<void> => {
  if (!(await tools.has(join(dir, LOCK)))) throw new ProbeUnavailable(`no lock file: pnpm reads ${LOCK}`)
}

const audited = async (tools: ProbeTools, { dir }: MeasuredProject, more: readonly string[]) => {
  const output = await tools.run(dir, 'pnpm', ['audit', '--json', ...more, ...QUIET])
  const report = reportOf(output, parsePnpmAudit)
  if (!report) assertNoError('pnpm audit', output)
  return report ? report.advisories : notUnderstood('pnpm audit', output)
}

/** What pnpm says of a project. */
export const pnpm = {
  outdated: async (tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]> => {
    await needLock(tools, project)
    const everywhere = (await tools.has(join(project.dir, 'pnpm-workspace.yaml'))) ? ['-r'] : []
    const output = await tools.run(project.dir, 'pnpm', ['outdated', '--format', 'json', ...everywhere, ...QUIET])
    const report = reportOf(output, parsePnpmOutdated)
    if (!report) {
      assertNoError('pnpm outdated', output)
      return notUnderstood('pnpm outdated', output)
    }
    return Object.entries(report).flatMap(([name, { current: installed, wanted, latest, dependencyType }]) => {
      const current = installed ?? wanted
      const kind = changeBetween(current, latest)
      return kind === undefined
        ? []
        : [{ name, current, latest, kind, section: manifestSection(project, dependencyType) }]
    })
  },

  audit: async (tools: ProbeTools, project: MeasuredProject): Promise<PackageAdvisory[]> => {
    await needLock(tools, project)
    const all = Object.entries(await audited(tools, project, []))
    const used = all.length > 0 ? await audited(tools, project, ['--prod']) : {}
    return all.map(([id, { module_name: name, severity, title, patched_versions: patched }]) => ({
      ...{ name, severity, title },
      // What npm's registry says where no version is patched.
      ...(patched !== undefined && patched !== '<0.0.0' && { patched }),
      dev: !Object.hasOwn(used, id),
    }))
  },
}
