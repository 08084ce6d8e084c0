import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { Rule } from '../../../plugins/settings/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { daemonWith, inGit } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'
import { commitAll, put, repoAt } from '../git/support.js'

const GROUPS = ['pipelines', 'git', 'activity', 'settings', 'system', 'workspace', 'agent', 'agents']

/** Whether a process with these words in its command runs. */
const runs = (words: string): boolean =>
  readdirSync('/proc').some(pid => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(words)
    } catch {
      return false
    }
  })

t.test('checks before a push', async t => {
  const daemon = await daemonWith(t, GROUPS, { files: { 'README.md': '# work\n', 'site/a.txt': 'a\n' } })
  const { client, workspace } = daemon
  const at = join(workspace, 'app')
  repoAt(at, { f: '1\n' })
  const bare = join(workspace, 'bare.git')
  inGit(workspace, 'clone', '-q', '--bare', at, bare)
  inGit(at, 'remote', 'add', 'origin', bare)
  const check = (command: string, more: Partial<Rule> = {}): Rule => ({
    ...{ id: 'check', label: 'Check', moment: 'push.starting', action: { kind: 'command', command } },
    ...more,
  })
  const save = (...rules: Rule[]) => client.call('POST /settings/patch', { set: { rules } })
  const state = () => client.call('GET /prepush/state')
  const ended = async () => {
    await until(async () => (await state()).status !== 'running')
    return state()
  }
  const newest = async () => (await client.call('GET /ci/runs', { limit: 1 })).runs[0]!

  await t.test('without a rule nothing is checked', async t => {
    t.same(await state(), { status: 'idle', command: '', output: '' })
    t.same(await client.call('POST /prepush/run'), { ok: true })
    t.same(await client.call('POST /prepush/cancel'), { ok: true })
    t.same(await client.call('GET /ci/runs', {}), { repos: [], runs: [] })
    t.equal((await refusalOf(() => client.call('GET /ci/runs', { repo: 'nowhere' }))).status, 404)
    t.same((await client.call('GET /ci/runs', { repo: 'app' })).runs, [])
  })

  await t.test(
    'a check that is started by hand is a run, with its rules as jobs and what they wrote as logs',
    async t => {
      await save(
        check('pwd; echo fine', { id: 'first', label: 'First' }),
        check(`printf '\\033[31mno\\033[0m over here\\n'; exit 3`, { id: 'second', label: 'Second' }),
        check('touch never', { id: 'third', label: 'Third' }),
      )
      await client.call('POST /prepush/run')
      const shown = await ended()
      t.match(shown, { status: 'failed', ruleId: 'second', exitCode: 3, session: 'job-checks', output: /^no /m })
      t.notOk(existsSync(join(workspace, 'never')))
      const { repos, runs: all } = await client.call('GET /ci/runs', { host: 'local' })
      t.match(
        repos,
        exactly({ repo: 'root', host: 'local', delivery: 'none', can: { rerun: true, rerunFailed: false } }),
      )
      const sha = inGit(workspace, 'rev-parse', 'HEAD').trim()
      const failed = { status: 'failed', number: 1, trigger: 'manual', sha, failedJobs: exactly('Second') } as const
      t.match(all, exactly({ repo: 'root', host: 'local', project: 'local', url: '', ...failed }))
      const run = { repo: 'root', runId: all[0]!.runId }
      t.equal(shown.runId, run.runId)
      t.match(
        (await client.call('POST /ci/runs/jobs', run)).jobs,
        exactly(
          { id: 'first', status: 'success', needs: exactly(), log: 'available' },
          { id: 'second', status: 'failed', needs: exactly('First'), log: 'available' },
          { id: 'third', status: 'skipped', log: 'pending' },
        ),
      )
      const log = (job: string, more: object = {}) => client.call('POST /ci/runs/log', { ...run, job, ...more })
      t.match(await log('first'), { text: /fine/, offset: 0, truncated: false })
      const { text, sizeBytes } = await log('second')
      t.match(text, /^no over here$/m)
      t.match(await log('second', { bytes: 1 }), { offset: sizeBytes - 1, truncated: true })
      t.equal((await refusalOf(() => log('third'))).status, 409)
      t.equal((await refusalOf(() => log('nothing'))).status, 404)
    },
  )

  await t.test('an agent is put on a failed check, at its commit and with what it wrote', async t => {
    const { runId } = await newest()
    const fix = { repo: 'root', runId, note: 'look at the end' }
    const { conversationId, run } = await client.call('POST /ci/fix', fix)
    t.equal((await client.call('POST /ci/fix', fix)).conversationId, conversationId, 'a second call gets the first')
    const frames = await framesOf(client, conversationId, { run }).all()
    t.ok(frames.length > 0)
    const words = JSON.stringify(await client.call('GET /agents/{id}/transcript', { id: String(conversationId) }))
    for (const expected of ['Second', 'no over here', 'look at the end', 'checks before a push of root'])
      t.ok(words.includes(expected), expected)
    t.match((await newest()).fix, { conversationId })
    const asked = async () => {
      const { messages } = await client.call('GET /agents/{id}/transcript', { id: String(conversationId) })
      return messages.filter(({ role }) => role === 'user').map(({ errand }) => errand)
    }
    await until(async () => (await asked()).length === 2)
    await until(
      async () => (await client.call('GET /agents/{id}', { id: String(conversationId) })).lastEnd !== undefined,
    )
    t.same(await asked(), ['push-fix', 'push-fix-nudge'], 'it ended without a change: it is asked once more')

    const landing = { conversationId: 'lands', agent: 'script', isolated: true, prompt: 'write landed.txt\n| new' }
    await client.call('POST /agent', landing)
    await framesOf(client, 'lands').all()
    t.match(await client.call('POST /agents/{id}/land', { id: 'lands' }), { landed: true })
    await client.call('POST /ci/runs/rerun', { repo: 'root', runId })
    t.match(await ended(), { status: 'failed' })
    const pick = { agent: 'script', model: 'script' }
    const broken = await client.call('POST /ci/fix', { repo: 'root', runId: (await newest()).runId, pick })
    const fixing = String(broken.conversationId)
    await framesOf(client, fixing, { run: broken.run }).all()
    const { messages: rows } = await client.call('GET /agents/{id}/transcript', { id: fixing })
    t.match(rows[0], { errand: 'land-fix', text: /the work that the conversation write landed\.txt landed there/ })
    t.ok(existsSync(join(daemon.data, 'agent/checkouts', fixing, 'landed.txt')), 'its copy has that work')

    await save(check('true'))
    await client.call('POST /ci/runs/rerun', { repo: 'root', runId })
    t.match(await ended(), { status: 'passed', exitCode: 0 })
    const again = await newest()
    t.match(again, { number: 3, status: 'success' })
    t.equal((await refusalOf(() => client.call('POST /ci/fix', { repo: 'root', runId: again.runId }))).status, 409)
    const onlyFailed = { repo: 'root', runId, failedOnly: true }
    t.equal((await refusalOf(() => client.call('POST /ci/runs/rerun', onlyFailed))).status, 422)
  })

  await t.test('a push is checked first, and does not go when the check is stopped', async t => {
    const there = () => inGit(bare, 'rev-parse', 'main').trim()
    const before = there()
    await save(check('sleep 765123'))
    put(at, { f: '2\n' })
    const mine = commitAll(at, 'second')
    const push = client.call('POST /git/{repo}/push', { repo: 'app' })
    await until(async () => runs('765123'))
    t.match(await state(), { status: 'running', command: 'sleep 765123' })
    const run = await newest()
    t.match(run, { repo: 'app', status: 'running', trigger: 'push', branch: 'main', sha: mine })
    const named = { repo: 'app', runId: run.runId }
    t.equal((await refusalOf(() => client.call('POST /ci/runs/rerun', named))).status, 409)
    t.same(await client.call('POST /prepush/run'), { ok: true }, 'it joins the running one')
    await client.call('POST /ci/runs/cancel', named)
    t.match(await push, { ok: false, reason: /cancelled/ })
    t.equal(there(), before)
    await until(() => !runs('765123'))
    t.match(await state(), { status: 'cancelled' })
    t.equal((await newest()).status, 'canceled')
    t.equal((await refusalOf(() => client.call('POST /ci/runs/cancel', named))).status, 409)
    await save({ id: 'stop', label: 'Freeze', moment: 'push.starting', action: { kind: 'verdict', verdict: 'hold' } })
    t.match(await client.call('POST /git/{repo}/push', { repo: 'app' }), { ok: false })
    await until(async () => (await state()).status === 'failed')
    t.match(await state(), { command: '', output: /Freeze/ })
    await save(check('true'))
    t.match(await client.call('POST /git/{repo}/push', { repo: 'app' }), { ok: true })
    t.equal(there(), mine)
    await until(async () => (await state()).status === 'passed')
    const { events } = await client.call('GET /activity', {})
    for (const type of ['ci.fix', 'ci.rerun', 'ci.cancel', 'rule.blocked_push'])
      t.ok(
        events.some(event => event.type === type),
        type,
      )
  })

  await t.test('pages of runs lose and repeat none', async t => {
    const { runs: all } = await client.call('GET /ci/runs', {})
    const paged: number[] = []
    for (let before: number | undefined; ;) {
      const page = await client.call('GET /ci/runs', { limit: 2, ...(before !== undefined && { before }) })
      paged.push(...page.runs.map(({ runId }) => runId))
      if (page.next === undefined) break
      before = page.next
    }
    t.same(
      paged,
      all.map(({ runId }) => runId),
    )
    t.same((await client.call('GET /ci/runs', { status: 'canceled' })).runs.length, 1)
    t.same((await client.call('GET /ci/runs', { branch: 'other' })).runs, [])
  })
})
