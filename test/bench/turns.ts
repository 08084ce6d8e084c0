// Measures a real daemon with many turns at once, and with many watchers of one: `node dist/test/bench/turns.js`.
import { execFileSync, fork } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { asked, mib, ms, print, quantile, quick, timed, verdict, x } from './measure.js'
import { besides, highWater, shownLate, start, STREAMS, tidy, watch, type Seen } from './probing.js'
import { clock, type Probed } from './probe.js'

const TURNS = quick ? 2 : 50
const WATCHERS = quick ? 20 : 500
const FRAMES = quick ? 5 : 200
const PACE_MS = 20
/** One frame of the usual size. */
const thought = (step: number): string => `think ${`step ${step} of what is about to be done `.repeat(6)}`

/** A turn of 20 tool calls, five of them commands behind the wall, and enough thoughts for 200 frames. */
const script = (turn: number): string =>
  [
    ...Array.from({ length: 5 }, (_, part) =>
      [
        ...Array.from({ length: 27 }, (_, step) => thought(step)),
        `write made/t${turn}-${part}.ts`,
        '| export const value = 1',
        '| export const other = 2',
        `edit made/t${turn}-${part}.ts`,
        '| - export const value = 1',
        '| + export const value = 3',
        `read made/t${turn}-${part}.ts`,
        `run wc -l made/t${turn}-${part}.ts`,
      ].join('\n'),
    ),
    'say The work is done.',
  ].join('\n')

/** The time from the write of a frame to its arrival, for each frame and watcher. */
const latencies = (seen: readonly Seen[], written: Probed['written']): number[] => {
  const found: number[] = []
  for (const { arrived, since } of seen) {
    for (const [id, at] of arrived) {
      const wrote = written[id]
      if (wrote !== undefined && wrote > since) found.push(at - wrote)
    }
  }
  return found
}

const atOnce = async (): Promise<void> => {
  const daemon = await start('turns', Math.ceil(TURNS / STREAMS))
  const idle = highWater(daemon.pid)
  // The first turn loads the code of turns, which is not measured.
  const first = await daemon.client.call('POST /agent', {
    conversationId: 'first',
    prompt: script(TURNS),
    isolated: true,
  })
  await (
    await watch(
      `${daemon.url}/agent/attach`,
      daemon.headers(0),
      JSON.stringify({ conversationId: first.conversationId }),
    )
  ).over
  await daemon.mark()
  const idleLoop = await besides()
  const seen: Seen[] = []
  const wall = await timed(async () => {
    await Promise.all(
      Array.from({ length: TURNS }, async (_, turn) => {
        const conversationId = `t-${turn}`
        const { run } = await daemon.client.call('POST /agent', {
          conversationId,
          prompt: script(turn),
          isolated: turn % 2 === 0,
        })
        const one = await watch(
          `${daemon.url}/agent/attach`,
          daemon.headers(turn),
          JSON.stringify({ conversationId, run }),
        )
        seen.push(one)
        await one.over
      }),
    )
  })
  const idleLate = await idleLoop()
  const most = highWater(daemon.pid)
  const { written, late, processor } = await daemon.end()
  const frames = seen.reduce((sum, { arrived }) => sum + arrived.size, 0)
  const times = latencies(seen, written)
  const alone =
    (await timed(() => {
      for (let command = 0; command < 20; command++)
        execFileSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true'])
    })) / 20
  print(
    `${TURNS} turns at once: until all have ended`,
    ms(wall),
    `${frames} frames, ${ms(processor)} of the daemon's processor, ${((frames / wall) * 1000).toFixed(0)} frames/s`,
  )
  print(
    'one command behind an empty wall, alone (baseline)',
    ms(alone),
    `${TURNS * 5} such commands were ${(((TURNS * 5 * alone) / wall) * 100).toFixed(0)} % of it, if one after another`,
  )
  print(
    `${TURNS} turns at once: a frame from its file to its watcher`,
    `p50 ${ms(quantile(times, 0.5))}`,
    `p95 ${ms(quantile(times, 0.95))}, p99 ${ms(quantile(times, 0.99))}, of ${times.length}`,
  )
  shownLate(`${TURNS} turns at once`, late, idleLate)
  print(`${TURNS} turns at once: memory's high water`, mib(most), `${mib(idle)} before the first turn`)
}

/** A bare server that writes the same frames to the same number of watchers, in a separate process. */
const asBare = (): void => {
  const watchers: ServerResponse[] = []
  const server = createServer({ noDelay: true }, (_, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' }).flushHeaders()
    watchers.push(res)
  }).listen(0, '127.0.0.1', () => process.send!((server.address() as AddressInfo).port))
  process.on('message', async () => {
    const written: { [id: string]: number } = {}
    for (let frame = 0; frame < FRAMES; frame++) {
      const bytes = Buffer.from(`id: r-1:${frame}\nevent: message\ndata: ${'x'.repeat(250)}\n\n`)
      written[`r-1:${frame}`] = clock()
      for (const res of watchers) res.write(bytes)
      await setTimeout(PACE_MS)
    }
    for (const res of watchers) res.end()
    process.send!(written)
  })
}

const bareTimes = async (): Promise<number[]> => {
  const child = fork(fileURLToPath(import.meta.url), ['bare'])
  const [port] = (await once(child, 'message')) as [number]
  const seen = await Promise.all(Array.from({ length: WATCHERS }, () => watch(`http://127.0.0.1:${port}`, {})))
  child.send('go')
  const [[written]] = await Promise.all([
    once(child, 'message') as Promise<[Probed['written']]>,
    ...seen.map(({ over }) => over),
  ])
  child.kill()
  return latencies(seen, written)
}

const manyWatchers = async (): Promise<void> => {
  const bare = await bareTimes()
  const daemon = await start('watchers', Math.ceil(WATCHERS / STREAMS))
  const prompt = [
    'wait words 600000',
    ...Array.from({ length: FRAMES }, (_, step) => `wait ${PACE_MS}\n${thought(step)}`),
  ].join('\n')
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'one', prompt })
  const attach = (watcher: number) =>
    watch(`${daemon.url}/agent/attach`, daemon.headers(watcher), JSON.stringify({ conversationId: 'one', run }))
  const warm = await Promise.all(Array.from({ length: WATCHERS }, (_, watcher) => attach(watcher)))
  for (const one of warm) one.stop()
  await Promise.all(warm.map(({ over }) => over))
  await setTimeout(500)
  await daemon.mark()
  const seen = await Promise.all(Array.from({ length: WATCHERS }, (_, watcher) => attach(watcher)))
  await setTimeout(500)
  await daemon.mark()
  const idleLoop = await besides()
  await daemon.client.call('POST /agent/steer', { conversationId: 'one', text: 'go' })
  await Promise.all(seen.map(({ over }) => over))
  const idleLate = await idleLoop()
  const { written, late, held, processor } = await daemon.end()
  const times = latencies(seen, written)
  const p95 = quantile(times, 0.95)
  print(
    `${WATCHERS} watchers: a frame from node:http that only writes (baseline)`,
    `p50 ${ms(quantile(bare, 0.5))}`,
    `p95 ${ms(quantile(bare, 0.95))}, p99 ${ms(quantile(bare, 0.99))}`,
  )
  print(
    `${WATCHERS} watchers: a frame from its file to a watcher`,
    `p50 ${ms(quantile(times, 0.5))}`,
    `p99 ${ms(quantile(times, 0.99))}, ${x(p95 / quantile(bare, 0.95))} of the baseline at p95, of ${times.length}`,
  )
  verdict(`${WATCHERS} watchers: frame latency p95`, p95, { most: 15, as: ms })
  print(
    `${WATCHERS} watchers: processor of a frame to one watcher`,
    `${((processor / times.length) * 1000).toFixed(1)} µs`,
  )
  shownLate(`${WATCHERS} watchers`, late, idleLate)
  verdict('an idle watcher of the daemon', (held[1]! - held[0]!) / WATCHERS / 1024, {
    most: 32,
    as: kib => `${kib.toFixed(1)} KiB`,
  })
}

const sections: { [name: string]: () => Promise<void> } = { atOnce, manyWatchers }

if (process.argv[2] === 'bare') asBare()
else {
  try {
    for (const [name, section] of Object.entries(sections))
      if (asked.length === 0 || asked.includes(name)) await section()
  } finally {
    await tidy()
  }
  process.exit(0)
}
