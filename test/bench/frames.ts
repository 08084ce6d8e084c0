// Journals against the same work without them: `node dist/test/bench/frames.js [section …]`. Only the ratios count.
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { JournalStore } from '../../sdk/node/journal/journal-store.js'
import { asked, inTurns, median, ms, print, quick, ratio, timed, verdict, x } from './measure.js'
import { head, serve, sink, type Serving, type Spent } from './sink.js'

const RUN = 'agent/frames/r-1'
const FILE = 'agent/frames/r-1.events'
const ROUNDS = quick ? 1 : 5
/** The part of the work that quick runs do. */
const PART = quick ? 0.05 : 1
const never = new AbortController().signal
const frame = (seq: number) => ({
  kind: 'frame',
  seq,
  ts: 1732100000000 + seq,
  type: 'assistant.delta',
  messageId: 'msg_01HZX6Q3T1W8J5K9',
  index: 3,
  text: 'x'.repeat(180),
})
const wire = (seq: number): string => `id: r-1:${seq}\nevent: message\ndata: ${JSON.stringify(frame(seq))}\n\n`
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const rate = (count: number, time: number): number => (count / time) * 1000
const k = (perSecond: number): string => `${(perSecond / 1000).toFixed(1)}k/s`
const micro = (time: number): string => `${time.toFixed(2)} µs`

const folder = mkdtempSync(join(tmpdir(), 'bench-frames-'))
let folders = 0
const fresh = (tail?: number): JournalStore =>
  new JournalStore(join(folder, String(folders++)), tail === undefined ? {} : { tail })
/** A journal with this number of frames. */
const filled = async (count: number, tail?: number): Promise<JournalStore> => {
  const store = fresh(tail)
  for (let n = 0; n < count; n += 10)
    await store.append(
      RUN,
      Array.from({ length: 10 }, (_, i) => frame(n + i)),
    )
  return store
}

const appends = async (): Promise<void> => {
  const count = 50_000 * PART
  const raw = async (): Promise<number> => {
    const fd = openSync(join(folder, 'raw'), 'w')
    const time = await timed(() => {
      for (let n = 0; n < count; n++) writeSync(fd, wire(n))
    })
    closeSync(fd)
    return time
  }
  const appended = (together: number) => async (): Promise<number> => {
    const store = fresh()
    await store.append(RUN, [1])
    const time = await timed(async () => {
      for (let n = 0; n < count; n += together) {
        await Promise.all(Array.from({ length: together }, (_, i) => store.append(RUN, [frame(n + i)])))
      }
    })
    await store.shutdown()
    return time
  }
  const { base, one, ten } = await inTurns({ base: raw, one: appended(1), ten: appended(10) }, ROUNDS)
  print('append: writeSync a frame (baseline)', k(rate(count, median(base))))
  print('append: one at a time, each awaited', k(rate(count, median(one))), x(ratio(base, one)))
  print('append: ten in one tick', k(rate(count, median(ten))), x(ratio(base, ten)))
}

const durable = async (): Promise<void> => {
  const syncs = 300 * PART
  const disk = async (): Promise<number> => {
    const fd = openSync(join(folder, 'synced'), 'w')
    const time = await timed(() => {
      for (let n = 0; n < syncs; n++) {
        writeSync(fd, wire(n))
        fdatasyncSync(fd)
      }
    })
    closeSync(fd)
    return rate(syncs, time)
  }
  const flushed = (lanes: number) => async (): Promise<number> => {
    const store = fresh()
    await store.append(RUN, [1], { flush: true })
    const total = lanes * (lanes === 1 ? syncs : 100 * PART)
    let n = 0
    const time = await timed(() =>
      Promise.all(
        Array.from({ length: lanes }, async () => {
          while (n < total) await store.append(RUN, [frame(n++)], { flush: true })
        }),
      ),
    )
    await store.shutdown()
    return rate(total, time)
  }
  const found = await inTurns({ disk, one: flushed(1), few: flushed(64), many: flushed(1024) }, quick ? 1 : 9)
  print('durable: writeSync + fdatasync a frame (baseline)', k(median(found.disk)))
  print('durable: append, one in flight', k(median(found.one)), x(ratio(found.one, found.disk)))
  print('durable: append, 64 in flight', k(median(found.few)))
  print('durable: append, 1,024 in flight', k(median(found.many)), x(ratio(found.many, found.disk)))
  verdict("durable append, 64 in flight, to the disk's fdatasync", ratio(found.few, found.disk), { least: 15, as: x })
}

/**
 * Frames at a pace that makes each flush a separate write: a number appended together, then the pause of the journal.
 */
interface Pace {
  readonly watchers: number
  readonly together: number
}

const flushesOf = ({ watchers }: Pace): number => Math.ceil((watchers > 200 ? 30 : 100) * (quick ? 0.1 : 1))
/** Slightly longer than a journal waits between two flushes. */
const pauseOf = ({ watchers }: Pace): number => (watchers > 200 ? 12 : 6)

const flushes = async (pace: Pace, flush: (first: number) => void): Promise<void> => {
  for (let n = 0; n < flushesOf(pace); n++) {
    flush(n * pace.together)
    await setTimeout(pauseOf(pace))
  }
}

/** The naive fan-out: one stringify and one chunk per frame and watcher. */
const eachForItself = (
  child: ChildProcess,
  sockets: number,
  work: (put: (seq: number) => void) => Promise<void>,
): Promise<Spent> => {
  const watchers: ServerResponse[] = []
  return serve(child, {
    sockets,
    attach: res => void watchers.push(head(res)),
    work: async () => {
      await work(seq => {
        for (const res of watchers) res.write(wire(seq))
      })
      for (const res of watchers) res.end()
    },
  })
}

const naive = (child: ChildProcess, pace: Pace): Promise<Spent> =>
  eachForItself(child, pace.watchers, put =>
    flushes(pace, first => {
      for (let n = first; n < first + pace.together; n++) put(n)
    }),
  )

/** The minimum: one system write per flush and socket. */
const raw = (child: ChildProcess, pace: Pace): Promise<Spent> => {
  const watchers: ServerResponse[] = []
  const fds: number[] = []
  return serve(child, {
    sockets: pace.watchers,
    attach: res => void watchers.push(head(res)),
    settled: async () => {
      for (const { socket } of watchers) fds.push((socket as unknown as { _handle: { fd: number } })._handle.fd)
    },
    work: async () => {
      await flushes(pace, first => {
        const bytes = Buffer.from(Array.from({ length: pace.together }, (_, n) => wire(first + n)).join(''))
        for (const fd of fds) writeSync(fd, bytes)
      })
      for (const res of watchers) res.end()
    },
  })
}

const pumped = async (
  child: ChildProcess,
  sockets: number,
  work: (store: JournalStore) => Promise<void>,
): Promise<Spent> => {
  const store = fresh()
  await store.append(RUN, [0])
  const spent = await serve(child, {
    sockets,
    attach: res => void store.pump(RUN, 1, head(res), never).then(() => res.end()),
    work: async () => {
      await work(store)
      await store.close(RUN, [{ event: 'done', data: {} }])
    },
  })
  await store.shutdown()
  return spent
}

const journal = (child: ChildProcess, pace: Pace): Promise<Spent> =>
  pumped(child, pace.watchers, store =>
    flushes(pace, first => {
      for (let n = first; n < first + pace.together; n++) void store.append(RUN, [frame(n)])
    }),
  )

/** Frames as fast as possible, `perTick` in each iteration of the event loop. */
const asTheyCome = async (put: (seq: number) => unknown, count: number, perTick: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    void put(n)
    if (n % perTick === perTick - 1) await turn()
  }
}

const into =
  (store: JournalStore) =>
  (seq: number): Promise<number> =>
    store.append(RUN, [frame(seq)])

const paced = async (child: ChildProcess, pace: Pace): Promise<void> => {
  const { watchers, together } = pace
  const delivered = flushesOf(pace) * together * watchers
  const cost = (work: typeof naive) => async () => ((await work(child, pace)).processor * 1000) / delivered
  const found = await inTurns({ naive: cost(naive), raw: cost(raw), journal: cost(journal) }, ROUNDS)
  const by = `fan-out at a pace: ${watchers} watcher${watchers > 1 ? 's' : ''}, ${together} a flush`
  print(`${by}, stringify and write each (baseline)`, micro(median(found.naive)), 'of processor a frame and watcher')
  print(
    `${by}, one system write a flush (baseline)`,
    micro(median(found.raw)),
    `${x(ratio(found.naive, found.raw))} naive`,
  )
  print(
    `${by}, the journal`,
    micro(median(found.journal)),
    `${x(ratio(found.naive, found.journal))} naive, ${x(ratio(found.raw, found.journal))} of raw`,
  )
  if (watchers === 100 && together === 1)
    verdict(`${by}, speed to the system's write`, ratio(found.raw, found.journal), { least: 0.4, as: x })
}

const thick = async (child: ChildProcess): Promise<void> => {
  const watchers = 100
  for (const perTick of [1, 10]) {
    const count = Math.ceil((perTick === 1 ? 3_000 : 20_000) * PART)
    const spent = { naive: [] as Spent[], journal: [] as Spent[] }
    await inTurns(
      {
        naive: async () =>
          spent.naive.push(await eachForItself(child, watchers, put => asTheyCome(put, count / 4, perTick))),
        journal: async () =>
          spent.journal.push(await pumped(child, watchers, store => asTheyCome(into(store), count, perTick))),
      },
      ROUNDS,
    )
    const rates = (name: keyof typeof spent, part: keyof Spent) =>
      spent[name].map(one => rate((name === 'naive' ? count / 4 : count) * watchers, one[part]))
    const by = `fan-out as they come: ${watchers} watchers, ${perTick} a tick`
    for (const name of ['naive', 'journal'] as const) {
      print(
        `${by}, ${name === 'naive' ? 'stringify and write each (baseline)' : 'the journal'}`,
        k(median(rates(name, 'wall'))),
        `${k(median(rates(name, 'processor')))} of processor`,
      )
    }
    if (perTick === 1)
      verdict(
        `${by}, speed to stringify and write each`,
        ratio(rates('journal', 'processor'), rates('naive', 'processor')),
        { least: 2.4, as: x },
      )
    else
      verdict(`${by}, delivered a second`, median(rates('journal', 'wall')) / 1e6, {
        least: 1.5,
        as: mega => `${mega.toFixed(2)} M`,
      })
  }
}

const fanOut = async (child: ChildProcess): Promise<void> => {
  for (const watchers of [1, 100, 1_000]) for (const together of [1, 10]) await paced(child, { watchers, together })
  await thick(child)
}

/** The bytes in use after a garbage collection. */
const held = (): number => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** Measures the memory of watchers with nothing to read, in KiB each. */
const idle = async (child: ChildProcess): Promise<void> => {
  const watchers = quick ? 50 : 1_000
  const holding = async (attach: Serving['attach'], work: () => Promise<void>): Promise<number> => {
    let kib = 0
    const before = held()
    await serve(child, {
      sockets: watchers,
      attach,
      work,
      settled: async () => {
        await setTimeout(100)
        kib = (held() - before) / 1024 / watchers
      },
    })
    return kib
  }
  const found = await inTurns(
    {
      bare: () => {
        const open: ServerResponse[] = []
        return holding(
          res => void open.push(head(res)),
          async () => open.forEach(res => res.end()),
        )
      },
      journal: async () => {
        const store = fresh()
        await store.append(RUN, [0])
        return holding(
          res => void store.pump(RUN, 1, head(res), never).then(() => res.end()),
          () => store.close(RUN, [{ event: 'done', data: {} }]),
        )
      },
    },
    ROUNDS,
  )
  const kib = (size: number) => `${size.toFixed(1)} KiB`
  print(`idle: an open answer of node:http, of ${watchers} (baseline)`, kib(median(found.bare)))
  verdict('idle watcher of a journal', median(found.journal), { most: 32, as: kib })
}

/** Measures one fast watcher at the end of a journal, beside others that stopped reading. */
const beside = async (child: ChildProcess, stalled: number): Promise<Spent & { readonly kib: number }> => {
  const count = 40_000 * PART
  const store = await filled(40_000)
  const before = held()
  const slow: ServerResponse[] = []
  const sent = (): number => slow.reduce((sum, res) => sum + (res.socket?.bytesWritten ?? 0), 0)
  let kib = 0
  const spent = await serve(child, {
    sockets: 1,
    stalled,
    attach: (res, { url }) => {
      const isQuick = url === '/'
      if (!isQuick) slow.push(res)
      void store.pump(RUN, isQuick ? 40_000 : 0, head(res), never).then(() => res.end())
    },
    settled: async () => {
      // Waits until the system's socket buffers are full, because filling them is not measured.
      for (let still = 0, last = -1; still < 20; still++) {
        if (sent() !== last) still = 0
        last = sent()
        await setTimeout(20)
      }
      kib = (held() - before) / 1024 / Math.max(1, stalled)
    },
    work: async () => {
      await asTheyCome(into(store), count, 20)
      await store.close(RUN, [{ event: 'done', data: {} }])
    },
  })
  await store.shutdown()
  return { ...spent, kib }
}

const stalls = async (child: ChildProcess): Promise<void> => {
  const stalled = quick ? 5 : 50
  const spent = { alone: [] as (Spent & { kib: number })[], among: [] as (Spent & { kib: number })[] }
  const round = (name: 'alone' | 'among', slow: number) => async () => spent[name].push(await beside(child, slow))
  await inTurns({ alone: round('alone', 0), among: round('among', stalled) }, quick ? 1 : 9)
  const of = (name: 'alone' | 'among', part: keyof Spent | 'kib') => spent[name].map(one => one[part])
  print(
    'stalled: one quick watcher alone (baseline)',
    ms(median(of('alone', 'wall'))),
    `${ms(median(of('alone', 'processor')))} of processor`,
  )
  print(
    `stalled: the same beside ${stalled} that do not read`,
    ms(median(of('among', 'wall'))),
    `${ms(median(of('among', 'processor')))} of processor`,
  )
  verdict(`stalled: the quick one beside ${stalled}, slower`, ratio(of('among', 'wall'), of('alone', 'wall')), {
    most: 1.2,
    as: x,
  })
  print('stalled: the same by processor', x(ratio(of('among', 'processor'), of('alone', 'processor'))))
  verdict('stalled: memory of each that does not read, at most', Math.max(...of('among', 'kib')), {
    most: 1024,
    as: kib => `${kib.toFixed(0)} KiB`,
  })
}

const replay = async (child: ChildProcess): Promise<void> => {
  const count = 100_000 * PART
  const store = await filled(count, 64 * 1024 * 1024)
  await store.append(RUN, [0], { flush: true })
  const path = join(folder, String(folders - 1), FILE)
  const wireBytes = readFileSync(path)
  // Each with its own memory, like a client that keeps only the end of a stream.
  const pieces = Array.from({ length: Math.ceil(wireBytes.length / 65_536) }, (_, n) =>
    Buffer.from(new Uint8Array(wireBytes.subarray(n * 65_536, (n + 1) * 65_536)).buffer),
  )
  const drain = (res: ServerResponse, bytes: Buffer): unknown => res.write(bytes) || once(res, 'drain')
  const spent = { memory: [] as Spent[], fromMemory: [] as Spent[], file: [] as Spent[], fromFile: [] as Spent[] }
  const round = (name: keyof typeof spent, work: (res: ServerResponse) => Promise<unknown>) => async () => {
    let watcher: ServerResponse | undefined
    return spent[name].push(
      await serve(child, {
        sockets: 1,
        attach: res => void (watcher = head(res)),
        work: async () => {
          await work(watcher!)
          watcher!.end()
        },
      }),
    )
  }
  const until =
    (source: JournalStore) =>
    async (res: ServerResponse): Promise<void> => {
      const stop = new AbortController()
      let left = wireBytes.length
      const { write } = res
      // The journal is not closed, so the last byte ends the pump.
      res.write = ((bytes: Buffer) => {
        left -= bytes.length
        if (left === 0) setImmediate(() => stop.abort())
        return Reflect.apply(write, res, [bytes]) as boolean
      }) as typeof res.write
      await source.pump(RUN, 0, res, stop.signal)
    }
  const cold = new JournalStore(join(folder, String(folders - 1)))
  await cold.stat(RUN)
  await inTurns(
    {
      memory: round('memory', async res => {
        for (const piece of pieces) await drain(res, piece)
      }),
      fromMemory: round('fromMemory', until(store)),
      file: round('file', async res => {
        const fd = openSync(path, 'r')
        for (;;) {
          const bytes = Buffer.allocUnsafeSlow(262_144)
          const read = readSync(fd, bytes)
          if (read === 0) break
          await drain(res, bytes.subarray(0, read))
        }
        closeSync(fd)
      }),
      fromFile: round('fromFile', until(cold)),
    },
    quick ? 1 : 101,
  )
  const of = (name: keyof typeof spent, part: keyof Spent) => spent[name].map(one => one[part])
  const opened = await timed(() => new JournalStore(join(folder, String(folders - 1))).stat(RUN))
  const shown = {
    memory: 'pieces of 64 KiB from memory (baseline)',
    fromMemory: 'the journal from memory',
    file: 'readSync of 256 KiB (baseline)',
    fromFile: 'the journal from its file',
  }
  for (const name of ['memory', 'fromMemory', 'file', 'fromFile'] as const) {
    print(
      `replay: ${shown[name]}`,
      ms(median(of(name, 'wall'))),
      `best ${ms(Math.min(...of(name, 'wall')))}, ${ms(median(of(name, 'processor')))} of processor`,
    )
  }
  for (const [part, by] of [
    ['wall', 'by the clock'],
    ['processor', 'by the processor'],
  ] as const) {
    verdict(`replay from memory, speed to a raw socket ${by}`, ratio(of('memory', part), of('fromMemory', part)), {
      least: 0.9,
      as: x,
    })
    verdict(`replay from the file, speed to a raw socket ${by}`, ratio(of('file', part), of('fromFile', part)), {
      least: 0.5,
      as: x,
    })
  }
  print(`opening the journal of ${count} frames`, ms(opened))
}

const sections: { [name: string]: (child: ChildProcess) => Promise<void> } = {
  appends,
  durable,
  fanOut,
  idle,
  stalls,
  replay,
}

const child = sink()
try {
  for (const [name, section] of Object.entries(sections)) {
    if (asked.length === 0 || asked.includes(name)) await section(child)
  }
} finally {
  child.kill()
  rmSync(folder, { recursive: true })
}
process.exit(0)
