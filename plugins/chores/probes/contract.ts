import typia, { type tags } from 'typia'
import type { BundleSize, PackageAdvisory, UiScan } from '../contract.js'

interface NpmOutdatedEntry {
  current?: string
  wanted?: string
  latest: string
  type?: string
}

interface NpmOutdatedReport {
  [name: string]: NpmOutdatedEntry | NpmOutdatedEntry[]
}

interface NpmAuditCause {
  source: number | string
  name: string
  title: string
  severity: PackageAdvisory['severity']
  range: string
}

interface NpmAuditedPackage {
  name: string
  via: (string | NpmAuditCause)[]
  nodes: string[]
}

/** The second version of npm's report. */
interface NpmAuditReport {
  auditReportVersion: 2
  vulnerabilities: { [name: string]: NpmAuditedPackage }
}

interface NpmErrorReport {
  error: { summary: string; detail?: string; code?: string }
}

/** The message of an endpoint that refused, as `npm audit` prints it. */
interface NpmMessageReport {
  message: string
}

interface NpmManifest {
  devDependencies?: object
  workspaces?: unknown
}

/** What is read of npm's lock file. */
export interface NpmLockFile {
  packages?: { [path: string]: { version?: string; dev?: boolean; devOptional?: boolean } }
}

/** Reads `npm outdated --json --long`; null: it is something else. */
export const parseNpmOutdated = typia.json.createIsParse<NpmOutdatedReport>()
/** Reads `npm audit --json`. */
export const parseNpmAudit = typia.json.createIsParse<NpmAuditReport>()
/** Reads how npm prints an error. */
export const parseNpmError = typia.json.createIsParse<NpmErrorReport>()
/** Reads how `npm audit` prints an error. */
export const parseNpmMessage = typia.json.createIsParse<NpmMessageReport>()
/** Reads a `package.json`. */
export const parseNpmManifest = typia.json.createIsParse<NpmManifest>()
/** Reads a lock file of npm. */
export const parseNpmLock = typia.json.createIsParse<NpmLockFile>()

interface PnpmOutdatedEntry {
  current?: string
  wanted: string
  latest: string
  dependencyType: string
}

interface PnpmOutdatedReport {
  [name: string]: PnpmOutdatedEntry
}

interface PnpmAdvisoryEntry {
  module_name: string
  severity: PackageAdvisory['severity']
  title: string
  patched_versions?: string
}

interface PnpmAuditReport {
  advisories: { [id: string]: PnpmAdvisoryEntry }
}

interface PnpmErrorReport {
  error: { code: string; message: string }
}

/** Reads `pnpm outdated --format json`. */
export const parsePnpmOutdated = typia.json.createIsParse<PnpmOutdatedReport>()
/** Reads `pnpm audit --json`. */
export const parsePnpmAudit = typia.json.createIsParse<PnpmAuditReport>()
/** Reads how pnpm prints an error. */
export const parsePnpmError = typia.json.createIsParse<PnpmErrorReport>()

interface YarnAnyLine {
  type: string
}

interface YarnErrorLine {
  type: 'error'
  data: string
}

interface YarnTableLine {
  type: 'table'
  data: { head: string[]; body: string[][] }
}

interface YarnAdvisoryLine {
  type: 'auditAdvisory'
  data: {
    resolution: { dev: boolean }
    advisory: {
      module_name: string
      severity: PackageAdvisory['severity']
      title: string
      patched_versions?: string
    }
  }
}

/** A line of yarn 1 that means something here. */
export type YarnReadLine = YarnErrorLine | YarnTableLine | YarnAdvisoryLine

/** Reads the type of a line of yarn 1. */
export const parseYarnAny = typia.json.createIsParse<YarnAnyLine>()
/** Reads a line of `yarn outdated` or `yarn audit`. */
export const parseYarnLine = typia.json.createIsParse<YarnReadLine>()

interface PipOutdatedEntry {
  name: string
  version: string
  latest_version: string
}

/** Reads `pip list --outdated --format json`. */
export const parsePipOutdated = typia.json.createIsParse<PipOutdatedEntry[]>()

interface CargoDependency {
  name: string
  kind: null | 'dev' | 'build'
}

interface CargoMetadata {
  packages: { name: string; dependencies: CargoDependency[] }[]
}

/** Reads `cargo metadata`. */
export const parseCargoMetadata = typia.json.createIsParse<CargoMetadata>()

interface KnipUnusedName {
  name: string
}

interface KnipFileIssues {
  file: string
  files?: KnipUnusedName[]
  exports?: KnipUnusedName[]
  types?: KnipUnusedName[]
  dependencies?: KnipUnusedName[]
  devDependencies?: KnipUnusedName[]
}

/** What the reporter `json` prints; unused files are in `files`, since version 6 in the issues. */
export interface KnipReport {
  files?: string[]
  issues: KnipFileIssues[]
}

/** Reads what knip prints. */
export const parseKnipReport = typia.json.createIsParse<KnipReport>()

/** One of the two places of a clone. */
export interface JscpdClonedFile {
  name: string
  start: number & tags.Type<'uint32'>
}

interface JscpdFoundClone {
  lines: number & tags.Type<'uint32'>
  firstFile: JscpdClonedFile
  secondFile: JscpdClonedFile
}

/** The file `jscpd-report.json` of the reporter `json`. */
interface JscpdReport {
  duplicates: JscpdFoundClone[]
  statistics: {
    total: { clones: number & tags.Type<'uint32'>; percentage: number & tags.Minimum<0> & tags.Maximum<100> }
  }
}

/** Reads what jscpd writes. */
export const parseJscpdReport = typia.json.createIsParse<JscpdReport>()

/** A scan found nothing to look at. */
export interface ScanMissing {
  missing: string
}

/** A scan did not end well. */
export interface ScanFailed {
  failed: string
}

/** Reads the scan of components. */
export const parseScanUi = typia.json.createIsParse<ScanMissing | ScanFailed | { found: UiScan }>()
/** Reads the scan of a build. */
export const parseScanBundle = typia.json.createIsParse<ScanMissing | ScanFailed | { found: BundleSize }>()
