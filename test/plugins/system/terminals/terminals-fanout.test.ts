import fc from 'fast-check'
import t from 'tap'
import type { Feed } from '../../../../plugins/system/terminals/backend.js'
import type { TerminalServerFrame } from '../../../../plugins/system/contract.js'
import { TerminalFanout, type Viewer } from '../../../../plugins/system/terminals/fanout.js'

const [FULL, ROOM] = [1 << 20, 256 << 10]
const SIZE = { cols: 80, rows: 24 }

/** A fan-out of a fake session, which sends given output and records whether it is paused. */
const fanoutOf = () => {
  const state = { paused: false, follows: 0, closed: 0, gone: 0 }
  const follow = async (): Promise<Feed> => {
    state.follows += 1
    // A feed that is resumed is not paused.
    state.paused = false
    return {
      draw: drawn => drawn(''),
      write: () => {},
      resize: () => {},
      close: () => void (state.closed += 1),
      pause: () => void (state.paused = true),
      resume: () => void (state.paused = false),
    }
  }
  return { state, fanout: new TerminalFanout(follow, () => void (state.gone += 1)) }
}

/** A reader that reads only when the test tells it to. */
const readerOf = (viewer: Viewer) => {
  const frames = viewer[Symbol.asyncIterator]()
  let read = ''
  return {
    viewer,
    text: () => read,
    /** Takes frames until at most `left` bytes remain. */
    take: async (waiting: number, left: number): Promise<number> => {
      let now = waiting
      while (now > left) {
        const { value } = (await frames.next()) as IteratorResult<TerminalServerFrame, undefined>
        if (value?.type !== 'data') continue
        now -= value.data.length
        read += value.data
      }
      return now
    },
  }
}

const reader = fc.nat({ max: 1 })
const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant('say' as const),
      size: fc.constantFrom(1, 100_000, 300_000, FULL, FULL + 1),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('take' as const),
      who: reader,
      left: fc.constantFrom(0, ROOM - 1, ROOM + 40_000, FULL - 40_000),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant('leave' as const), who: reader }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant('lose' as const) }) },
)

t.test('a session is paused exactly while any viewer has too much unread output', { timeout: 60_000 }, async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
      const { state, fanout } = fanoutOf()
      const viewers = await Promise.all(
        Array.from({ length: 2 }, async () => ({
          reader: readerOf((await fanout.enter(SIZE))!),
          waiting: 0,
          full: false,
          said: '',
          here: true,
        })),
      )
      const all = () => viewers.filter(({ here }) => here)
      for (const each of steps) {
        if (each.does === 'say') {
          const text = 'x'.repeat(each.size)
          fanout.data(text)
          for (const viewer of all())
            Object.assign(viewer, { waiting: viewer.waiting + each.size, said: viewer.said + text })
        } else if (each.does === 'lose') {
          if (all().length === 0) continue
          fanout.data('')
          fanout.lost()
          await new Promise(setImmediate)
          for (const viewer of all())
            Object.assign(viewer, { waiting: viewer.waiting + 2, said: `${viewer.said}\x1bc` })
        } else {
          const viewer = viewers[each.who]!
          if (!viewer.here) continue
          if (each.does === 'leave') {
            viewer.here = false
            viewer.reader.viewer.leave()
          } else viewer.waiting = await viewer.reader.take(viewer.waiting, each.left)
        }
        for (const viewer of viewers)
          viewer.full = viewer.here && (viewer.waiting > FULL || (viewer.full && viewer.waiting >= ROOM))
        if (all().length > 0 && state.paused !== viewers.some(({ full }) => full)) return false
      }
      for (const viewer of all()) {
        viewer.waiting = await viewer.reader.take(viewer.waiting, 0)
        if (viewer.reader.text() !== viewer.said) return false
        viewer.reader.viewer.leave()
      }
      await new Promise(setImmediate)
      return state.gone === 1 && state.closed === 1
    }),
    { seed: 17, numRuns: 300 },
  )
  t.pass()
})
