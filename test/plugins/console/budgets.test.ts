import t from 'tap'
import { withChromium } from '../../support/browser/browser.js'
import { BUDGETS, budgetWorld, type Streamed, type Took } from '../../support/browser/budget-world.js'
import { folderOf } from '../../support/daemon.js'
import { quantile } from '../../bench/measure.js'

// By the clock a page is as fast as the whole machine, which other tests keep busy, and the best of three runs does not
// help. So the budgets hold here for the processor time of the page's main thread, which no other process changes, for
// what does not depend on time, and for how much later it draws than an empty page at the same time.
// `npm run bench -- console` measures all of them by the clock.

/** The least processor time of up to three runs, in milliseconds: one that holds to the budget is the last. */
const least = async (work: () => Promise<Took>, budget: number): Promise<number> => {
  let took = Infinity
  for (let run = 0; run < 3 && took >= budget; run++) took = Math.min(took, (await work()).thread)
  return took
}

/** How many times slower than in the benchmark a page may be by the clock: other tests run beside this one. */
const MACHINE = 2

const p95 = (times: readonly number[]): number => quantile(times, 0.95)

/** Whether the page drew in time: an empty page beside it says how late the machine alone is. */
const keepsUp = ({ late, typed, empty }: Streamed, times: number): boolean =>
  late < times * BUDGETS.late + 2 * empty.late && p95(typed) < Math.max(times * BUDGETS.typing, 3 * p95(empty.typed))

t.test('the console stays within its budgets', withChromium(), async t => {
  const world = await budgetWorld(t, folderOf(t))

  await t.test('a board of 1,000 is drawn, also on a machine four times slower', async t => {
    const budget = Math.min(BUDGETS.fleet, BUDGETS.fleetSlowed / 4)
    const thread = await least(world.fleet, budget)
    t.ok(thread < budget, `its main thread needs ${thread} ms`)
    const { elements } = await world.size()
    t.ok(elements < BUDGETS.elements, `${elements} elements`)
  })

  await t.test('the last row of a run of 10,000 frames is drawn, also on a machine four times slower', async t => {
    t.ok((await world.longRun()) >= 10_000)
    const budget = Math.min(BUDGETS.run, BUDGETS.runSlowed / 4)
    const thread = await least(world.run, budget)
    t.ok(thread < budget, `its main thread needs ${thread} ms`)
    const { elements, heap } = await world.size()
    t.ok(elements < BUDGETS.elements, `${elements} elements`)
    t.ok(heap < BUDGETS.heap, `${heap} bytes of heap`)
  })

  await t.test('another conversation is shown', async t => {
    const thread = await least(world.switching, BUDGETS.switching)
    t.ok(thread < BUDGETS.switching, `its main thread needs ${thread} ms`)
  })

  await t.test('a file of 1 MiB is compared in the review', async t => {
    await world.largeFile()
    const thread = await least(world.review, BUDGETS.review)
    t.ok(thread < BUDGETS.review, `its main thread needs ${thread} ms`)
  })

  await t.test('frames arrive 200 a second while a person types', async t => {
    const runs: Streamed[] = []
    // The best of three, as every budget: one that holds to all of them is the last.
    do runs.push(await world.stream(`stream-${runs.length}`, 1_000))
    while (runs.length < 3 && !keepsUp(runs.at(-1)!, 1))
    for (const { frames, thread, script, elements, heap } of runs) {
      // The budget is for 5,000 frames in 25 seconds.
      const share = frames / 5_000
      t.ok(frames >= 900, `${frames} frames`)
      t.ok(thread < BUDGETS.busy * share * 25_000, `the main thread needs ${thread} ms`)
      t.ok(script < BUDGETS.script * share, `${script} ms of them in scripts`)
      t.ok(elements < BUDGETS.elements, `${elements} elements`)
      t.ok(heap < BUDGETS.heap, `${heap} bytes of heap`)
    }
    const times = runs.map(({ late, typed, empty }) => ({
      late,
      typed: p95(typed),
      empty: [empty.late, p95(empty.typed)],
    }))
    t.ok(
      runs.some(run => keepsUp(run, MACHINE)),
      `late frames and milliseconds for a character: ${JSON.stringify(times)}`,
    )
  })
})
