import typia, { type tags } from 'typia'
import type { Contract, Replies, Requests } from '../../sdk/contract.js'
import type { Count, Millis, MostCharacters, Ok, Size, Text } from '../../sdk/types.js'
import type { CentralModule, HealthTotals, Hotspot } from '../workspace/contract.js'

/**
 * What is measured: `outdated` packages, known vulnerabilities (`audit`), dead code (`knip`), copied code (`jscpd`),
 * use of the shared components (`ui`), and the size of the built files (`bundle`).
 */
export type ProbeId = 'outdated' | 'audit' | 'knip' | 'jscpd' | 'ui' | 'bundle'

/** A repository: `root`, or its path from the workspace root. */
export type ChoreRepo = string & tags.MinLength<1> & tags.MaxLength<4096>

/** A package of which a newer version exists. */
export interface OutdatedPackage {
  name: string
  /** The installed version; else that of the lock file, else what an install would choose. */
  current: string
  latest: string
  /** The first part of the version that differs. */
  kind: 'major' | 'minor' | 'patch'
  /** The part of the manifest that asks for it, after `<folder>: ` where that is not the repository's own. */
  section: string
}
/** The packages of which newer versions exist. */
export interface OutdatedFacts {
  id: 'outdated'
  packages: OutdatedPackage[]
}

/** A known vulnerability of a package that the lock file names. */
export interface PackageAdvisory {
  name: string
  severity: 'critical' | 'high' | 'moderate' | 'low' | 'info'
  title: string
  /** The versions that do not have it, where the registry says so. */
  patched?: string
  /** Only tools of development use the package. */
  dev: boolean
}
/** The known vulnerabilities. */
export interface AuditFacts {
  id: 'audit'
  advisories: PackageAdvisory[]
}

/** How much nothing uses. */
export interface DeadCode {
  files: Count
  exports: Count
  types: Count
  dependencies: Count
  devDependencies: Count
  /** Some of it, as `<path>` or `<path>: <name>`, from the root of the repository. */
  sample: string[] & tags.MaxItems<8>
}
/** What nothing uses. */
export interface KnipFacts {
  id: 'knip'
  deadCode: DeadCode
}

/** Lines that are the same in two places, as `<path>:<line>` from the root of the repository. */
export interface CodeClone {
  lines: Count
  first: string
  second: string
}
/** How much is copied. */
export interface Duplication {
  /** Of all lines, from 0 to 100. */
  percentage: number & tags.Minimum<0> & tags.Maximum<100>
  clones: Count
  /** The longest ones. */
  top: CodeClone[] & tags.MaxItems<5>
}
/** What was copied. */
export interface JscpdFacts {
  id: 'jscpd'
  duplication: Duplication
}

/** A file that uses elements of HTML for which the repository has components. */
export interface ComponentBypass {
  path: string
  count: Count
}
/** Files that do something which shared components or styles usually do. */
export interface CodeIdiom {
  /** `inline-style`, `literal-color`, `clickable-element` or `raw-html`. */
  id: string
  files: string[]
}
/** How the code of pages uses the shared components. */
export interface UiScan {
  /** The names of the components in folders `components` and `ui`. */
  components: string[]
  /** The files with most of them first. */
  bypasses: ComponentBypass[]
  idioms: CodeIdiom[]
}
/** How the shared components are used. */
export interface UiFacts {
  id: 'ui'
  scan: UiScan
}

/** A file of a build. */
export interface BundleAsset {
  /** From the folder of the build. */
  path: string
  bytes: Size
  gzip: Size
}
/** The size of a build, without source maps and type declarations. */
export interface BundleSize {
  /** Its folder, from the root of the repository. */
  dir: string
  totalBytes: Size
  totalGzip: Size
  /** The largest ones. */
  assets: BundleAsset[] & tags.MaxItems<30>
}
/** The size of what was built. */
export interface BundleFacts {
  id: 'bundle'
  bundle: BundleSize
}

/** What a measurement found. */
export type ProbeFacts = OutdatedFacts | AuditFacts | KnipFacts | JscpdFacts | UiFacts | BundleFacts

/** The headline figure of an earlier measurement. */
export interface TrendPoint {
  at: Millis
  value: number
}
/** The result of the last measurement. */
export interface ProbeResult {
  id: ProbeId
  /**
   * `unavailable`: a tool, manifest, lock file or build is missing; `failed`: it ended with an error, took too long, or
   * printed what is not understood.
   */
  state: 'ok' | 'unavailable' | 'failed'
  ranAt: Millis
  tookMs: Millis
  /** Of state `ok` only. */
  facts?: ProbeFacts
  /** What is missing or went wrong; with `ok`, which projects of the repository were not measured. */
  reason?: string
  /** When it is measured again by itself, at the earliest. */
  staleAt: Millis
  /**
   * The figures of the measurements that succeeded, oldest first: packages, advisories, unused items, percent of copied
   * lines, uses of bare elements, or compressed bytes.
   */
  trend: TrendPoint[] & tags.MaxItems<52>
}

/** The variables of a manifest that say which versions of a runtime fit, by its name. */
export interface PackageEngines {
  [runtime: string]: string
}
/** A folder with a manifest that names it. */
export interface ChorePackage {
  /** From the root of the repository; empty for that itself. */
  dir: string
  name: string
  engines?: PackageEngines
  dependencies: string[]
  devDependencies: string[]
  /** It has a readme. */
  documented: boolean
}
/** Which files a repository has; paths are from its root. */
export interface RepositoryShape {
  docs: string[]
  dockerfiles: string[]
  /** The definitions of checks that a server runs. */
  ci: string[]
  lockfile: boolean
  packageManifest: boolean
  /** The packages that its manifests ask for. */
  deps: string[]
}
/** What manifests and the index say now. */
export interface ChoreSignals {
  packages: ChorePackage[]
  shape: RepositoryShape
  /** The files that change often and are complicated; paths are from the workspace root. */
  hotspots: Hotspot[] & tags.MaxItems<12>
  /** The files that most others import; paths are from the workspace root. */
  keyModules: CentralModule[] & tags.MaxItems<12>
  totals: HealthTotals
  /** False: the index is still being built, so hotspots, modules and totals are incomplete. */
  indexed: boolean
}
/** What is known of a repository. */
export interface RepositoryChores {
  repo: ChoreRepo
  /** Those that were measured before. */
  probes: ProbeResult[]
  signals: ChoreSignals
}

/** What was concluded about a chore of a repository. */
export interface ChoreConclusion {
  repo: ChoreRepo
  chore: Text & MostCharacters<60>
  ranAt: Millis
  /** The conversation that did it, or empty. */
  runId: string & MostCharacters<128>
  /** `acted`: something was changed; `reported`: there is something to do; `clean`: there is not. */
  outcome: 'acted' | 'reported' | 'clean'
  /** Of the evidence that was judged: another one now means that the conclusion is old. */
  digest: Text & MostCharacters<128>
  /** It is not asked for again before. */
  snoozedUntil?: Millis
}
/** A conclusion as it is stored. */
export interface ChoreLedgerEntry extends ChoreConclusion {
  by?: string
}

/** A measurement that waits or runs. */
export interface RunningProbe {
  repo: ChoreRepo
  id: ProbeId
  askedAt: Millis
  /** Left out: it waits. */
  startedAt?: Millis
}
/** All evidence about the chores of repositories. */
export interface ChoreList {
  repos: RepositoryChores[]
  ledger: ChoreLedgerEntry[]
  /** In the order in which they run. */
  running: RunningProbe[]
  /** The version of Node that the sandbox runs on. */
  node: string
}
/** A measurement of a repository. */
export interface ProbeTarget {
  repo: ChoreRepo
  id: ProbeId
}

/** Measurements of repositories, and what was concluded of them. */
export interface ChoresCalls {
  /**
   * Read all evidence: the results of measurements, what manifests and the index say now, the conclusions, and what is
   * being measured.
   *
   * It judges nothing. The results of repositories that are gone are left out. People limited to areas get the
   * repositories that lie in them whole.
   *
   * - 404: no such repository, or outside the caller's areas
   */
  'GET /chores'(input: { repo?: ChoreRepo }): ChoreList

  /**
   * Take one measurement again, whatever its age.
   *
   * It answers at once; the result is in `GET /chores`. One measurement runs at a time in the whole sandbox, behind the
   * wall, where it can only read the repository: at most 2 minutes, `knip` and `jscpd` 15. Asking for one that waits or
   * runs is the same request, and a restart does not lose it. `position` is 0 while it runs, else its place in line.
   *
   * - 403: the repository lies in an area held for reading
   * - 404: no such repository, or outside the caller's areas
   */
  'POST /chores/probe'(input: ProbeTarget): { ok: true; position: Count }

  /**
   * End a measurement with all its processes, or take it out of the line.
   *
   * It answers when they are gone. Nothing is stored: the last result stays as it was.
   *
   * - 403: the repository lies in an area held for reading
   * - 404: no such repository, or outside the caller's areas
   */
  'POST /chores/probe/stop'(input: ProbeTarget): { ok: true; stopped: boolean }

  /**
   * Store what was concluded about one chore of a repository, or put it off until `snoozedUntil`.
   *
   * The conclusion with the newest `ranAt` stays, an older one is ignored. The sandbox keeps the 2,000 newest.
   *
   * - 403: the repository lies in an area held for reading
   * - 404: no such repository, or outside the caller's areas
   */
  'POST /chores/ledger'(input: ChoreConclusion): Ok
}

export const choresContract: Contract<ChoresCalls> = {
  schema: () => typia.json.application<ChoresCalls>(),
  request: typia.misc.createValidatePrune<Requests<ChoresCalls>>(),
  reply: () => typia.createValidate<Replies<ChoresCalls>>(),
}
