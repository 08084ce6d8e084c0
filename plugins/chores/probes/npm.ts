import { join } from 'node:path/posix'
import type { OutdatedPackage, PackageAdvisory } from '../contract.js'
import {
  parseNpmAudit,
  parseNpmError,
  parseNpmLock,
  parseNpmManifest,
  parseNpmMessage,
  parseNpmOutdated,
  type NpmLockFile,
} from './contract.js'
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

const LOCKS = ['package-lock.json', 'npm-shrinkwrap.json']
/** No script of a package runs, and temporary files are the only ones that are written. */
const QUIET = [
  ...['--ignore-scripts', '--no-update-notifier', '--no-fund', '--loglevel=error', '--logs-max=0', '--cache=/tmp/npm'],
  // Settings of the repository may leave them out.
  ...['--include=dev', '--include=optional', '--include=peer'],
  ...['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--fetch-retry-maxtimeout=2000', '--fetch-timeout=30000'],
]

/** The version of a package that has a vulnerability no more, by the versions that have it. */
export const patchedAfter = (range: string): string | undefined => {
  const [, version] = /^(?:>=?\s*[\w.+-]+\s+)?<\s*(\d[\w.+-]*)$/.exec(range.trim()) ?? []
  return version === undefined ? undefined : `>=${version}`
}

const assertNoError = (program: string, output: ProbeOutput): void => {
  const { code = '', summary = '' } = parsedBy(parseNpmError, output.text)?.error ?? {}
  const words = `${code} ${summary}`.trim() || parsedBy(parseNpmMessage, output.text)?.message
  if (words) throw new ProbeFailed(`${program} failed: ${words.split('\n')[0]!.slice(0, 300)}`)
}

const lockOf = async (tools: ProbeTools, { dir }: MeasuredProject): Promise<NpmLockFile | undefined> => {
  for (const name of LOCKS) {
    const text = await tools.text(join(dir, name))
    if (text !== undefined) return parsedBy(parseNpmLock, text) ?? {}
  }
  return undefined
}

/** Refuses a project of which npm would leave out packages without a word: those of development, if not installed. */
const assertInstalled = async (tools: ProbeTools, { dir, missing }: MeasuredProject): Promise<void> => {
  if (missing === undefined) return
  const manifest = parsedBy(parseNpmManifest, (await tools.text(join(dir, 'package.json'))) ?? '')
  if (manifest && !manifest.devDependencies && manifest.workspaces === undefined) return
  throw new ProbeUnavailable(
    `${missing} declared packages are not installed, and npm compares only installed ones: install them first`,
  )
}

/** What npm says of a project. */
export const npm = {
  outdated: async (tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]> => {
    await assertInstalled(tools, project)
    const output = await tools.run(project.dir, 'npm', ['outdated', '--json', '--long', ...QUIET])
    const report = reportOf(output, parseNpmOutdated)
    if (!report) {
      assertNoError('npm outdated', output)
      return notUnderstood('npm outdated', output)
    }
    const lock = await lockOf(tools, project)
    return Object.entries(report).flatMap(([name, entries]) =>
      [entries].flat().flatMap((entry): OutdatedPackage[] => {
        const { wanted, latest, type = 'dependencies' } = entry
        const locked = lock?.packages?.[`node_modules/${name}`]?.version
        const current = entry.current ?? locked ?? wanted ?? latest
        const kind = changeBetween(current, latest)
        return kind === undefined ? [] : [{ name, current, latest, kind, section: manifestSection(project, type) }]
      }),
    )
  },

  audit: async (tools: ProbeTools, project: MeasuredProject): Promise<PackageAdvisory[]> => {
    const lock = await lockOf(tools, project)
    if (!lock) throw new ProbeUnavailable('no lock file: npm audits package-lock.json or npm-shrinkwrap.json')
    const output = await tools.run(project.dir, 'npm', ['audit', '--json', ...QUIET])
    const report = reportOf(output, parseNpmAudit)
    if (!report) {
      assertNoError('npm audit', output)
      return notUnderstood('npm audit', output)
    }
    const isDev = (path: string) => lock.packages?.[path]?.dev === true
    return Object.values(report.vulnerabilities).flatMap(({ via, nodes }) =>
      via.flatMap((cause): PackageAdvisory[] => {
        if (typeof cause === 'string') return []
        const { name, title, severity, range } = cause
        const patched = patchedAfter(range)
        return [{ name, severity, title, ...(patched && { patched }), dev: nodes.length > 0 && nodes.every(isDev) }]
      }),
    )
  },
}
