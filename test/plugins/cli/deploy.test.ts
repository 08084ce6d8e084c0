import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { ApplyRun, CliLine } from '../../../plugins/cli/contract.js'
import type { InventoryEntry } from '../../../plugins/inventory/contract.js'
import { allOf } from '../../support/all-of.js'
import { endTerminals, folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { commandLineOf, deployTarget, pageApp, withTarget } from '../../support/servers/deploy-target.js'
import { sshKey } from '../../support/ssh-server.js'

const SECRET = 'plain-words-of-a-secret-84'
const PORT = 18_080
const LONG_MS = 60_000

const until = async <T>(look: () => Promise<T> | T, holds: (value: T) => boolean): Promise<T> => {
  for (const end = Date.now() + LONG_MS; ; await delay(50)) {
    const value = await look()
    if (holds(value) || Date.now() > end) return value
  }
}

interface Streamed {
  readonly lines: CliLine[]
  readonly ids: string[]
  readonly done?: { readonly [field: string]: unknown }
  readonly error?: { readonly message: string; readonly code?: number }
}

/** Reads a stream as a client does that resumes nothing. */
const streamed = async (
  { url, session }: Pick<RunningDaemon, 'url' | 'session'>,
  path: string,
  { body, lastId, most = Infinity }: { readonly body?: object; readonly lastId?: string; readonly most?: number } = {},
): Promise<Streamed> => {
  const leave = new AbortController()
  const answer = await fetch(`${url}${path}`, {
    method: body ? 'POST' : 'GET',
    signal: leave.signal,
    headers: {
      authorization: `Bearer ${session}`,
      'content-type': 'application/json',
      ...(lastId !== undefined && { 'last-event-id': lastId }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) return { lines: [], ids: [], error: (await answer.json()) as { message: string } }
  const [lines, ids]: [CliLine[], string[]] = [[], []]
  let text = ''
  try {
    for await (const piece of answer.body!.pipeThrough(new TextDecoderStream())) {
      const events = (text + piece).split('\n\n')
      text = events.pop()!
      for (const event of events) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(event)?.[1]
        const data = field('data')
        if (data === undefined) continue
        const value = JSON.parse(data) as CliLine
        if (field('event') === 'done') return { lines, ids, done: value }
        if (field('event') === 'error') return { lines, ids, error: value as unknown as { message: string } }
        lines.push(value)
        ids.push(field('id') ?? '')
        if (lines.length >= most) return { lines, ids }
      }
    }
    return { lines, ids }
  } finally {
    leave.abort()
  }
}

t.test('what the inventory declares runs on a machine, and goes with its entry', withTarget(), async t => {
  const whole = t
  const target = await deployTarget(t)
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'a.txt': 'a\n' })
  t.teardown(() => endTerminals(where.data))
  pageApp(join(where.workspace, 'shop'), 'first')
  let daemon = await spawnDaemon(t, where)
  const call: RunningDaemon['client']['call'] = (...args) => daemon.client.call(...args)
  for (const path of ['intent', 'desired-state']) await call('POST /workspace/repos/init', { path })
  const home: InventoryEntry = {
    kind: 'backend',
    provider: 'host',
    name: 'home',
    values: { address: target.address, port: target.port, user: 'root', hostKey: target.hostKey },
  }
  const shop: InventoryEntry = {
    kind: 'app',
    name: 'shop',
    values: { source: 'shop', port: 8080, publish: PORT },
    on: 'home',
    expose: 'home',
  }
  const plan = async () => {
    const { lines, error } = await streamed(daemon, '/cli', { body: { args: ['deploy', 'plan'] } })
    t.equal(error, undefined)
    return Object.fromEntries(lines.flatMap(({ id, action }) => (action === undefined ? [] : [[String(id), action]])))
  }
  const over = async (): Promise<{ lines: CliLine[]; apply: ApplyRun }> => {
    const { lines, done } = await streamed(daemon, '/cli/apply/events')
    return { lines, apply: done!.apply as ApplyRun }
  }
  const apply = async () => {
    await call('POST /cli/apply', {})
    return over()
  }
  const lock = () => target.run('flock -n ~/.local/share/sandbox-deploy/*/apply.lock echo free || echo held')
  const applyState = async () => (await call('GET /cli')).apply

  await t.rejects(call('POST /cli/apply', {}), { reason: 'conflict', message: /no deployment configuration/ })
  await call('POST /inventory', home)
  await call('POST /inventory', shop)
  await t.rejects(call('POST /cli/apply', {}), { reason: 'conflict', message: /not stored: HOST_SSH_KEY_HOME$/ })
  await call('POST /secrets', { key: 'HOST_SSH_KEY_HOME', value: target.key })
  await call('POST /secrets', { key: 'APP_ENV_SHOP', value: `GREETING=${SECRET}\n` })

  await t.test('the plan says that it is created, and in which terminal it was worked out', async t => {
    const { lines, done } = await streamed(daemon, '/cli', { body: { args: ['deploy', 'plan'] } })
    t.match(lines[0], { kind: 'terminal', session: /^job-cli-\d$/ })
    t.match(lines.at(-1), { kind: 'exit', command: 'deploy plan', code: 0 })
    t.match(lines[4], { kind: 'node', phase: 'plan', id: 'app.shop', type: 'app', action: 'create' })
    t.same(done, { code: 0 })
  })

  await t.test('an apply of anything else than the plan showed is refused, and nothing runs', async t => {
    const { lines } = await streamed(daemon, '/cli', { body: { args: ['deploy', 'plan'] } })
    const { digest } = lines.findLast(({ kind }) => kind === 'result') as { digest?: string }
    t.match(digest, /^[0-9a-f]{64}$/)
    await call('POST /secrets', { key: 'APP_ENV_SHOP', value: 'GREETING=another\n' })
    await call('POST /cli/apply', { expect: digest! })
    const other = await over()
    t.match(other.apply, { state: 'failed', command: 'apply' })
    t.match(JSON.stringify(other.lines), /no longer what the plan showed/)
    t.same(await plan(), { 'app.shop': 'create' })
    await call('POST /secrets', { key: 'APP_ENV_SHOP', value: `GREETING=${SECRET}\n` })
  })

  await t.test('followers of an apply see the same lines once and in order, also one that reconnects', async t => {
    await call('POST /cli/apply', {})
    await call('POST /cli/apply', {})
    const first = streamed(daemon, '/cli/apply/events')
    const start = await streamed(daemon, '/cli/apply/events', { most: 6 })
    const rest = await streamed(daemon, '/cli/apply/events', { lastId: start.ids.at(-1)! })
    const all = await first
    t.same([...start.lines, ...rest.lines], all.lines)
    t.same(
      all.ids,
      all.lines.map((_, at) => String(at + 1)),
    )
    t.match(all.done, { apply: { state: 'succeeded', command: 'adopt', code: 0, session: 'job-deployment' } })
    t.equal(all.lines.filter(({ kind, command }) => kind === 'start' && command === 'deploy resolve').length, 1)
    t.equal(await target.get(PORT), 'first')
    t.notOk(JSON.stringify(all.lines).includes(SECRET))
    const { events } = await call('GET /activity')
    t.notOk(JSON.stringify(events).includes(SECRET))
    t.same(
      events.filter(({ type }) => type.startsWith('cli.apply.')).map(({ type, extra }) => [type, extra]),
      [
        ['cli.apply.ended', { state: 'succeeded', code: 0 }],
        ['cli.apply.started', undefined],
        ['cli.apply.ended', { state: 'failed', code: 5 }],
        ['cli.apply.started', undefined],
      ],
    )
    t.equal(
      readFileSync(
        join(target.home, '.local/share/sandbox-deploy', deployedAs(target.home), 'shop/environment'),
        'utf8',
      ),
      `GREETING=${SECRET}\n`,
    )
    t.same(await plan(), { 'app.shop': 'none' })
  })

  await t.test('what was stopped by hand, and what changed, is brought up again', async t => {
    target.run('podman stop -t 0 $(podman ps -q)')
    t.same(await plan(), { 'app.shop': 'update' })
    t.match((await apply()).apply, { state: 'succeeded' })
    t.equal(await target.get(PORT), 'first')
    writeFileSync(join(where.workspace, 'shop/index.html'), 'second')
    t.same(await plan(), { 'app.shop': 'update' })
    t.match((await apply()).apply, { state: 'succeeded' })
    t.equal(await target.get(PORT), 'second')
  })

  await t.test('a key that does not fit fails in the words of ssh, and leaves no lock', async t => {
    await call('POST /secrets', { key: 'HOST_SSH_KEY_HOME', value: sshKey(folder, 'other').private })
    const { lines, apply: ended } = await apply()
    t.match(
      lines.find(({ state }) => state === 'failed'),
      { phase: 'apply', id: 'host.home', detail: /Permission denied \(publickey\)/ },
    )
    t.match(ended, { state: 'failed', command: 'apply', code: 1 })
    t.match(lock(), 'free')
    await call('POST /secrets', { key: 'HOST_SSH_KEY_HOME', value: target.key })
  })

  /** Starts an apply that has something to do, and waits until it does it. */
  const begun = async (page: string): Promise<number> => {
    writeFileSync(join(where.workspace, 'shop/index.html'), page)
    await call('POST /cli/apply', {})
    const { processes } = await until(
      async () => ({ processes: jobsOf(where.data) }),
      ({ processes: found }) => found.length > 0,
    )
    return processes[0]!
  }

  await t.test('a job goes on while the daemon is killed, and the next one adopts it', async t => {
    const letGo = target.hold()
    const pid = await begun('third')
    const before = await streamed(daemon, '/cli/apply/events', { most: 4 })
    await daemon.kill9()
    daemon = await spawnDaemon(whole, where)
    t.match(commandLineOf(pid), /job-child/, 'the process is the same')
    t.match(await applyState(), { state: 'running' })
    letGo()
    const rest = await streamed(daemon, '/cli/apply/events', { lastId: before.ids.at(-1)! })
    t.match(rest.done, { apply: { state: 'succeeded', code: 0 } })
    const { lines } = await over()
    t.same([...before.lines, ...rest.lines], lines)
    t.equal(await target.get(PORT), 'third')
    t.match(await until(applyState, ({ endedAt }) => endedAt !== undefined), { state: 'succeeded' })
  })

  await t.test('a job that is killed is interrupted, and its followers end', async t => {
    const letGo = target.hold()
    const pid = await begun('fourth')
    const following = streamed(daemon, '/cli/apply/events')
    process.kill(pid, 'SIGKILL')
    t.match((await following).done, { apply: { state: 'interrupted' } })
    t.match(await applyState(), { state: 'interrupted', session: 'job-deployment' })
    letGo()
    t.match(await until(lock, said => said.includes('free')), 'free')
    t.match((await apply()).apply, { state: 'succeeded' }, 'the next apply finishes it')
    t.equal(await target.get(PORT), 'fourth')
  })

  await t.test('ending the terminal of a job ends it, and releases its lock', async t => {
    const letGo = target.hold()
    await begun('fifth')
    await call('DELETE /system/terminals/{name}', { name: 'job-deployment' })
    t.match(await until(applyState, ({ state }) => state !== 'running'), { state: 'interrupted' })
    t.same(jobsOf(where.data), [])
    letGo()
    t.match(await until(lock, said => said.includes('free')), 'free')
  })

  await t.test('nothing of a plan is left when its reader leaves', async t => {
    const { lines } = await streamed(daemon, '/cli', { body: { args: ['deploy', 'plan'] }, most: 2 })
    t.match(lines, exactly({ kind: 'terminal' }, { kind: 'start' }))
    t.same(
      await until(
        () => jobsOf(where.data),
        found => found.length === 0,
      ),
      [],
    )
    t.equal(
      await until(
        async () => (await call('GET /cli')).running,
        count => count === 0,
      ),
      0,
    )
    const files = () => readdirSync(join(where.data, 'cli')).filter(name => name.startsWith('run-'))
    t.same(await until(files, found => found.length === 0), [])
  })

  await t.test('a service that is connected is declared and runs, and its connection says so', async t => {
    await allOf(await call('POST /capabilities', { id: 'devops', kind: 'devops', config: {} }))
    // An image that the machine has: nothing is downloaded.
    const image = 'localhost/page:1'
    const file = join(target.home, '.local/share/page')
    pageApp(file, 'of a service')
    target.run(`podman build -q -t ${image} ${file}`)
    const config = { service: 'container', on: 'home', expose: 'home', image, port: '8080', publish: String(PORT + 1) }
    const frames = await allOf(await call('POST /capabilities', { id: 'page', kind: 'service', config }))
    t.match(frames.at(-1), { kind: 'result', status: { state: 'active' } })
    t.ok(frames.some(frame => frame.kind === 'log' && frame.message === 'apply service.page create'))
    t.equal(await target.get(PORT + 1), 'of a service')
    t.match(await call('GET /capabilities/{id}/status', { id: 'page' }), { state: 'active' })
    await call('DELETE /capabilities/{id}', { id: 'page' })
    t.match(await plan(), { 'node.page': 'delete', 'app.shop': String })
  })

  await t.test('an entry that is removed goes from the machine with its container and files', async t => {
    await call('DELETE /inventory/{name}', { name: 'shop' })
    t.same(await plan(), { 'node.page': 'delete', 'node.shop': 'delete' })
    // The machine may go from the configuration too, as the last entry: what ran there is known.
    await call('DELETE /inventory/{name}', { name: 'home' })
    t.match((await apply()).apply, { state: 'succeeded' })
    t.equal(target.run('podman ps -aq').trim(), '')
    const left = join(target.home, '.local/share/sandbox-deploy', deployedAs(target.home))
    t.same(readdirSync(left).sort(), ['apply.lock', 'work.lock'])
    t.notOk(existsSync(join(left, 'shop')))
  })
})

const deployedAs = (home: string): string => readdirSync(join(home, '.local/share/sandbox-deploy'))[0]!

/** The processes of jobs of a data folder. */
const jobsOf = (data: string): number[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .map(Number)
    .filter(pid => {
      const words = commandLineOf(pid)
      return words.startsWith(process.execPath) && words.includes('job-child') && words.includes(data)
    })
