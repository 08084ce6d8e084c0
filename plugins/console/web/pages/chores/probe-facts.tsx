import type { ProbeFacts } from '../../../../chores/contract.js'
import { countText, sizeTextOf, visibleName } from '../../ui/format.js'

const MOST = 12

/** The headline of a measurement: its figure in words. */
export const headlineOf = (facts: ProbeFacts): string => {
  switch (facts.id) {
    case 'outdated':
      return `${countText(facts.packages.length)} outdated`
    case 'audit':
      return `${countText(facts.advisories.length)} known vulnerabilities`
    case 'knip': {
      const { files, exports, types, dependencies, devDependencies } = facts.deadCode
      const rest = `${countText(exports + types)} exports, ${countText(dependencies + devDependencies)} packages unused`
      return `${countText(files)} files, ${rest}`
    }
    case 'jscpd':
      return `${facts.duplication.percentage} % of the lines are copies`
    case 'ui':
      return `${countText(facts.scan.bypasses.reduce((sum, { count }) => sum + count, 0))} bare elements`
    case 'bundle':
      return `${sizeTextOf(facts.bundle.totalGzip)} compressed, ${sizeTextOf(facts.bundle.totalBytes)} in all`
  }
}

const linesOf = (facts: ProbeFacts): string[] => {
  switch (facts.id) {
    case 'outdated':
      return facts.packages.map(each => `${each.name} ${each.current} → ${each.latest} (${each.kind}, ${each.section})`)
    case 'audit':
      return facts.advisories.map(({ name, severity, title, patched, dev }) => {
        const more = [severity, ...(dev ? ['development only'] : []), ...(patched ? [`fixed in ${patched}`] : [])]
        return `${name}: ${title} (${more.join(', ')})`
      })
    case 'knip':
      return facts.deadCode.sample
    case 'jscpd':
      return facts.duplication.top.map(({ lines, first, second }) => `${countText(lines)} lines: ${first}, ${second}`)
    case 'ui':
      return [
        ...facts.scan.bypasses.map(({ path, count }) => `${path}: ${countText(count)} bare elements`),
        ...facts.scan.idioms.map(({ id, files }) => `${id}: ${files.join(', ')}`),
      ]
    case 'bundle':
      return facts.bundle.assets.map(({ path, gzip }) => `${facts.bundle.dir}/${path}: ${sizeTextOf(gzip)} compressed`)
  }
}

/** What a measurement found, the first lines of it at once. */
export const FactLines = ({ facts }: { facts: ProbeFacts }) => {
  const lines = linesOf(facts)
  if (lines.length === 0) return <></>
  return (
    <details>
      <summary>What was found</summary>
      <ul class="lines">
        {lines.slice(0, MOST).map(line => (
          <li key={line} dir="auto">
            {visibleName(line)}
          </li>
        ))}
        {lines.length > MOST && <li>and {countText(lines.length - MOST)} more</li>}
      </ul>
    </details>
  )
}
