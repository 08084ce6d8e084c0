// What a whole request costs beside a bare server and beside Hono with zod: `node dist/test/bench/request.js [seconds a
// round]`.
import { fork } from 'node:child_process'
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import { z } from 'zod'
import { agent } from '../../plugins/agent/contract.js'
import { createAuth } from '../../kernel/auth/auth.js'
import { Boot } from '../../kernel/boot.js'
import { Calls } from '../../kernel/calls.js'
import { App } from '../../kernel/http/app.js'
import { OpenStreams } from '../../kernel/streams/open-streams.js'
import { createLog } from '../../kernel/logs/log.js'
import type { PluginManifest } from '../../kernel/manifest.js'
import type { KernelServices } from '../../kernel/services.js'
import type { Scope } from '../../sdk/types.js'
import { createHost } from '../../sdk/host.js'
import { Connections } from '../../kernel/http/connections.js'
import { asked, inTurns, median, print, quick, ratio, verdict, x } from './measure.js'

const BODY = JSON.stringify({
  prompt: 'x'.repeat(900),
  conversationId: 'bench',
  messageId: 'm-1',
  isolated: true,
  model: 'script',
  permissionMode: 'default',
  mentions: ['a.txt'],
})
const ANSWER = { run: 'r-1', conversationId: 'bench', messageId: 'm-1', delivery: 'started' } as const
const SECONDS = Number(asked[0] ?? (quick ? 0.2 : 2))
const ROUNDS = quick ? 1 : 7

interface Load {
  readonly port: number
  readonly token: string
  readonly ms: number
}

/**
 * Requests a second, their 99th percentile in ms, and what one costs the server's processor in µs.
 *
 * `own` is the part outside the system: waking a client that sleeps is inside, and a quick server's seldom does.
 */
interface Figures {
  readonly rate: number
  readonly p99: number
  readonly cpu: number
  readonly own: number
}

/** Drives one server over 32 connections from a process of its own. */
const drive = async (port: number, token: string): Promise<Figures> => {
  const before = process.cpuUsage()
  const load: Load = { port, token, ms: SECONDS * 1000 }
  const { count, rate, p99 } = await new Promise<Pick<Figures, 'rate' | 'p99'> & { readonly count: number }>(
    (resolve, reject) => {
      fork(fileURLToPath(import.meta.url), ['load', JSON.stringify(load)])
        .once('message', resolve as never)
        .once('error', reject)
    },
  )
  const { user, system } = process.cpuUsage(before)
  return { rate, p99, cpu: (user + system) / count, own: user / count }
}

const load = ({ port, token, ms }: Load): void => {
  const request = Buffer.from(
    `POST /agent HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: `
      + `application/json\r\nx-sandbox-control: ${token}\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  )
  const times: number[] = []
  const end = performance.now() + ms
  let open = 32
  for (let index = 0; index < 32; index++) {
    const socket = connect(port, '127.0.0.1')
    let sent = performance.now()
    socket
      .setNoDelay(true)
      .on('connect', () => socket.write(request))
      .on('data', answer => {
        if (!answer.subarray(0, 12).equals(Buffer.from('HTTP/1.1 200'))) throw new Error(String(answer))
        const now = performance.now()
        times.push(now - sent)
        if (now > end) {
          socket.destroy()
          if (--open === 0)
            process.send!({
              count: times.length,
              rate: times.length / (ms / 1000),
              p99: times.sort((a, b) => a - b)[Math.floor(times.length * 0.99)],
            })
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
  req
    .on('data', part => parts.push(part))
    .on('end', () => {
      const result = agent.request({ call: 'POST /agent', input: JSON.parse(Buffer.concat(parts).toString()) })
      const body = JSON.stringify(result.success ? ANSWER : { message: 'no' })
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
    })
}

const MODES = ['default', 'acceptEdits', 'plan', 'bypassPermissions'] as const

/** The usual choice: a framework with web-standard requests, and a validator with separate schemas. */
const hono = (): RequestListener => {
  const input = z.object({
    prompt: z.string().max(1_048_576),
    messageId: z.string().max(64).optional(),
    attachments: z.array(z.string()).max(20).optional(),
    mentions: z.array(z.string()).max(20).optional(),
    conversationId: z
      .string()
      .max(64)
      .regex(/^[A-Za-z0-9][\w.-]*$/)
      .optional(),
    isolated: z.boolean().optional(),
    model: z.string().optional(),
    permissionMode: z.enum(MODES).optional(),
  })
  const app = new Hono()
  app.post('/agent', async context => {
    const found = input.safeParse(await context.req.json())
    return found.success ? context.json(ANSWER) : context.json({ message: 'no' }, 400)
  })
  return getRequestListener(app.fetch)
}

/** The daemon's own pipeline with authentication and 400 routes in 40 groups. */
const whole = async (): Promise<{ listener: RequestListener; token: string }> => {
  const kernel = { calls: new Calls(false), boot: new Boot(() => {}) } as unknown as KernelServices
  const kept = new Map<string, unknown>()
  const auth = await createAuth({
    files: {
      read: async <T>(name: string) => kept.get(name) as T,
      write: async (name, value) => void kept.set(name, value),
      remove: async () => {},
    },
    now: Date.now,
    identity: { claim: 'first', local: true },
    ended: () => {},
    say: () => {},
  })
  const owner = { kind: 'session', actor: 'bench', role: 'owner' } as const
  const { token } = await auth.handlers['kernel.token.mint'](
    { label: 'bench', scope: 'drive', createdBy: 'bench' },
    { caller: owner, signal: new AbortController().signal, trusted: true },
  )
  auth.limits.enter = () => () => {}
  const app = new App({
    kernel,
    auth,
    streams: new OpenStreams(() => () => {}),
    connections: new Connections(),
    log: createLog(true, () => {}),
    http: {},
    uploads: '',
  })
  const place = {
    workspace: '',
    data: '',
    folder: '',
    root: '',
    hidden: [],
    grants: { read: [], write: [] },
    limits: {},
  }
  const { host, answer } = createHost('agent', place, {
    request: async (_, input) => {
      for (const call of (input as { calls?: string[] }).calls ?? []) kernel.calls.add(call, 'agent', answer)
    },
  })
  await host.serve(agent, { 'POST /agent': () => ANSWER } as never)
  const routes: { [call: string]: PluginManifest['routes'][string] } = {
    'POST /agent': { id: 'agent.run', role: 'collaborator', tokens: ['drive'] },
  }
  const manifest = (name: string, served: PluginManifest['routes']) => ({
    manifest: { name, routes: served } as PluginManifest,
    contract: async () => agent,
  })
  app.add(manifest('agent', routes))
  for (let group = 0; group < 40; group++) {
    const calls = Array.from(
      { length: 10 },
      (_, call) =>
        [
          `GET /group${group}/{id}/part${call}`,
          { id: `g.${call}`, role: 'viewer' as const, tokens: [] as Scope[] },
        ] as const,
    )
    app.add(manifest(`group${group}`, Object.fromEntries(calls)))
  }
  await kernel.boot.run()
  return { listener: app.koa.callback(), token }
}

const main = async (): Promise<void> => {
  const { listener, token } = await whole()
  const ports = { bare: await listen(bare), whole: await listen(listener), hono: await listen(hono()) }
  const names = ['bare', 'whole', 'hono'] as const
  const found = { bare: [] as Figures[], whole: [] as Figures[], hono: [] as Figures[] }
  const round = (name: (typeof names)[number]) => async () => {
    found[name].push(await drive(ports[name], token))
    return 0
  }
  for (const name of names) await drive(ports[name], token)
  await inTurns({ bare: round('bare'), whole: round('whole'), hono: round('hono') }, ROUNDS)
  const of = (name: (typeof names)[number], figure: keyof Figures) => found[name].map(one => one[figure])
  const shown = {
    bare: 'node:http + typia (baseline)',
    whole: 'the whole pipeline, authentication, 400 routes',
    hono: 'Hono + zod, no authentication, one route',
  }
  for (const name of names) {
    const [rate, p99, cpu, own] = [
      median(of(name, 'rate')),
      median(of(name, 'p99')),
      median(of(name, 'cpu')),
      median(of(name, 'own')),
    ]
    print(
      `request: ${shown[name]}`,
      `${Math.round(rate)}/s`,
      `p99 ${p99.toFixed(2)} ms, ${cpu.toFixed(1)} µs of processor a request, ${own.toFixed(1)} µs outside the system`,
    )
  }
  verdict('request: processor of the whole pipeline to bare', ratio(of('whole', 'cpu'), of('bare', 'cpu')), {
    most: 1.25,
    as: x,
  })
  verdict('request: p99 of the whole pipeline to bare', ratio(of('whole', 'p99'), of('bare', 'p99')), {
    most: 1.25,
    as: x,
  })
  verdict('request: throughput of the whole pipeline to Hono + zod', ratio(of('whole', 'rate'), of('hono', 'rate')), {
    least: 1.6,
    as: x,
  })
  print(
    'request: processor outside the system, the whole pipeline to bare',
    x(ratio(of('whole', 'own'), of('bare', 'own'))),
  )
  print('request: processor of Hono + zod to the whole pipeline', x(ratio(of('hono', 'cpu'), of('whole', 'cpu'))))
  process.exit(0)
}

if (process.argv[2] === 'load') load(JSON.parse(process.argv[3]!) as Load)
else await main()
