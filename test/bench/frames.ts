import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { JournalStore } from '../../kernel/storage/journal.js'

/** Measures journals against the same work done by hand in the same run. Only the ratios count. */

const RUN = 'agent/frames/r-1'
const FILE = 'agent/frames/r-1.events'
const WATCHERS = 100
const never = new AbortController().signal
const frame = (seq: number) => ({
  kind: 'frame', seq, ts: 1732100000000 + seq, type: 'assistant.delta', messageId: 'msg_01HZX6Q3T1W8J5K9', index: 3,
  text: 'x'.repeat(180),
})
const wire = (seq: number): string => `id: r-1:${seq}\nevent: message\ndata: ${JSON.stringify(frame(seq))}\n\n`
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const print = (what: string, value: string, ratio?: string): void =>
  console.log(`${what.padEnd(62)} ${value.padStart(18)}  ${ratio ?? ''}`)
const rate = (count: number, ms: number): number => count / ms * 1000
const k = (perSecond: number): string => `${(perSecond / 1000).toFixed(1)}k/s`
const x = (ratio: number): string => `${ratio.toFixed(2)}x`

const timed = async (work: () => unknown): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}
/** The best of several rounds, taken in turns: on a shared machine only the good moments are comparable. */
const best = async (works: readonly (() => Promise<number>)[], rounds = 3): Promise<number[]> => {
  const least = works.map(() => Infinity)
  for (let round = 0; round < rounds; round++) {
    for (const [i, work] of works.entries()) least[i] = Math.min(least[i] ?? Infinity, await work())
  }
  return least
}

const folder = mkdtempSync(join(tmpdir(), 'bench-frames-'))
let folders = 0
const fresh = (tail?: number): JournalStore =>
  new JournalStore(join(folder, String(folders++)), tail === undefined ? {} : { tail })

const appends = async (): Promise<void> => {
  const count = 50_000
  const raw = async (): Promise<number> => {
    const fd = openSync(join(folder, 'raw'), 'w')
    const ms = await timed(() => {
      for (let n = 0; n < count; n++) writeSync(fd, wire(n))
    })
    closeSync(fd)
    return ms
  }
  const one = async (): Promise<number> => {
    const store = fresh()
    await store.append(RUN, [1])
    const ms = await timed(async () => {
      for (let n = 0; n < count; n++) await store.append(RUN, [frame(n)])
    })
    await store.shutdown()
    return ms
  }
  const ten = async (): Promise<number> => {
    const store = fresh()
    await store.append(RUN, [1])
    const ms = await timed(async () => {
      for (let n = 0; n < count; n += 10) {
        await Promise.all(Array.from({ length: 10 }, (_, i) => store.append(RUN, [frame(n + i)])))
      }
    })
    await store.shutdown()
    return ms
  }
  const [base = 0, single = 0, tens = 0] = await best([raw, one, ten])
  print('append: writeSync a frame (baseline)', k(rate(count, base)))
  print('append: one at a time, each awaited', k(rate(count, single)), x(base / single))
  print('append: ten in one tick', k(rate(count, tens)), x(base / tens))

  const syncs = 300
  const fd = openSync(join(folder, 'synced'), 'w')
  const disk = rate(syncs, await timed(() => {
    for (let n = 0; n < syncs; n++) {
      writeSync(fd, wire(n))
      fdatasyncSync(fd)
    }
  }))
  closeSync(fd)
  print('append: writeSync + fdatasync a frame (baseline)', k(disk))
  for (const lanes of [1, 64, 1024]) {
    const store = fresh()
    await store.append(RUN, [1], { flush: true })
    const total = lanes * (lanes === 1 ? syncs : 100)
    let n = 0
    const ms = await timed(() => Promise.all(Array.from({ length: lanes }, async () => {
      while (n < total) await store.append(RUN, [frame(n++)], { flush: true })
    })))
    print(`append: flushed, ${lanes} in flight`, k(rate(total, ms)), x(rate(total, ms) / disk))
    await store.shutdown()
  }
}

/** Sockets in a process of their own; each answer tells the bytes read when all sockets have ended. */
const sink = (): ChildProcess => fork(fileURLToPath(import.meta.url), ['sink'])

const asSink = (): void => void process.on('message', ({ port, sockets, stalled }: SinkTask) => {
  let bytes = 0
  let open = sockets
  const held: Socket[] = []
  for (let n = 0; n < sockets + stalled; n++) {
    const path = n < sockets ? '/' : '/stalled'
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`))
    socket.on('error', () => {})
    if (n >= sockets) {
      held.push(socket.pause())
      continue
    }
    socket.on('data', piece => bytes += piece.length)
    socket.on('close', () => {
      if (--open > 0) return
      process.send?.({ bytes })
      for (const other of held) other.destroy()
    })
  }
})

interface SinkTask {
  port: number
  sockets: number
  stalled: number
}

type Attach = (res: ServerResponse, req: IncomingMessage) => void

/** Serves watchers, and answers how long it took from the beginning of the work until all had everything. */
const serve = async (
  child: ChildProcess, attach: Attach, sockets: number, stalled: number, work: () => Promise<void>, settled = turn,
): Promise<number> => {
  let here = 0
  const all = Promise.withResolvers<void>()
  const server = createServer({ noDelay: true }, (req, res) => {
    attach(res, req)
    if (++here === sockets + stalled) all.resolve()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  child.send({ port: (server.address() as AddressInfo).port, sockets, stalled } satisfies SinkTask)
  await all.promise
  await settled()
  const started = performance.now()
  const over = once(child, 'message')
  await work()
  await over
  const ms = performance.now() - started
  server.closeAllConnections()
  server.close()
  await once(server, 'close')
  return ms
}

const head = (res: ServerResponse, chunked: boolean): ServerResponse => {
  res.useChunkedEncodingByDefault = chunked
  res.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' }).flushHeaders()
  return res
}

const naive = async (child: ChildProcess, count: number, perTick: number): Promise<number> => {
  const watchers: ServerResponse[] = []
  return serve(child, res => void watchers.push(head(res, true)), WATCHERS, 0, async () => {
    for (let n = 0; n < count; n++) {
      for (const res of watchers) res.write(wire(n))
      if (n % perTick === perTick - 1) await turn()
    }
    for (const res of watchers) res.end()
  })
}

const pumped = async (child: ChildProcess, count: number, perTick: number, chunked: boolean): Promise<number> => {
  const store = fresh()
  await store.append(RUN, [0])
  const attach: Attach = res => void store.pump(RUN, 1, head(res, chunked), never).then(() => res.end())
  const ms = await serve(child, attach, WATCHERS, 0, () => produce(store, count, perTick))
  await store.shutdown()
  return ms
}

const produce = async (store: JournalStore, count: number, perTick: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    void store.append(RUN, [frame(n)])
    if (n % perTick === perTick - 1) await turn()
  }
  await store.close(RUN, [{ event: 'done', data: {} }])
}

/** Bytes still in use; what only waits to be collected is left out. */
const held = (): number => {
  setFlagsFromString('--expose-gc')
  runInNewContext('gc')()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/** One quick watcher at the end of a journal, and others that stopped reading somewhere in it. */
const beside = async (child: ChildProcess, stalled: number): Promise<{ ms: number; kib: number }> => {
  const store = fresh()
  for (let n = 0; n < 40_000; n += 100) await store.append(RUN, Array.from({ length: 100 }, (_, i) => frame(n + i)))
  const before = held()
  const slow: ServerResponse[] = []
  const attach: Attach = (res, { url }) => {
    const quick = url === '/'
    if (!quick) slow.push(res)
    void store.pump(RUN, quick ? 40_000 : 0, head(res, false), never).then(() => res.end())
  }
  let kib = 0
  const ms = await serve(child, attach, 1, stalled, () => produce(store, 40_000, 20), async () => {
    // Until the system's own buffers of the sockets are full: filling them is not what is measured.
    for (let still = 0; still < 20; still++) {
      const sent = slow.reduce((sum, res) => sum + (res.socket?.bytesWritten ?? 0), 0)
      await new Promise(resolve => setTimeout(resolve, 20))
      if (sent !== slow.reduce((sum, res) => sum + (res.socket?.bytesWritten ?? 0), 0)) still = 0
    }
    kib = (held() - before) / 1024 / Math.max(1, stalled)
  })
  await store.shutdown()
  return { ms, kib }
}

const fanOut = async (child: ChildProcess): Promise<void> => {
  for (const [perTick, count] of [[1, 3000], [10, 6000]] as const) {
    const by = `${WATCHERS} watchers, ${perTick} a tick`
    const [base = 0, chunked = 0, plain = 0] = await best([
      () => naive(child, count, perTick),
      () => pumped(child, count, perTick, true),
      () => pumped(child, count, perTick, false),
    ])
    const delivered = count * WATCHERS
    print(`fan-out: stringify and write each, ${by} (baseline)`, k(rate(delivered, base)))
    print(`fan-out: pump, chunked, ${by}`, k(rate(delivered, chunked)), x(base / chunked))
    print(`fan-out: pump, ${by}`, k(rate(delivered, plain)), x(base / plain))
  }
}

const stalls = async (child: ChildProcess): Promise<void> => {
  const stalled = 50
  let most = 0
  const [alone = 0, among = 0] = await best([
    async () => (await beside(child, 0)).ms,
    async () => {
      const { ms, kib } = await beside(child, stalled)
      most = Math.max(most, kib)
      return ms
    },
  ], 5)
  print('stalled: one quick watcher alone (baseline)', `${alone.toFixed(0)} ms`)
  print(`stalled: the same beside ${stalled} that do not read`, `${among.toFixed(0)} ms`, x(among / alone))
  print('stalled: memory for each that does not read, at most', `${most.toFixed(0)} KiB`)
}

const replay = async (child: ChildProcess): Promise<void> => {
  const count = 100_000
  const store = fresh(64 * 1024 * 1024)
  for (let n = 0; n < count; n += 100) await store.append(RUN, Array.from({ length: 100 }, (_, i) => frame(n + i)))
  await store.append(RUN, [0], { flush: true })
  const path = join(folder, String(folders - 1), FILE)
  const wireBytes = readFileSync(path)
  const drain = (res: ServerResponse, bytes: Buffer): unknown => res.write(bytes) || once(res, 'drain')
  let go: () => Promise<void>
  const from = (work: (res: ServerResponse) => Promise<unknown>) => (): Promise<number> => {
    const attach: Attach = res => {
      head(res, false)
      go = async () => {
        await work(res)
        res.end()
      }
    }
    return serve(child, attach, 1, 0, () => go())
  }
  const rawMemory = from(async res => {
    for (let at = 0; at < wireBytes.length; at += 65_536) await drain(res, wireBytes.subarray(at, at + 65_536))
  })
  const rawFile = from(async res => {
    const fd = openSync(path, 'r')
    for (;;) {
      const bytes = Buffer.allocUnsafeSlow(262_144)
      const read = readSync(fd, bytes)
      if (read === 0) break
      await drain(res, bytes.subarray(0, read))
    }
    closeSync(fd)
  })
  const until = (source: JournalStore) => async (res: ServerResponse): Promise<void> => {
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
  const works = [rawMemory, from(until(store)), rawFile, from(until(cold))]
  const [memory = 0, fromMemory = 0, file = 0, fromFile = 0] = await best(works, 9)
  const opened = await timed(() => new JournalStore(join(folder, String(folders - 1))).stat(RUN))
  print('replay 100k frames: pieces of 64 KiB from memory (baseline)', `${memory.toFixed(0)} ms`)
  print('replay 100k frames: pump from memory', `${fromMemory.toFixed(0)} ms`, x(memory / fromMemory))
  print('replay 100k frames: readSync of 256 KiB (baseline)', `${file.toFixed(0)} ms`)
  print('replay 100k frames: pump from the file', `${fromFile.toFixed(0)} ms`, x(file / fromFile))
  print('opening the journal of 100k frames', `${opened.toFixed(0)} ms`)
}

const sections: { [name: string]: (child: ChildProcess) => Promise<void> } = { appends, fanOut, stalls, replay }
const asked = process.argv.slice(2)

if (asked[0] === 'sink') asSink()
else {
  const child = sink()
  try {
    for (const [name, section] of Object.entries(sections)) {
      if (asked.length === 0 || asked.includes(name)) await section(child)
    }
  } finally {
    child.kill()
    rmSync(folder, { recursive: true })
  }
}
