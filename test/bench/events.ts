// Measures a real daemon with a thousand readers of its event stream: `node dist/test/bench/events.js`.
import { setTimeout } from 'node:timers/promises'
import { mib, ms, print, quantile, quick, verdict } from './measure.js'
import { besides, highWater, shownLate, start, STREAMS, tidy, watch } from './probing.js'
import { clock } from './probe.js'

const READERS = quick ? 20 : 1_000
/** Events per second, each by its own call: a person switches to another view. */
const PACE = 100
const SECONDS = quick ? 1 : 10
/** A session may make 20 calls per second. */
const MOVERS = 10

const main = async (): Promise<void> => {
  const sessions = Math.ceil(READERS / STREAMS)
  const daemon = await start('events', sessions + MOVERS)
  const ofMover = (mover: number) => daemon.headers((sessions + mover) * STREAMS)
  const movers = await Promise.all(
    Array.from({ length: MOVERS }, (_, mover) => watch(`${daemon.url}/events?clientId=m${mover}`, ofMover(mover))),
  )
  await daemon.mark()
  const seen = await Promise.all(
    Array.from({ length: READERS }, (_, reader) => watch(`${daemon.url}/events`, daemon.headers(reader))),
  )
  await setTimeout(500)
  await daemon.mark()
  const idleLoop = await besides()
  const before = seen.map(({ arrived }) => arrived.size)
  const sent: Promise<unknown>[] = []
  const took: number[] = []
  const began = clock()
  for (let event = 0; event < PACE * SECONDS; event++) {
    const wait = began + (event * 1000) / PACE - clock()
    if (wait > 0) await setTimeout(wait)
    const mover = event % MOVERS
    const at = clock()
    sent.push(
      fetch(`${daemon.url}/system/presence`, {
        method: 'POST',
        headers: ofMover(mover),
        body: JSON.stringify({ clientId: `m${mover}`, idle: false, view: `view ${event}` }),
      })
        .then(answer => answer.json())
        .then(() => took.push(clock() - at)),
    )
  }
  await Promise.all(sent)
  await setTimeout(500)
  const idleLate = await idleLoop()
  const arrived = seen.reduce((sum, { arrived: { size } }, reader) => sum + size - before[reader]!, 0)
  const most = highWater(daemon.pid)
  for (const one of [...seen, ...movers]) one.stop()
  const { late, held, processor } = await daemon.end()
  print(
    `${READERS} readers of events: ${PACE} a second for ${SECONDS} s`,
    `${arrived} arrived`,
    `${ms(processor)} of the daemon's processor, ${((processor / arrived) * 1000).toFixed(1)} µs each`,
  )
  print(
    `${READERS} readers of events: the call that moved them`,
    `p50 ${ms(quantile(took, 0.5))}`,
    `p99 ${ms(quantile(took, 0.99))}`,
  )
  shownLate(`${READERS} readers of events`, late, idleLate)
  verdict('a reader of events, idle', (held[1]! - held[0]!) / READERS / 1024, {
    most: 32,
    as: kib => `${kib.toFixed(1)} KiB`,
  })
  print(`${READERS} readers of events: memory's high water`, mib(most))
}

try {
  await main()
} finally {
  await tidy()
}
process.exit(0)
