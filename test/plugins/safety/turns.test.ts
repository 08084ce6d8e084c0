import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { framesOf, runTurn as runTurnOn } from '../../support/turns.js'
import { policyOf, rawLog, ruleOf, verdicts } from './support.js'

/** A turn of the scripted agent, which is not the default where a model server is connected. */
const runTurn = (client: Support['client'], conversationId: string, prompt: string, options: object = {}) =>
  runTurnOn(client, conversationId, prompt, { agent: 'script', ...options })

const TAKEN = new Set<string>()
let daemon: Support
let server: Awaited<ReturnType<typeof modelServer>>
t.before(async () => {
  server = await modelServer(t, 'openai', [
    { text: ['{"verdict":"deny","reason":"it deletes a build","quote":"Never delete builds."}'] },
    { text: ['{"verdict":"allow","reason":"fine"}'] },
    { text: ['Sure! {"verdict":"allow","reason":"it says so"}'] },
    { silent: true },
  ])
  const target = server.target()
  daemon = await daemonWith(t, ['safety', 'settings', 'agent', 'secrets', 'activity', 'usage', 'system'], {
    fakes: {
      'endpoints.choices': () => ({
        endpoints: [
          { id: target.id, label: target.label, models: target.models, default: target.default, ready: true },
        ],
      }),
      'endpoints.target': () => target,
    },
  })
})

const settings = (set: object) => daemon.client.call('POST /settings/patch', { set })
const reset = async () => {
  await daemon.client.call('POST /settings/patch', { unset: ['commandRules', 'network'] })
  await daemon.client.call('POST /safety', { policy: policyOf() })
}
/** What the calls of a turn came to, in order. */
const results = (frames: readonly Frame[]): string[] =>
  frames.flatMap(frame =>
    frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed')
      ? [frame.status]
      : [],
  )
const said = (frames: readonly Frame[]): string =>
  JSON.stringify(frames.filter(({ kind }) => kind === 'tool_call_update'))
const fresh = (name: string): string => {
  if (TAKEN.has(name)) throw new Error(`the conversation ${name} is taken`)
  TAKEN.add(name)
  return name
}
const made = (name: string): string => {
  const folder = join(daemon.workspace, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'a.txt'), 'a')
  return folder
}

t.test('without any model forced pushes are refused by the settings, and a plain push runs', async t => {
  await reset()
  const { workspace } = daemon
  inGit(workspace, 'init', '-q', '--bare', 'remote.git')
  inGit(workspace, 'remote', 'add', 'origin', './remote.git')
  inGit(workspace, 'push', '-q', 'origin', 'HEAD:main')
  const ref = () => inGit(join(workspace, 'remote.git'), 'rev-parse', 'main').trim()
  const before = ref()
  await settings({ commandRules: { 'git.destructive': 'deny' } })
  inGit(workspace, 'commit', '-q', '--allow-empty', '-m', 'second')
  const denied = [
    'git push --force origin HEAD:main',
    'git  push "-f" origin HEAD:main',
    "sh -c 'git push --force-with-lease origin HEAD:main'",
  ]
  const frames = await runTurn(daemon.client, fresh('push'), denied.map(line => `run ${line}`).join('\n'))
  t.same(results(frames), ['failed', 'failed', 'failed'])
  t.match(said(frames), /Do not look for a way round it/)
  t.equal(ref(), before)
  t.match(
    (await verdicts(daemon, 3)).map(({ by, outcome }) => `${by} ${outcome}`),
    exactly(...Array<string>(3).fill('commandRules refused')),
  )
  const allowed = await runTurn(
    daemon.client,
    fresh('push-2'),
    'run git push -q origin HEAD:main\nrun echo x | grep -f push -q; true',
  )
  t.same(results(allowed), ['completed', 'completed'])
  t.not(ref(), before)
})

t.test(
  'a held command asks: no keeps the file, once removes it, always lets the class through until the turn ends',
  async t => {
    await reset()
    await settings({ commandRules: { 'files.destructive': 'hold' } })
    const folder = made('held')
    const asked = async (conversationId: string, commands: string[], decisions: ('deny' | 'once' | 'always')[]) => {
      await daemon.client.call('POST /agent', {
        conversationId,
        agent: 'script',
        prompt: commands.map(line => `run ${line}`).join('\n'),
      })
      const watched = framesOf(daemon.client, conversationId)
      for (const decision of decisions) {
        const { requestId } = await watched.until(({ kind }) => kind === 'permission')
        await daemon.client.call('POST /agent/reply', { kind: 'permission', requestId, decision })
      }
      return (await watched.all()).map(({ event }) => event)
    }
    const cards = (frames: readonly Frame[]) => frames.filter(({ kind }) => kind === 'permission').length
    t.same(results(await asked(fresh('held-1'), ['rm -rf held'], ['deny'])), ['failed'])
    t.ok(existsSync(folder))
    t.match(
      await verdicts(daemon, 1),
      exactly({ outcome: 'declined', answeredBy: 'owner@sandbox.local', verdict: 'hold' }),
    )
    t.same(results(await asked(fresh('held-2'), ['rm -rf held'], ['once'])), ['completed'])
    t.notOk(existsSync(folder))
    t.match(await verdicts(daemon, 1), exactly({ outcome: 'approved', answeredBy: 'owner@sandbox.local' }))
    const always = await asked(fresh('held-3'), ['rm -rf a1', 'rm -fr a2'], ['always'])
    t.same([cards(always), results(always)], [1, ['completed', 'completed']])
    t.equal(cards(await asked('held-3', ['rm -rf a3'], ['once'])), 1, 'the next turn asks again')
  },
)

t.test('a turn that nobody watches is refused what is held, and goes on', async t => {
  await reset()
  await settings({ commandRules: { 'files.destructive': 'hold' } })
  const folder = made('alone')
  const frames = await runTurn(daemon.client, fresh('alone-1'), 'run rm -rf alone\nrun echo on', { unattended: true })
  t.same(results(frames), ['failed', 'completed'])
  t.match(said(frames), /nobody watches this turn/)
  t.ok(existsSync(folder))
  t.match(await verdicts(daemon, 1), exactly({ outcome: 'refused', unattended: true }))
})

t.test('a stopped turn closes the entry of its held command as refused', async t => {
  await reset()
  await settings({ commandRules: { 'files.destructive': 'hold' } })
  await daemon.client.call('POST /agent', { conversationId: fresh('stopped'), agent: 'script', prompt: 'run rm -rf x' })
  const watched = framesOf(daemon.client, 'stopped')
  await watched.until(({ kind }) => kind === 'permission')
  t.match(await verdicts(daemon, 1), exactly({ outcome: 'pending' }))
  await daemon.client.call('POST /agent/stop', { conversationId: 'stopped' })
  await watched.all()
  t.match(await verdicts(daemon, 1), exactly({ outcome: 'refused' }))
})

t.test('a turn that fetched a page is held at secrets, and a clean one is not', async t => {
  await reset()
  const page = createServer((_, answer) => answer.end('<p>hello</p>')).listen(0, '127.0.0.1')
  await once(page, 'listening')
  t.teardown(() => page.close())
  const { port } = page.address() as AddressInfo
  await settings({ network: 'shared' })
  writeFileSync(join(daemon.workspace, '.env'), 'A=1\n')
  const lines = `fetch http://localhost:${port}/\nrun cat .env`
  const dirty = await runTurn(daemon.client, fresh('page-1'), lines, { unattended: true })
  t.same(results(dirty), ['completed', 'failed'], said(dirty).slice(0, 600))
  t.match(await verdicts(daemon, 1), exactly({ by: 'outside-floor', outside: `Fetch localhost:${port}` }))
  t.same(results(await runTurn(daemon.client, fresh('page-2'), 'run cat .env', { unattended: true })), ['completed'])
})

t.test('the judge is stricter than the rules and never less strict, and only its exact form counts', async t => {
  await reset()
  const judge = { ...policyOf().judge, mode: 'on' as const, ask: ['files.destructive' as const], timeoutMs: 1_000 }
  const policy = policyOf([], { prose: 'Never delete builds.', judge })
  await daemon.client.call('POST /safety', { policy })
  t.match(await daemon.client.call('GET /safety'), { judge: { available: true, model: /^endpoint\// } })
  made('build')
  const turn = async (name: string) =>
    results(await runTurn(daemon.client, fresh(name), 'run rm -rf build', { unattended: true }))
  t.same(await turn('judge-1'), ['failed'])
  t.match(
    await verdicts(daemon, 1),
    exactly({ by: 'judge', verdict: 'deny', judge: { quote: 'Never delete builds.' }, reason: /Never delete builds/ }),
  )
  t.match(server.requests[0]?.text, /<subject>/)
  await settings({ commandRules: { 'files.destructive': 'deny' } })
  t.same(await turn('judge-2'), ['failed'], 'the settings deny it without asking')
  t.equal(server.requests.length, 1)
  await daemon.client.call('POST /settings/patch', { unset: ['commandRules'] })
  t.same(await turn('judge-3'), ['completed'])
  t.match(await verdicts(daemon, 1), exactly({ verdict: 'allow', judge: { verdict: 'allow' }, outcome: 'ran' }))
  t.same(await turn('judge-4'), ['failed'], 'words around the verdict are no answer, so onFailure decides')
  const before = performance.now()
  t.same(await turn('judge-5'), ['failed'], 'and so it does when the server is silent')
  t.ok(performance.now() - before < 10_000)
  t.match(await verdicts(daemon, 1), exactly({ by: 'judge', verdict: 'hold', reason: /no model judged it in time/ }))
  const asked = server.requests.length
  const replayed = await daemon.client.call('POST /safety/replay', { policy })
  t.ok(replayed.unjudged > 0, 'entries without a recorded answer are marked')
  t.equal(server.requests.length, asked, 'a replay asks no model')
})

t.test('a replay lists just what would change, and the saved policy then decides so', async t => {
  await reset()
  await settings({ commandRules: { 'files.destructive': 'hold' } })
  const since = Date.now()
  const plain = ['echo 1', 'echo 2', 'git reset -q --hard', 'git status -s', 'true', 'ls', 'git tag -f v1']
  const held = ['rm -rf r1', 'rm -rf r2', 'rm -rf keep']
  const prompt = [...plain, ...held].map(line => `run ${line}`).join('\n')
  t.equal(results(await runTurn(daemon.client, fresh('replay-1'), prompt, { unattended: true })).length, 10)
  const policy = policyOf([
    ruleOf('no-git', { match: { class: 'git.destructive' } }),
    ruleOf('temporary', { match: { regex: '^rm -rf r[0-9]$' }, verdict: 'allow' }),
  ])
  const file = join(daemon.workspace, '.sandbox/config/safety.json')
  const [log, saved] = [rawLog(daemon.data), readFileSync(file, 'utf8')]
  const replay = await daemon.client.call('POST /safety/replay', { policy, since })
  const changes = replay.changes
    .map(({ subject, was, now, ruleId }) => [subject.text, was, now, ruleId].join(' | '))
    .sort()
  t.same(changes, [
    'git reset -q --hard | allow | deny | no-git',
    'git tag -f v1 | allow | deny | no-git',
    'rm -rf r1 | hold | allow | temporary',
    'rm -rf r2 | hold | allow | temporary',
  ])
  t.match([replay.replayed, replay.truncated], exactly(10, false))
  t.same([rawLog(daemon.data).length >= log.length, readFileSync(file, 'utf8')], [true, saved])
  await daemon.client.call('POST /safety', { policy })
  const again = await runTurn(daemon.client, fresh('replay-2'), prompt, { unattended: true })
  const now = [
    'completed',
    'completed',
    'failed',
    'completed',
    'completed',
    'completed',
    'failed',
    'completed',
    'completed',
    'failed',
  ]
  t.same(results(again), now)
})

t.test('a command that was held when the daemon was killed reads refused, and did not run', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  mkdirSync(data, { mode: 0o700 })
  makeWorkspace(workspace, { 'keep/a.txt': 'a' })
  const first = await spawnDaemon(t, { workspace, data })
  await first.client.call('POST /settings/patch', { set: { commandRules: { 'files.destructive': 'hold' } } })
  await first.client.call('POST /agent', { conversationId: 'c', prompt: 'run rm -rf keep' })
  await framesOf(first.once, 'c').until(({ kind }) => kind === 'permission')
  t.match(await verdicts(first as unknown as Support, 1), exactly({ outcome: 'pending' }))
  await first.kill9()
  const second = await spawnDaemon(t, { workspace, data })
  const [entry] = (await second.client.call('GET /safety/verdicts', {})).verdicts.slice(-1)
  t.match(entry, { outcome: 'refused', subject: { text: 'rm -rf keep' } })
  t.ok(existsSync(join(workspace, 'keep/a.txt')))
})
