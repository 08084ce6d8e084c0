import { join } from 'node:path/posix'
import type { OutdatedPackage } from '../contract.js'
import { parsePipOutdated } from './contract.js'
import {
  manifestSection,
  notUnderstood,
  parsedBy,
  ProbeUnavailable,
  type MeasuredProject,
  type ProbeTools,
} from './probe.js'
import { changeBetween } from './versions.js'

/** What installs the others. */
const TOOLS = new Set(['pip', 'setuptools', 'wheel'])
const LIST = [
  ...['-m', 'pip', 'list', '--outdated', '--local', '--format', 'json', '--no-cache-dir', '--retries', '1'],
  ...['--timeout', '15', '--disable-pip-version-check', '--no-input'],
]

/** What pip says of a project whose packages are in a virtual environment. */
export const pip = {
  outdated: async (tools: ProbeTools, project: MeasuredProject): Promise<OutdatedPackage[]> => {
    for (const folder of ['.venv', 'venv']) {
      const python = join(project.dir, `${folder}/bin/python`)
      if (!(await tools.has(python))) continue
      const output = await tools.run(project.dir, `./${folder}/bin/python`, LIST)
      const report = output.code === 0 ? parsedBy(parsePipOutdated, output.text) : undefined
      if (!report) return notUnderstood('pip list --outdated', output)
      // pip goes on without an index that it does not reach, as if nothing were newer.
      if (/retrying|connection (?:broken|error)|could not fetch/i.test(output.errors))
        return notUnderstood('pip list --outdated', output)
      return report.flatMap(({ name, version: current, latest_version: latest }): OutdatedPackage[] =>
        TOOLS.has(name.toLowerCase())
          ? []
          : [
              {
                ...{ name, current, latest },
                kind: changeBetween(current, latest) ?? 'patch',
                section: manifestSection(project, project.evidence),
              },
            ],
      )
    }
    throw new ProbeUnavailable('no virtual environment .venv or venv: install the dependencies first')
  },
}
