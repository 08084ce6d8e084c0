import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const TOKEN = `sbs_${'a'.repeat(22)}.${'b'.repeat(43)}`

/** The action of a daemon at SIGUSR2, as if the code of group agents did it. */
const DEEDS = {
  abort: 'process.abort()',
  throw: `throw new Error('broken, with ${TOKEN}')`,
  reject: "void Promise.reject(new Error('left alone'))",
  memory: 'const kept = []; for (;;) kept.push(new Array(1000).fill(kept.length))',
}

const daemonThat = async (t: Test, deed: keyof typeof DEEDS) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const code = join(folder, 'plugins', 'agents', 'deed.mjs')
  mkdirSync(join(code, '..'), { recursive: true })
  writeFileSync(code, `process.on('SIGUSR2', function deed() { ${DEEDS[deed]} })\n`)
  const options = [
    process.env.NODE_OPTIONS,
    '--import',
    pathToFileURL(code).href,
    ...(deed === 'memory' ? ['--max-old-space-size=128'] : []),
  ]
  return { where, daemon: await spawnDaemon(t, { ...where, env: { NODE_OPTIONS: options.filter(Boolean).join(' ') } }) }
}
const crashes = ({ data }: { data: string }): string[] => {
  const folder = join(data, 'logs', 'crash')
  return existsSync(folder)
    ? readdirSync(folder)
        .sort()
        .map(name => readFileSync(join(folder, name), 'utf8'))
    : []
}
const dead = async (daemon: RunningDaemon): Promise<void> => {
  const gone = once(daemon.process, 'exit')
  daemon.process.kill('SIGUSR2')
  await gone
}

// When memory runs out, the stack has only names of the engine, not of the running code.
for (const [deed, group, what, stack] of [
  ['abort', 'agents', /aborted/, /deed.*deed\.mjs/],
  ['memory', 'unknown', /Allocation failed/, /node::OOMErrorHandler/],
] as const) {
  t.test(
    `after a native ${deed === 'abort' ? 'abort' : 'out-of-memory error'} a crash file names time, group and stack`,
    { timeout: 60_000 },
    async t => {
      const { where, daemon } = await daemonThat(t, deed)
      const began = Date.now()
      await dead(daemon)
      const next = await spawnDaemon(t, where)
      await next.client.call('GET /agents')
      let files = (await next.client.call('GET /logs', { kind: 'crash' })).files
      while (files.length === 0) ({ files } = await next.client.call('GET /logs', { kind: 'crash' }))
      t.equal(files.length, 1)
      const { text } = await next.client.call('GET /logs/file', { name: files[0]!.name })
      t.match(text, new RegExp(`^time: (.*)\\ngroup: ${group}\\n`))
      t.ok(Date.parse(/^time: (.*)$/m.exec(text)![1]!) >= began - 1000)
      t.match(text, what)
      t.match(text, stack)
      t.match(text, `pid: ${daemon.pid}`)
      t.same(readdirSync(join(where.data, 'logs', '.native')), [], "Node's report of the environment is removed")
      await next.terminate()
      const third = await spawnDaemon(t, where)
      await third.client.call('GET /agents')
      await third.terminate()
      t.equal(crashes(where).length, 1, 'a crash is reported once, and a clean end is not')
    },
  )
}

t.test('a killed daemon is reported with its last log lines, without a reason', async t => {
  const { where, daemon } = await daemonThat(t, 'abort')
  await daemon.kill9()
  const next = await spawnDaemon(t, where)
  await next.client.call('GET /agents')
  await next.terminate()
  t.match(crashes(where), exactly(/^time: .*\ngroup: unknown\nwhat: the process ended without a report/))
  t.match(crashes(where)[0], `pid: ${daemon.pid}`)
})

t.test('an uncaught error is in a crash file at once, without credentials, and the daemon keeps running', async t => {
  for (const deed of ['throw', 'reject'] as const) {
    await t.test(deed, async t => {
      const { where, daemon } = await daemonThat(t, deed)
      daemon.process.kill('SIGUSR2')
      let { files } = await daemon.client.call('GET /logs', { kind: 'crash' })
      while (files.length === 0) ({ files } = await daemon.client.call('GET /logs', { kind: 'crash' }))
      const [text] = crashes(where)
      t.match(
        text,
        deed === 'throw'
          ? /group: agents\nwhat: uncaught exception\n[^]*broken, with/
          : /what: unhandled promise rejection\n[^]*left alone/,
      )
      t.notMatch(text, 'bbbb')
      t.equal(statSync(join(where.data, 'logs', files[0]!.name)).mode & 0o777, 0o600)
      t.equal(await daemon.terminate(), 0)
    })
  }
})
