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
import { JournalStore } from '../../kernel/storage/journal.js'

/** Measures journals against the same work done by hand in the same run. Only the ratios count. */

const RUN = 'agent/frames/r-1'
const FILE = 'agent/frames/r-1.events'
const WATCHERS = 100
const never = new AbortController().signal
const frame = (seq: number) => ({
  kind: 'frame', seq, ts: 1732100000000 + seq, type: 'assistant.delta', messageId: 'msg_01HZX6Q3T1W8J5K9', index: 3, text: 'x'.repeat(180),
})
const wire = (seq: number): string => `id: r-1:${seq}\nevent: message\ndata: ${JSON.stringify(frame(seq))}\n\n`
const turn = (): Promise<void> => new Promise(resolve => setImmediate(resolve))
const print = (what: string, value: string, ratio?: string): void => console.log(`${what.padEnd(62)} ${value.padStart(18)}  ${ratio ?? ''}`)
const rate = (count: number, ms: number): number => count / ms * 1000
const k = (perSecond: number): string => `${(perSecond / 1000).toFixed(1)}k/s`
const x = (ratio: number): string => `${ratio.toFixed(2)}x`

const timed = async (work: () => unknown): Promise<number> => {
  const started = performance.now()
  await work()
  return performance.now() - started
}
/** The best of three: the machine is shared, and only its good moments are comparable. */
const best = async (work: () => Promise<number>): Promise<number> => Math.min(await work(), await work(), await work())

const folder = mkdtempSync(join(tmpdir(), 'bench-frames-'))
let folders = 0
const fresh = (tail?: number): JournalStore => new JournalStore(join(folder, String(folders++)), tail === undefined ? {} : { tail })

const appends = async (): Promise<void> => {
  const count = 50_000
  const raw = await best(async () => {
    const fd = openSync(join(folder, 'raw'), 'w')
    const ms = await timed(() => {
      for (let n = 0; n < count; n++) writeSync(fd, wire(n))
    })
    closeSync(fd)
    return ms
  })
  const one = await best(async () => {
    const store = fresh()
    await store.append(RUN, [1])
    const ms = await timed(async () => {
      for (let n = 0; n < count; n++) await store.append(RUN, [frame(n)])
    })
    await store.shutdown()
    return ms
  })
  const ten = await best(async () => {
    const store = fresh()
    await store.append(RUN, [1])
    const ms = await timed(async () => {
      for (let n = 0; n < count; n += 10) await Promise.all(Array.from({ length: 10 }, (_, i) => store.append(RUN, [frame(n + i)])))
    })
    await store.shutdown()
    return ms
  })
  print('append: writeSync a frame (baseline)', k(rate(count, raw)))
  print('append: one at a time, each awaited', k(rate(count, one)), x(raw / one))
  print('append: ten in one tick', k(rate(count, ten)), x(raw / ten))

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

const asSink = (): void => void process.on('message', ({ port, sockets, stalled, path = '/' }: SinkTask) => {
  let bytes = 0
  let open = sockets
  const held: Socket[] = []
  for (let n = 0; n < sockets + stalled; n++) {
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
  path?: string
}

type Attach = (res: ServerResponse, req: IncomingMessage) => void

/** Serves watchers with one function, waits until all are there, runs the work, and answers how long all took to have everything. */
const serve = async (child: ChildProcess, attach: Attach, sockets: number, stalled: number, work: () => Promise<void>): Promise<number> => {
  let here = 0
  const all = Promise.withResolvers<void>()
  const server = createServer({ noDelay: true }, (req, res) => {
    attach(res, req)
    if (++here === sockets + stalled) all.resolve()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  child.send({ port: (server.address() as AddressInfo).port, sockets, stalled } satisfies SinkTask)
  await all.promise
  await turn()
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

const pumped = async (child: ChildProcess, count: number, perTick: number, chunked: boolean, stalled = 0, sockets = WATCHERS): Promise<number> => {
  const store = fresh()
  await store.append(RUN, [0])
  const attach: Attach = res => void store.pump(RUN, 1, head(res, chunked), never).then(() => res.end())
  const ms = await serve(child, attach, sockets, stalled, async () => {
    for (let n = 0; n < count; n++) {
      void store.append(RUN, [frame(n)])
      if (n % perTick === perTick - 1) await turn()
    }
    await store.close(RUN, [{ event: 'done', data: {} }])
  })
  await store.shutdown()
  return ms
}

const fanOut = async (child: ChildProcess): Promise<void> => {
  for (const [perTick, count] of [[1, 3000], [10, 6000]] as const) {
    const by = `${WATCHERS} watchers, ${perTick} a tick`
    const base = await best(() => naive(child, count, perTick))
    const delivered = count * WATCHERS
    print(`fan-out: stringify and write each, ${by} (baseline)`, k(rate(delivered, base)))
    for (const chunked of [true, false]) {
      const ms = await best(() => pumped(child, count, perTick, chunked))
      print(`fan-out: pump${chunked ? ', chunked' : ''}, ${by}`, k(rate(delivered, ms)), x(base / ms))
    }
  }
}

const stalls = async (child: ChildProcess): Promise<void> => {
  const count = 40_000
  const alone = await best(() => pumped(child, count, 20, false, 0, 1))
  const before = process.memoryUsage().rss
  const beside = await best(() => pumped(child, count, 20, false, 50, 1))
  const grown = (process.memoryUsage().rss - before) / 50 / 1024
  print('stalled: one quick watcher alone (baseline)', `${alone.toFixed(0)} ms`)
  print('stalled: the same beside 50 that do not read', `${beside.toFixed(0)} ms`, x(beside / alone))
  print('stalled: memory for each that does not read, at most', `${grown.toFixed(0)} KiB`)
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
  const from = (work: (res: ServerResponse) => Promise<unknown>): Promise<number> => best(() => {
    const attach: Attach = res => {
      head(res, false)
      go = async () => {
        await work(res)
        res.end()
      }
    }
    return serve(child, attach, 1, 0, () => go())
  })
  const memory = await from(async res => {
    for (let at = 0; at < wireBytes.length; at += 65_536) await drain(res, wireBytes.subarray(at, at + 65_536))
  })
  const file = await from(async res => {
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
  const fromMemory = await from(until(store))
  const fromFile = await from(until(cold))
  const opened = await timed(() => new JournalStore(join(folder, String(folders - 1))).stat(RUN))
  print('replay 100k frames: pieces of 64 KiB from memory (baseline)', `${memory.toFixed(0)} ms`)
  print('replay 100k frames: pump from memory', `${fromMemory.toFixed(0)} ms`, x(memory / fromMemory))
  print('replay 100k frames: readSync of 256 KiB (baseline)', `${file.toFixed(0)} ms`)
  print('replay 100k frames: pump from the file', `${fromFile.toFixed(0)} ms`, x(file / fromFile))
  print('opening the journal of 100k frames', `${opened.toFixed(0)} ms`)
}

if (process.argv[2] === 'sink') asSink()
else {
  const child = sink()
  try {
    await appends()
    await fanOut(child)
    await stalls(child)
    await replay(child)
  } finally {
    child.kill()
    rmSync(folder, { recursive: true })
  }
}
