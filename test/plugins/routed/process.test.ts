import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { PassThrough } from 'node:stream'
import { TranslatorProcess, type TranslatorProcessDeps } from '../../../plugins/routed/process/translator-process.js'
import type { PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import { until } from '../../support/browser/browser.js'
import { exactly } from '../../support/lists.js'
import { routedWorld, type Access } from './support.js'

const LIMITS = { startMs: 5_000, firstWaitMs: 5, longestWaitMs: 40, longLifeMs: 60_000, idleMs: 20 }

// Waits of a daemon do not keep a process alive: its server does.
const alive = setInterval(() => {}, 1_000)
t.teardown(() => clearInterval(alive))

/** A process of which a test says what happens. */
class FakeProcess {
  readonly output = new PassThrough()
  readonly input = new PassThrough()
  readonly #end = Promise.withResolvers<string>()
  readonly ended = this.#end.promise
  readonly pid = 1
  over = false
  errors = 'the last words'
  die(how = 'was ended by SIGKILL'): void {
    this.over = true
    this.output.end()
    this.#end.resolve(how)
  }
  async end(): Promise<void> {
    this.die('ended')
  }
  listen(): void {
    this.output.write('{"news":"listening","port":4242}\n')
  }
}

const supervised = (more: Partial<TranslatorProcessDeps> = {}) => {
  const started: FakeProcess[] = []
  const ports: number[] = []
  const happened: string[] = []
  const waits: number[] = []
  let wanted = true
  const process: TranslatorProcess = new TranslatorProcess({
    limits: LIMITS,
    start: async port => {
      const next = new FakeProcess()
      started.push(next)
      ports.push(port)
      return next as unknown as PipedProcess
    },
    healthy: async () => true,
    wanted: () => wanted,
    table: () => ({ providers: [], grants: [] }),
    heard: () => {},
    started: async () => {},
    changed: () => {
      const { state } = process
      if (state.state === 'failed') waits.push(Math.round((state.nextTryAt - Date.now()) / 5) * 5)
    },
    happened: (type, detail) => void happened.push(detail === undefined ? type : `${type}: ${detail}`),
    ...more,
  })
  return { process, started, ports, happened, waits, want: (now: boolean) => (wanted = now) }
}

t.test('a process that dies is started again after growing waits, at its port', async t => {
  const { process, started, ports, happened, waits } = supervised()
  process.sync()
  for (let life = 1; life <= 5; life++) {
    await until(() => started.length === life)
    started.at(-1)!.listen()
    await until(() => process.state.state === 'running')
    started.at(-1)!.die()
    await until(() => waits.length === life)
  }
  t.same(waits, [5, 10, 20, 40, 40])
  t.match(process.detail, /was ended by SIGKILL: the last words/)
  t.ok(process.restarts >= 4)
  t.same(ports.slice(0, 3), [0, 4242, 4242])
  const failed = 'translator.failed: it was ended by SIGKILL: the last words'
  t.same(happened.slice(0, 4), [failed, 'translator.running', failed, 'translator.running'])
  await process.close()
  t.equal(process.state.state, 'stopped')
})

t.test('one that never listens has failed, once for a series', async t => {
  const { process, started, happened } = supervised({ limits: { ...LIMITS, startMs: 20 } })
  process.sync()
  await until(() => started.length === 3)
  t.match(process.detail, /did not answer within/)
  t.match(happened, exactly(/^translator\.failed/))
  t.equal(await process.whenRunning(5), undefined)
  await process.close()
})

t.test('it stops when there is nothing to serve, and starts when there is', async t => {
  const { process, started, want } = supervised()
  process.sync()
  await until(() => started.length === 1)
  started[0]!.listen()
  t.equal(await process.whenRunning(5_000), 4242)
  want(false)
  await until(() => process.state.state === 'stopped')
  t.equal(process.restarts, 0)
  want(true)
  process.sync()
  await until(() => started.length === 2)
  await process.close()
})

/** The processes of the translator that this process started. */
const translators = (): number[] =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => {
      try {
        const parent = /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        return Number(parent) === process.pid && /translator-child/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
      } catch {
        return false
      }
    })

const chat = async ({ baseUrl, bearer, model }: Access): Promise<number> => {
  const body = JSON.stringify({ model, messages: [{ role: 'user', content: 'x' }] })
  const headers = { authorization: `Bearer ${bearer}` }
  return (await fetch(`${baseUrl}/v1/chat/completions`, { method: 'POST', headers, body })).status
}

t.test('the process listens on loopback alone, holds no credential, and is back after a kill', async t => {
  const it = await routedWorld(t, { providers: { acme: {} } })
  await it.signIn('acme')
  const access = await it.access('acme')
  t.equal(await chat(access), 200)
  const [pid] = translators()
  const { port } = new URL(access.baseUrl)
  const listening = execFileSync('ss', ['-ltnH'], { encoding: 'utf8' })
    .split('\n')
    .filter(line => line.includes(`:${port} `))
  t.match(listening, exactly(new RegExp(`127\\.0\\.0\\.1:${port} `)))
  const secrets = [...it.server.used, access.bearer]
  t.ok(secrets.length > 1)
  const seen = ['environ', 'cmdline'].map(name => readFileSync(`/proc/${pid}/${name}`, 'utf8')).join('\n')
  const files = readdirSync(`/proc/${pid}/fd`).map(fd => readlinkSync(`/proc/${pid}/fd/${fd}`))
  t.same(
    files.filter(file => file.startsWith(it.folder)),
    [],
    'no file of the daemon is open in it',
  )
  const logs = readdirSync(join(it.folder, 'data'), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.log'))
    .map(name => readFileSync(join(it.folder, 'data', name), 'utf8'))
  for (const secret of secrets) t.notOk([seen, ...logs].some(text => text.includes(secret)))

  process.kill(pid!, 'SIGKILL')
  await until(async () => (await it.call('GET /translator')).state === 'failed')
  t.match(await it.call('GET /translator'), { detail: /SIGKILL/, nextTryAt: Number })
  const next = await it.access('acme')
  t.equal(next.baseUrl, access.baseUrl, 'it is at the same address')
  t.equal(await chat(next), 200)
  t.equal(await chat(access), 200, 'the bearer of a running turn holds')
  t.match(await it.call('GET /translator'), { state: 'running', restarts: 1 })
  t.match(
    it.recorded.filter(({ type }) => type.startsWith('translator.')).map(({ type }) => type),
    exactly('translator.failed', 'translator.running'),
  )
})
