// Runs all benchmarks one after another, or those named, and prints a table of the targets: `npm run bench [-- name
// …]`.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { asked, quick, type Verdict } from './measure.js'

const BENCHES = [
  'request',
  'frames',
  'start',
  'turns',
  'events',
  'spawn',
  'copies',
  'peer',
  'roster',
  'sessions',
  'mask',
  'usage',
  'outputs',
  'native',
  'models/translator',
  'programs',
  'git',
  'writes/inventory',
  'workspace',
  'large',
  'extensions',
  'console',
] as const

const unknown = asked.filter(name => !(BENCHES as readonly string[]).includes(name))
if (unknown.length > 0) {
  console.error(`expected names of ${BENCHES.join(', ')}, found ${unknown.join(', ')}`)
  process.exit(2)
}

const load = (): string => loadavg()[0]!.toFixed(1)
const verdicts: Verdict[] = []
const failed: string[] = []
const before = load()
console.log(`${availableParallelism()} cores, Node ${process.versions.node}, load ${before}`)
for (const name of BENCHES.filter(bench => asked.length === 0 || asked.includes(bench))) {
  console.log(`\n${name}, load ${load()}`)
  const child = fork(fileURLToPath(new URL(`${name}.js`, import.meta.url)), quick ? ['--quick'] : [])
  child.on('message', verdict => verdicts.push(verdict as Verdict))
  const [code] = (await once(child, 'exit')) as [number | null]
  if (code !== 0) failed.push(name)
}

console.log(
  `\nload ${before} at the beginning, ${load()} at the end\n\n| What | Figure | Target | |\n| --- | --- | --- | --- |`,
)
for (const { what, figure, target, reached } of verdicts)
  console.log(`| ${what} | ${figure} | ${target} | ${reached ? 'reached' : 'missed'} |`)
for (const name of failed) console.error(`${name} failed`)
// A missed target is no failure, because the figures of a shared machine vary too much.
process.exit(failed.length > 0 ? 1 : 0)
