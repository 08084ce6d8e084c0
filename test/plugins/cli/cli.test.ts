import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { listedCommand, ProgramCommands, recordedArgs } from '../../../plugins/cli/commands.js'
import type { CliCommand, CliLine } from '../../../plugins/cli/contract.js'
import { createClient } from '../../../sdk/client.js'
import { allOf } from '../../support/all-of.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const daemon = await daemonWith(t, ['cli', 'inventory', 'git', 'workspace', 'secrets', 'activity', 'system', 'areas'])
const { client, url, workspace } = daemon

const until = async <T>(look: () => Promise<T> | T, holds: (value: T) => boolean): Promise<T> => {
  for (const end = Date.now() + 20_000; ; await delay(25)) {
    const value = await look()
    if (holds(value) || Date.now() > end) return value
  }
}
const lines = async (args: string[]): Promise<CliLine[]> => allOf(await client.call('POST /cli', { args }))
const refused = async (args: string[]) =>
  lines(args).then(
    () => undefined,
    (error: unknown) => error as { reason: string; message: string },
  )

/** The runs of the program that this process started, with their environment. */
const running = (): { pid: number; token: string }[] =>
  readdirSync('/proc').flatMap(name => {
    if (!/^\d+$/.test(name)) return []
    try {
      const [, token] = /(?:^|\0)SANDBOX_RUN_TOKEN=([^\0]+)/.exec(readFileSync(`/proc/${name}/environ`, 'latin1')) ?? []
      const [, daemonUrl] =
        /(?:^|\0)SANDBOX_DAEMON=([^\0]+)/.exec(readFileSync(`/proc/${name}/environ`, 'latin1')) ?? []
      return token !== undefined && daemonUrl === url ? [{ pid: Number(name), token }] : []
    } catch {
      return []
    }
  })

// A daemon that was killed left it.
mkdirSync(join(daemon.data, 'cli'), { recursive: true })
writeFileSync(join(daemon.data, 'cli/run-before.jsonl'), '')

t.test('without a credential, with a token and with a wrong body nothing is run', async t => {
  for (const [method, path] of [
    ['GET', '/cli'],
    ['POST', '/cli'],
    ['POST', '/cli/apply'],
    ['GET', '/cli/apply/events'],
  ])
    t.equal((await fetch(url + path, { method: method! })).status, 401)
  const minted = (scope: 'read' | 'land') => client.call('POST /system/control/tokens', { label: scope, scope })
  const reader = createClient({ url, token: (await minted('read')).token })
  t.match(await reader.call('GET /cli'), { program: 'sandbox', running: 0, apply: { state: 'idle' } })
  const lander = createClient({ url, token: (await minted('land')).token })
  await t.rejects(lander.call('POST /cli', { args: ['version'] }), {
    reason: 'forbidden',
    message: /control tokens cannot/,
  })
  await t.rejects(lander.call('POST /cli/apply', {}), { reason: 'forbidden', message: /control tokens cannot/ })
  await t.rejects(lander.call('GET /cli/apply/events'), { reason: 'forbidden', message: /control tokens cannot/ })
  for (const args of [
    [],
    Array.from({ length: 70 }, () => 'x'),
    ['x'.repeat(4097)],
    ['version', 'a\0b'],
    [1 as unknown as string],
  ])
    t.match(await refused(args), { reason: 'invalid' })
})

t.test('it says what the program can do, as the program says it', async t => {
  const { commands, version } = await client.call('GET /cli')
  t.same(
    commands.map(({ args, run, changes }) => [args.join(' '), run, changes]),
    [
      ['version', 'stream', false],
      ['commands', 'stream', false],
      ['doctor', 'stream', false],
      ['contract', 'stream', false],
      ['call', 'stream', false],
      ['deploy kinds', 'stream', false],
      ['deploy resolve', 'stream', false],
      ['deploy plan', 'stream', false],
      ['deploy apply', 'apply', true],
      ['deploy adopt', 'stream', false],
      ['deploy status', 'stream', false],
    ],
  )
  t.match(
    await lines(['version']),
    exactly(
      { kind: 'start', command: 'version' },
      { kind: 'result', version },
      { kind: 'exit', command: 'version', code: 0 },
    ),
  )
})

t.test('what a killed daemon left of runs goes with the first run', async t => {
  const left = join(daemon.data, 'cli/run-before.jsonl')
  t.equal(existsSync(left), false, 'earlier runs removed it')
})

t.test('arguments are passed as they are, and what leads elsewhere is refused', async t => {
  const made = join(workspace, 'made-by-a-shell')
  t.match(await refused(['version', `; touch ${made}`]), { reason: 'dependency', detail: { fields: { code: 2 } } })
  t.notOk(existsSync(made))
  for (const args of [['no-such'], ['login'], ['serve'], ['deploy'], ['deploy', 'render']])
    t.match(await refused(args), { reason: 'unprocessable', message: /expected one of the commands/ })
  t.match(await refused(['deploy', 'apply']), { reason: 'unprocessable', message: /POST \/cli\/apply/ })
  for (const flag of ['data', 'workspace', 'config', 'store', 'host', 'port', 'url', 'token', 'token-file'])
    for (const args of [[`--${flag}`, 'x'], [`--${flag}=x`]])
      t.match(await refused(['contract', ...args]), { reason: 'unprocessable', message: /elsewhere/ })
  t.match(await refused(['call', 'POST /needs', 'title=@/etc/passwd']), {
    reason: 'unprocessable',
    message: /names a file/,
  })
})

t.test('a run acts as who started it, short of what no token reaches, and only while it runs', async t => {
  t.match(await refused(['call', 'GET /system/control/tokens']), { message: /runs cannot make the call/ })
  t.match(await refused(['call', 'POST /secrets/reveal', 'key=X']), {
    reason: 'dependency',
    message: /runs cannot make the call secrets\.reveal/,
  })
  t.match(
    await lines(['call', 'GET /inventory']),
    exactly({ kind: 'start' }, { kind: 'result', answer: { ready: false } }, { kind: 'exit', code: 0 }),
  )
  writeFileSync(join(workspace, 'words.txt'), 'no JSON\n')
  t.match(
    await lines(['call', 'GET /workspace/raw', 'path=words.txt']),
    exactly({ kind: 'start' }, { kind: 'text', text: 'no JSON\n' }, { kind: 'exit', code: 0 }),
  )
  const leave = new AbortController()
  const stream = await client.call('POST /cli', { args: ['call', 'GET /events'] }, { signal: leave.signal })
  const reading = allOf(stream).catch(() => [])
  const [run] = await until(running, found => found.length > 0)
  const ask = () => fetch(`${url}/inventory`, { headers: { 'x-sandbox-run': run!.token } })
  t.equal((await ask()).status, 200)
  leave.abort()
  await reading
  t.same(await until(running, found => found.length === 0), [], 'nothing of it is left')
  t.equal((await until(ask, ({ status }) => status === 401)).status, 401)
  t.equal((await client.call('GET /cli')).running, 0)
})

t.test('four run at a time, and the fifth is refused', async t => {
  const leave = new AbortController()
  const args = ['call', 'GET /events']
  const four = [1, 2, 3, 4].map(async () => {
    for await (const _ of await client.call('POST /cli', { args }, { signal: leave.signal }));
  })
  await until(
    async () => (await client.call('GET /cli')).running,
    count => count === 4,
  )
  t.match(await refused(['version']), { reason: 'too-many', message: /at most 4 runs/ })
  leave.abort()
  await Promise.allSettled(four)
  t.equal(
    await until(
      async () => (await client.call('GET /cli')).running,
      count => count === 0,
    ),
    0,
  )
  t.match((await lines(['version'])).at(-1), { code: 0 })
})

t.test('a command that fails ends with its code and its last words, and is in the record', async t => {
  t.match(await refused(['deploy', 'resolve']), {
    reason: 'dependency',
    detail: { fields: { code: 5 } },
    message: /connect the card DevOps/,
  })
  await lines(['call', 'GET /workspace/file', 'path=secret-name.txt']).catch(() => {})
  const { events } = await client.call('GET /activity')
  const runs = events.filter(({ type }) => type === 'cli.run')
  t.match(runs[0], { actor: 'owner@sandbox.local', extra: { args: exactly('call', 'GET /workspace/file', 'path') } })
  t.match(runs[1], { actor: 'owner@sandbox.local', extra: { args: exactly('deploy', 'resolve'), code: 5 } })
})

t.test('without an apply the stream of events is over at once, and none starts without a configuration', async t => {
  t.same(await allOf(await client.call('GET /cli/apply/events')), [])
  await t.rejects(client.call('POST /cli/apply', {}), { reason: 'conflict', message: /connect the card DevOps/ })
  t.same((await client.call('GET /cli')).apply, { state: 'idle' })
})

t.test('where the program is missing, every call says so', async t => {
  const commands = new ProgramCommands(join(workspace, 'no-such-program.js'))
  await t.rejects(commands.facts(), { reason: 'missing-program', message: /sandbox is missing/ })
})

t.test('a command is found by its words, and values of calls are not recorded', t => {
  const listed = (...args: string[]): CliCommand => ({ args, summary: '', flags: [], run: 'stream', changes: false })
  t.same(listedCommand([listed('deploy', 'plan')], ['deploy', 'plan', 'x']).args, ['deploy', 'plan'])
  t.same(recordedArgs(['call', 'POST /needs', 'title=words', 'options:={"a":1}']), [
    'call',
    'POST /needs',
    'title',
    'options',
  ])
  t.same(recordedArgs(['deploy', 'plan']), ['deploy', 'plan'])
  t.end()
})
