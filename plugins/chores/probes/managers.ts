import type { OutdatedPackage, PackageAdvisory } from '../contract.js'
import { cargo } from './cargo.js'
import { npm } from './npm.js'
import { pip } from './pip.js'
import { pnpm } from './pnpm.js'
import { yarn } from './yarn.js'
import type { MeasuredProject, ProbeTools } from './probe.js'

/** What a package manager says of a project; a missing question is one that it cannot answer. */
export interface AskedManager {
  outdated?(tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]>
  audit?(tools: ProbeTools, project: MeasuredProject): Promise<PackageAdvisory[]>
}

/** The package managers that can be asked. */
export const MANAGERS: { readonly [manager: string]: AskedManager } = { npm, pnpm, yarn, pip, cargo }
