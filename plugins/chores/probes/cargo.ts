import { join } from 'node:path/posix'
import type { OutdatedPackage } from '../contract.js'
import { parseCargoMetadata } from './contract.js'
import {
  manifestSection,
  notUnderstood,
  parsedBy,
  ProbeUnavailable,
  type MeasuredProject,
  type ProbeTools,
} from './probe.js'
import { changeBetween } from './versions.js'

const SECTIONS = { dev: 'dev-dependencies', build: 'build-dependencies' } as const
/** A package of which a newer version exists, as `cargo update --dry-run --verbose` prints it. */
const LINE = /^\s*(?:Unchanged|Updating|Downgrading) (\S+) v(\S+)(?: -> v(\S+))?(?: \(available: v([^\s,)]+).*\))?\s*$/
const DONE = /not updating lockfile due to dry run/

/** What cargo says of a project: of the packages that its manifests name themselves. */
export const cargo = {
  outdated: async (tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]> => {
    const { dir } = project
    if (!(await tools.has(join(dir, 'Cargo.lock')))) throw new ProbeUnavailable('no lock file: cargo reads Cargo.lock')
    const described = await tools.run(dir, 'cargo', ['metadata', '--no-deps', '--format-version', '1', '--offline'])
    const metadata = described.code === 0 ? parsedBy(parseCargoMetadata, described.text) : undefined
    if (!metadata) return notUnderstood('cargo metadata', described)
    const asked = new Map(
      metadata.packages.flatMap(({ dependencies }) =>
        dependencies.map(({ name, kind }) => [name, kind === null ? 'dependencies' : SECTIONS[kind]] as const),
      ),
    )
    const output = await tools.run(dir, 'cargo', ['update', '--dry-run', '--verbose', '--color', 'never'])
    if (output.code !== 0 || !DONE.test(output.errors)) return notUnderstood('cargo update --dry-run', output)
    return output.errors.split('\n').flatMap((line): OutdatedPackage[] => {
      const [, name = '', current = '', chosen, available] = LINE.exec(line) ?? []
      const section = asked.get(name)
      const latest = available ?? chosen
      const kind = latest === undefined ? undefined : changeBetween(current, latest)
      return section === undefined || kind === undefined
        ? []
        : [{ name, current, latest: latest!, kind, section: manifestSection(project, section) }]
    })
  },
}
