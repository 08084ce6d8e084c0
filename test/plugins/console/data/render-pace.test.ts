import t from 'tap'
import { pacedRender } from '../../../../plugins/console/web/data/render-pace.js'
import { exactly } from '../../../support/lists.js'

/** A screen that draws 60 frames a second, on which each render takes this number of milliseconds. */
const screenOf = (cost: number) => {
  const FRAME = 1_000 / 60
  let now = 0
  let due: { readonly at: number; readonly then: () => void }[] = []
  const later = (at: number, then: () => void) => {
    due = [...due, { at, then }].sort((a, b) => a.at - b.at)
  }
  const renders: number[] = []
  const ask = pacedRender(
    () => {
      renders.push(now)
      now += cost
    },
    {
      now: () => now,
      frame: then => later((Math.floor(now / FRAME) + 1) * FRAME, then),
      after: (ms, then) => later(now + ms, then),
    },
  )
  return {
    renders,
    ask,
    later,
    /** Lets the time pass until this moment. */
    until: (end: number) => {
      while (due[0] && due[0].at <= end) {
        const { at, then } = due.shift()!
        now = Math.max(now, at)
        then()
      }
      now = Math.max(now, end)
    },
  }
}

/** Changes come every 5 ms for a second: when they are rendered. */
const rendersOf = (cost: number): number[] => {
  const { renders, ask, later, until } = screenOf(cost)
  for (let at = 0; at < 1_000; at += 5) later(at, ask)
  until(1_200)
  return renders
}

const gapsOf = (renders: readonly number[]): number[] => renders.slice(1).map((at, index) => at - renders[index]!)

t.test('changes are rendered once per frame of the screen while a render is cheap', async t => {
  const renders = rendersOf(7)
  t.ok(renders.length >= 58 && renders.length <= 61, `${renders.length} renders`)
  t.ok(Math.min(...gapsOf(renders)) > 16)
})

t.test('after a render above 8 ms the next one comes 50 ms later or more', async t => {
  const gaps = gapsOf(rendersOf(9))
  t.ok(gaps.length >= 12, `${gaps.length} renders`)
  t.ok(Math.min(...gaps) >= 59, `${Math.min(...gaps)} ms`)
  t.ok(Math.max(...gaps) < 59 + 2 * 17, 'the last change is not left out')
})

t.test('a change during a render is rendered after it, and one long after a costly render at once', async t => {
  const { renders, ask, later, until } = screenOf(20)
  ask()
  // The render begins at the first frame.
  later(17, ask)
  until(500)
  later(505, ask)
  until(1_000)
  t.match(
    renders.map(at => Math.round(at)),
    exactly(17, 100, 517),
  )
})
