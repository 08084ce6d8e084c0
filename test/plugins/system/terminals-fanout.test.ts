import fc from 'fast-check'
import t from 'tap'
import type { Feed } from '../../../plugins/system/terminals/backend.js'
import type { TerminalServerFrame } from '../../../plugins/system/contract.js'
import { TerminalFanout, type Viewer } from '../../../plugins/system/terminals/fanout.js'

const [FULL, ROOM] = [1 << 20, 256 << 10]
const SIZE = { cols: 80, rows: 24 }

/** A room on a session of the test, which says what it is told and knows whether it is held up. */
const roomOf = () => {
  const state = { paused: false, follows: 0, closed: 0, gone: 0 }
  const follow = async (): Promise<Feed> => {
    state.follows += 1
    // One that is followed anew is not held up by anybody.
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
  return { state, room: new TerminalFanout(follow, () => void (state.gone += 1)) }
}

/** One who reads by the test's word only. */
const readerOf = (viewer: Viewer) => {
  const frames = viewer[Symbol.asyncIterator]()
  let read = ''
  return {
    viewer,
    text: () => read,
    /** Takes frames until so little is left. */
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

t.test(
  'a session is held up exactly as long as somebody who watches has too much before them, whatever the others do',
  { timeout: 60_000 },
  async t => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 30 }), async steps => {
        const { state, room } = roomOf()
        const seats = await Promise.all(
          Array.from({ length: 2 }, async () => ({
            reader: readerOf((await room.enter(SIZE))!),
            waiting: 0,
            full: false,
            said: '',
            here: true,
          })),
        )
        const all = () => seats.filter(({ here }) => here)
        for (const each of steps) {
          if (each.does === 'say') {
            const text = 'x'.repeat(each.size)
            room.data(text)
            for (const seat of all()) Object.assign(seat, { waiting: seat.waiting + each.size, said: seat.said + text })
          } else if (each.does === 'lose') {
            if (all().length === 0) continue
            room.data('')
            room.lost()
            await new Promise(setImmediate)
            for (const seat of all()) Object.assign(seat, { waiting: seat.waiting + 2, said: `${seat.said}\x1bc` })
          } else {
            const seat = seats[each.who]!
            if (!seat.here) continue
            if (each.does === 'leave') {
              seat.here = false
              seat.reader.viewer.leave()
            } else seat.waiting = await seat.reader.take(seat.waiting, each.left)
          }
          for (const seat of seats)
            seat.full = seat.here && (seat.waiting > FULL || (seat.full && seat.waiting >= ROOM))
          if (all().length > 0 && state.paused !== seats.some(({ full }) => full)) return false
        }
        for (const seat of all()) {
          seat.waiting = await seat.reader.take(seat.waiting, 0)
          if (seat.reader.text() !== seat.said) return false
          seat.reader.viewer.leave()
        }
        await new Promise(setImmediate)
        return state.gone === 1 && state.closed === 1
      }),
      { seed: 17, numRuns: 300 },
    )
    t.pass()
  },
)
