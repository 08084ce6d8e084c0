// What a whole request costs beside a bare server: `node dist/test/bench/request.js [seconds a round]`.
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads'
import { agent } from '../../plugins/agent/contract.js'
import { createAuth } from '../../kernel/auth/auth.js'
import { Boot } from '../../kernel/boot.js'
import { Calls } from '../../kernel/calls.js'
import { App } from '../../kernel/http/app.js'
import { OpenStreams } from '../../kernel/http/streams.js'
import { createLog } from '../../kernel/log.js'
import type { PluginManifest } from '../../kernel/manifest.js'
import type { Kernel } from '../../kernel/services.js'
import type { Scope } from '../../sdk/types.js'
import { createHost } from '../../sdk/host.js'

const BODY = JSON.stringify({ prompt: 'x'.repeat(900), conversationId: 'bench', messageId: 'm-1', isolated: true, model: 'script', permissionMode: 'default', mentions: ['a.txt'] })
const ANSWER = { run: 'r-1', conversationId: 'bench', messageId: 'm-1', delivery: 'started' } as const
const SECONDS = Number(process.argv[2] ?? 3)
const ROUNDS = 3

interface Load {
  readonly port: number
  readonly token: string
  readonly ms: number
}

/** Drives one server over 32 connections from a thread of its own and answers requests a second and the 99th percentile. */
const drive = (port: number, token: string): Promise<{ rate: number; p99: number }> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: { port, token, ms: SECONDS * 1000 } satisfies Load })
    worker.once('message', resolve).once('error', reject)
  })

const load = ({ port, token, ms }: Load): void => {
  const request = Buffer.from(`POST /agent HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nx-sandbox-control: ${token}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`)
  const times: number[] = []
  const end = performance.now() + ms
  let open = 32
  for (let index = 0; index < 32; index++) {
    const socket = connect(port, '127.0.0.1')
    let sent = performance.now()
    socket.setNoDelay(true).on('connect', () => socket.write(request)).on('data', answer => {
      if (!answer.subarray(0, 12).equals(Buffer.from('HTTP/1.1 200'))) throw new Error(String(answer))
      const now = performance.now()
      times.push(now - sent)
      if (now > end) {
        socket.destroy()
        if (--open === 0) parentPort!.postMessage({ rate: times.length / (ms / 1000), p99: times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)] })
        return
      }
      sent = now
      socket.write(request)
    })
  }
}

const listen = (listener: RequestListener): Promise<number> =>
  new Promise(resolve => {
    const server = createServer(listener).listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
    server.unref()
  })

const bare: RequestListener = (req, res) => {
  const parts: Buffer[] = []
  req.on('data', part => parts.push(part)).on('end', () => {
    const result = agent.request({ call: 'POST /agent', input: JSON.parse(Buffer.concat(parts).toString()) })
    const body = JSON.stringify(result.success ? ANSWER : { message: 'no' })
    res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
}

/** The daemon's own pipeline with authentication and 400 routes in 40 groups. */
const whole = async (): Promise<{ listener: RequestListener; token: string }> => {
  const kernel = { calls: new Calls(false), boot: new Boot(() => {}) } as unknown as Kernel
  const kept = new Map<string, unknown>()
  const auth = await createAuth({
    files: { read: async <T>(name: string) => kept.get(name) as T, write: async (name, value) => void kept.set(name, value), remove: async () => {} },
    now: Date.now, identity: { claim: 'first', local: true }, ended: () => {}, say: () => {},
  })
  const owner = { kind: 'session', actor: 'bench', role: 'owner' } as const
  const { token } = await auth.handlers['kernel.token.mint']({ label: 'bench', scope: 'drive', createdBy: 'bench' }, { caller: owner, signal: new AbortController().signal, trusted: true })
  auth.limits.enter = () => () => {}
  const app = new App({ kernel, auth, streams: new OpenStreams(() => () => {}), log: createLog(true, () => {}), http: {} })
  const place = { workspace: '', data: '', folder: '', hidden: [] }
  const { host, answer } = createHost('agent', place, { request: async (_, input) => {
    for (const call of (input as { calls?: string[] }).calls ?? []) kernel.calls.add(call, 'agent', answer)
  } })
  await host.serve(agent, { 'POST /agent': () => ANSWER } as never)
  const routes: { [call: string]: PluginManifest['routes'][string] } = { 'POST /agent': { id: 'agent.run', role: 'collaborator', tokens: ['drive'] } }
  const manifest = (name: string, served: PluginManifest['routes']) => ({ manifest: { name, routes: served } as PluginManifest, contract: agent })
  app.add(manifest('agent', routes))
  for (let group = 0; group < 40; group++) {
    const calls = Array.from({ length: 10 }, (_, call) => [`GET /group${group}/{id}/part${call}`, { id: `g.${call}`, role: 'viewer' as const, tokens: [] as Scope[] }] as const)
    app.add(manifest(`group${group}`, Object.fromEntries(calls)))
  }
  await kernel.boot.run()
  return { listener: app.koa.callback(), token }
}

const main = async (): Promise<void> => {
  const { listener, token } = await whole()
  const ports = { bare: await listen(bare), whole: await listen(listener) }
  const best = { bare: { rate: 0, p99: Infinity }, whole: { rate: 0, p99: Infinity } }
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of ['bare', 'whole'] as const) {
      const { rate, p99 } = await drive(ports[name], token)
      best[name] = { rate: Math.max(best[name].rate, rate), p99: Math.min(best[name].p99, p99) }
    }
  }
  console.log(`bare node:http + typia  ${Math.round(best.bare.rate)}/s  p99 ${best.bare.p99.toFixed(2)} ms`)
  console.log(`whole, 401 routes, auth ${Math.round(best.whole.rate)}/s  p99 ${best.whole.p99.toFixed(2)} ms`)
  console.log(`slowdown ${(best.bare.rate / best.whole.rate).toFixed(2)}x (target 1.25), p99 ${(best.whole.p99 / best.bare.p99).toFixed(2)}x (target 1.25)`)
  process.exit(0)
}

if (isMainThread) await main()
else load(workerData as Load)
