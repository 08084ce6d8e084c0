// The console's budgets by the clock, the best of three runs: `node dist/test/bench/console.js`.
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUDGETS, budgetWorld, type Streamed, type Took } from '../support/browser/budget-world.js'
import { mib, ms, print, quantile, quick, verdict } from './measure.js'

const ROUNDS = quick ? 1 : 3
const percent = (part: number): string => `${(100 * part).toFixed(1)} %`
const count = (many: number): string => String(Math.round(many))

const todo: (() => unknown)[] = []
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'bench-console-')))
todo.push(() => rmSync(folder, { recursive: true, force: true }))

/** Measures something in rounds, and reports the best by the clock. */
const best = async (what: string, most: number, work: () => Promise<Took>): Promise<void> => {
  const took: Took[] = []
  for (let round = 0; round < ROUNDS; round++) took.push(await work())
  verdict(`console: ${what}`, Math.min(...took.map(({ wall }) => wall)), { most, as: ms })
  print('  of it processor time of the main thread', ms(Math.min(...took.map(({ thread }) => thread))))
}

try {
  const world = await budgetWorld({ teardown: end => void todo.unshift(end) }, folder)
  await best('navigation to a board of 1,000', BUDGETS.fleet, world.fleet)
  await best('the same, four times slower', BUDGETS.fleetSlowed, () => world.fleet(4))
  await world.longRun()
  await best('navigation to the last row of 10,000 frames', BUDGETS.run, world.run)
  await best('the same, four times slower', BUDGETS.runSlowed, () => world.run(4))
  await best('switching conversations', BUDGETS.switching, world.switching)
  await world.largeFile()
  await best('a file of 1 MiB in the review', BUDGETS.review, world.review)
  const streamed: Streamed[] = []
  for (let round = 0; round < ROUNDS; round++) streamed.push(await world.stream(`stream-${round}`, quick ? 300 : 5_000))
  const [{ frames, wall }] = streamed as [Streamed]
  print('console: frames streamed while a person types', count(frames), `${count((1_000 * frames) / wall)} a second`)
  const least = (part: (one: Streamed) => number): number => Math.min(...streamed.map(part))
  const busy = least(one => one.thread / one.wall)
  verdict('console: 5,000 frames at 200/s: main thread busy', busy, { most: BUDGETS.busy, as: percent })
  verdict(
    'console: 5,000 frames at 200/s: script time',
    least(one => one.script),
    { most: BUDGETS.script, as: ms },
  )
  verdict(
    'console: 5,000 frames at 200/s: late frames of the screen',
    least(one => one.late),
    {
      ...{ most: BUDGETS.late, as: percent },
    },
  )
  verdict(
    'console: 5,000 frames at 200/s: elements',
    least(one => one.elements),
    {
      ...{ most: BUDGETS.elements, as: count },
    },
  )
  verdict(
    'console: 5,000 frames at 200/s: heap',
    least(one => one.heap),
    { most: BUDGETS.heap, as: mib },
  )
  verdict(
    'console: 5,000 frames at 200/s: typing, p95',
    least(one => quantile(one.typed, 0.95)),
    {
      ...{ most: BUDGETS.typing, as: ms },
    },
  )
} finally {
  for (const end of todo) await end()
}
