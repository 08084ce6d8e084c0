// Measures a whole request against a bare server, Hono doing the same, and Koa used plainly: `node
// dist/test/bench/request.js [seconds per round]`.
import { fork } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer, type RequestListener } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import { getRequestListener } from '@hono/node-server'
import { Hono } from 'hono'
import Koa from 'koa'
import { koaBody } from 'koa-body'
import { z } from 'zod'
import { agent } from '../../plugins/agent/contract.js'
import { createAuth } from '../../kernel/auth/auth.js'
import { Boot } from '../../kernel/boot.js'
import { Calls } from '../../kernel/calls.js'
import { App } from '../../kernel/http/app.js'
import { CallFigures } from '../../kernel/http/call-figures.js'
import { OpenStreams } from '../../kernel/streams/open-streams.js'
import { createLog } from '../../kernel/logs/log.js'
import type { PluginManifest } from '../../kernel/manifest.js'
import type { KernelServices } from '../../kernel/services.js'
import type { Scope } from '../../sdk/types.js'
import { createHost } from '../../sdk/host.js'
import { RequestBodies } from '../../kernel/extensions/bodies.js'
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
 * Requests per second, their 99th percentile in ms, and the processor time of the server for one in µs.
 *
 * `own` is user time: system time contains waking sleeping clients, and a fast server's clients seldom sleep.
 */
interface Figures {
  readonly rate: number
  readonly p99: number
  readonly cpu: number
  readonly own: number
}

/** Loads one server over 32 connections from a separate process. */
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

const zodInput = z.object({
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

/** The paths of 400 more routes in 40 groups. */
const OTHERS = Array.from({ length: 400 }, (_, at) => ({
  group: `group${at % 40}`,
  part: `part${Math.floor(at / 40)}`,
}))

/** A common choice: a framework on the Fetch API, and a validator that needs its types declared again. */
const hono = (): RequestListener => {
  const app = new Hono()
  app.post('/agent', async context => {
    const found = zodInput.safeParse(await context.req.json())
    return found.success ? context.json(ANSWER) : context.json({ message: 'no' }, 400)
  })
  return getRequestListener(app.fetch)
}

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex')

/** The same framework doing what the daemon does: 400 routes, host, origin, a hashed token, a rate limit. */
const honoSame = (token: string): RequestListener => {
  const app = new Hono()
  const tokens = new Map([[hashOf(token), { role: 'drive' }]])
  const calls = new Map<string, { since: number; count: number; open: number }>()
  app.use(async (context, next) => {
    const host = context.req.header('host') ?? ''
    if (!/^(127\.0\.0\.1|\[::1\]|localhost)(:\d{1,5})?$/i.test(host)) return context.json({ message: 'host' }, 403)
    const origin = context.req.header('origin')
    if (origin !== undefined && origin !== `http://${host}`) return context.json({ message: 'origin' }, 403)
    const hash = hashOf(context.req.header('x-sandbox-control') ?? '')
    if (!tokens.has(hash)) return context.json({ message: 'credential' }, 401)
    const now = Date.now()
    const limit = calls.get(hash) ?? { since: now, count: 0, open: 0 }
    calls.set(hash, limit)
    if (now - limit.since > 1_000) Object.assign(limit, { since: now, count: 0 })
    if (limit.open++ > 1_000 || limit.count++ > 1e6) return context.json({ message: 'too many' }, 429)
    try {
      return await next()
    } finally {
      limit.open--
    }
  })
  app.post('/agent', async context => {
    const found = zodInput.safeParse(await context.req.json())
    return found.success ? context.json(ANSWER) : context.json({ message: 'no' }, 400)
  })
  for (const { group, part } of OTHERS) app.get(`/${group}/:id/${part}`, context => context.json({}))
  return getRequestListener(app.fetch)
}

/** Koa, its router and its body parser as their documentation shows them, with 400 routes and the same validator. */
const koaPlain = (): RequestListener => {
  const app = new Koa()
  const router = new Router()
  router.post('/agent', ctx => {
    const found = agent.request({ call: 'POST /agent', input: ctx.request.body })
    ctx.status = found.success ? 200 : 400
    ctx.body = found.success ? ANSWER : { message: 'no' }
  })
  for (const { group, part } of OTHERS)
    router.get(`/${group}/:id/${part}`, ctx => {
      ctx.body = {}
    })
  app.use(koaBody()).use(router.routes()).use(router.allowedMethods())
  return app.callback()
}

/** A minimal Koa application: one middleware that reads the body, checks it and answers. */
const koaLeast = (): RequestListener => {
  const app = new Koa()
  app.use(async ctx => {
    const parts: Buffer[] = []
    for await (const part of ctx.req) parts.push(part as Buffer)
    const found = agent.request({ call: 'POST /agent', input: JSON.parse(Buffer.concat(parts).toString()) })
    ctx.body = found.success ? ANSWER : { message: 'no' }
  })
  return app.callback()
}

/** The daemon's own pipeline with authentication and 400 routes in 40 groups. */
const whole = async (): Promise<{ listener: RequestListener; token: string }> => {
  const kernel = { calls: new Calls(false), boot: new Boot(() => {}) } as unknown as KernelServices
  const kept = new Map<string, unknown>()
  let time = Date.now()
  const auth = await createAuth({
    files: {
      read: async <T>(name: string) => kept.get(name) as T,
      write: async (name, value) => void kept.set(name, value),
      remove: async () => {},
    },
    // A clock that runs fast: the rate limit counts every call and never refuses one.
    now: () => (time += 100),
    identity: { claim: 'first', local: true },
    ended: () => {},
    say: () => {},
  })
  const owner = { kind: 'session', actor: 'bench', role: 'owner' } as const
  const { token } = await auth.handlers['kernel.token.mint'](
    { label: 'bench', scope: 'drive', createdBy: 'bench' },
    { caller: owner, signal: new AbortController().signal, trusted: true },
  )
  const app = new App({
    kernel,
    auth,
    streams: new OpenStreams(() => () => {}),
    bodies: new RequestBodies(),
    connections: new Connections(),
    log: createLog(true, () => {}),
    figures: new CallFigures(),
    http: {},
    uploads: '',
  })
  const place = {
    workspace: '',
    data: '',
    logs: '',
    folder: '',
    root: '',
    hidden: [],
    grants: { read: [], write: [] },
    limits: {},
    previews: { host: '127.0.0.1' },
    publicPages: {},
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
  return { listener: app.callback(), token }
}

const main = async (): Promise<void> => {
  const { listener, token } = await whole()
  const listeners = { bare, whole: listener, hono: hono(), same: honoSame(token), koa: koaPlain(), least: koaLeast() }
  const shown = {
    bare: 'node:http + typia (baseline)',
    whole: 'the whole pipeline, authentication, 400 routes',
    same: 'Hono + zod doing the same, 400 routes',
    koa: 'Koa, its router and body parser plainly, 400 routes',
    least: 'Koa with one step that reads and checks the body',
    hono: 'Hono + zod, no authentication, one route',
  }
  type Name = keyof typeof listeners
  const names = Object.keys(shown) as Name[]
  const ports = {} as { [name in Name]: number }
  const found = {} as { [name in Name]: Figures[] }
  const works = {} as { [name in Name]: () => Promise<number> }
  for (const name of names) {
    ports[name] = await listen(listeners[name])
    found[name] = []
    works[name] = async () => {
      found[name].push(await drive(ports[name], token))
      return 0
    }
    await drive(ports[name], token)
  }
  await inTurns(works, ROUNDS)
  const of = (name: Name, figure: keyof Figures) => found[name].map(one => one[figure])
  const against = (figure: keyof Figures, name: Name): number => ratio(of('whole', figure), of(name, figure))
  for (const name of names)
    print(
      `request: ${shown[name]}`,
      `${Math.round(median(of(name, 'rate')))}/s`,
      `p99 ${median(of(name, 'p99')).toFixed(2)} ms, ${median(of(name, 'cpu')).toFixed(1)} µs of processor a request, `
        + `${median(of(name, 'own')).toFixed(1)} µs outside the system`,
    )
  verdict('request: throughput of the whole pipeline to Hono + zod doing the same', against('rate', 'same'), {
    least: 1,
    as: x,
  })
  verdict('request: throughput of the whole pipeline to Koa used plainly', against('rate', 'koa'), {
    least: 2.5,
    as: x,
  })
  print(
    'request: throughput of Koa with one step to Hono + zod doing the same',
    x(ratio(of('least', 'rate'), of('same', 'rate'))),
  )
  print('request: processor of the whole pipeline to bare', x(against('cpu', 'bare')))
  print('request: p99 of the whole pipeline to bare', x(against('p99', 'bare')))
  print('request: processor outside the system, the whole pipeline to bare', x(against('own', 'bare')))
  process.exit(0)
}

if (process.argv[2] === 'load') load(JSON.parse(process.argv[3]!) as Load)
else await main()
