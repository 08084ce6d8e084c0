import t from 'tap'
import type { Api } from '../../../sdk/api.js'
import type { Input } from '../../../sdk/contract.js'
import type { ForgeHost } from '../../../plugins/pipelines/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { until } from '../../support/browser/browser.js'
import { beginning, exactly } from '../../support/lists.js'
import { clientOf } from '../../support/people.js'
import { PROJECT } from './forge-server.js'
import { forgesWith, proofOf, reportOf, reportTo, sendReport } from './support.js'

const HOSTS: readonly ForgeHost[] = ['github', 'gitlab', 'forgejo', 'gitea']
const SECRET = 'tr0ub4dor&3-and-more'
const LOG = `2026-01-31T12:00:00.1234567Z \u001b[32mbuilding\u001b[0m
2026-01-31T12:00:01.1234567Z 10 %\r50 %\r100 %
2026-01-31T12:00:02.1234567Z the password is ${SECRET}
2026-01-31T12:00:03.1234567Z 0 errors so far
2026-01-31T12:00:04.1234567Z not ok 3 - totals are rounded
${'2026-01-31T12:00:05.1234567Z ok\n'.repeat(400)}`

t.test('runs of forges', async t => {
  const dispatched: Input<Api, 'automations.dispatch'>[] = []
  const started: Input<Api, 'agent.start'>[] = []
  const { daemon, store, forge, shaOf } = await forgesWith(t, HOSTS, ['activity'], {
    fakes: {
      'automations.dispatch': message => (dispatched.push(message), { matched: [] }),
      'agent.conversation': ({ id }) => ({ id }) as never,
      'agent.start': input => {
        started.push(input)
        const { conversationId, messageId, run } = input
        return { conversationId, messageId, run, delivery: 'started' } as never
      },
      'secrets.values': () => ({ values: [{ name: 'PASSWORD', value: SECRET }], revision: 1 }) as never,
    },
  })
  const { client } = daemon
  const [mai, ada] = ['mai', 'ada'].map(name => clientOf(daemon, `${name}@example.org`))
  for (const host of HOSTS) {
    forge(host).add('success', { sha: shaOf(host) })
    forge(host).add('failed', { sha: shaOf(host) })
    forge(host).job(11, 'build', 'success', 'fine')
    forge(host).job(12, 'Tests', 'failed', LOG)
  }

  await t.test('without a credential and with too little of one nothing is read or changed', async t => {
    const run = { repo: 'root', runId: 1 }
    for (const [method, path, body, refused] of [
      ['GET', '/ci/runs', undefined, []],
      ['POST', '/ci/runs/jobs', run, []],
      ['POST', '/ci/runs/log', { ...run, job: 'x' }, []],
      ['POST', '/ci/runs/rerun', run, ['read', 'land', 'cas']],
      ['POST', '/ci/runs/cancel', run, ['read', 'land', 'cas']],
      ['POST', '/ci/fix', run, ['read', 'vic']],
      ['POST', '/ci/seen', {}, ['read', 'vic']],
      ['GET', '/ci/webhook/github', undefined, ['read', 'land', 'cas']],
      ['POST', '/ci/webhook/github/rotate', {}, ['read', 'land', 'cas']],
      ['GET', '/prepush/state', undefined, []],
      ['POST', '/prepush/run', {}, ['read', 'land', 'cas']],
      ['POST', '/prepush/cancel', {}, ['read', 'land', 'cas']],
    ] as const) {
      const ask = async (headers: { [name: string]: string }) => {
        const type = body ? { 'content-type': 'application/json', ...headers } : headers
        const init = { method, headers: type, ...(body && { body: JSON.stringify(body) }) }
        return (await fetch(daemon.url + path, init)).status
      }
      t.equal(await ask({}), 401, `${method} ${path}`)
      for (const who of ['editor', ...refused]) {
        const isPerson = who === 'vic' || who === 'cas'
        const headers: { [name: string]: string } = isPerson
          ? { authorization: `Bearer ${who}@example.org` }
          : { 'x-sandbox-control': (await daemon.token(who as 'read')).token }
        t.equal(await ask(headers), 403, `${method} ${path} with ${who}`)
      }
    }
  })

  await t.test('the runs of every forge are listed, with what it can do', async t => {
    const { repos, runs } = await client.call('GET /ci/runs', { fresh: true })
    t.same(repos.map(({ host }) => host).sort(), HOSTS.toSorted())
    for (const host of HOSTS) {
      const row = repos.find(each => each.host === host)!
      t.match(row, { repo: host, project: PROJECT, account: host, delivery: /none|poll/ })
      t.equal(row.error, undefined)
      t.match(row.can, { jobs: true, log: true, cancel: true, rerunFailed: true, rerun: host !== 'gitlab' })
      const own = runs.filter(each => each.host === host)
      t.match(
        own,
        exactly(
          { runId: 102, status: 'failed', branch: 'main', sha: shaOf(host), number: 2, title: 'Round totals' },
          { runId: 101, status: 'success', trigger: 'push' },
        ),
      )
      t.ok(own.every(({ finishedAt, createdAt, durationSeconds }) => finishedAt! > createdAt && durationSeconds === 5))
    }
    t.same(dispatched, [], 'the first look at a repository makes no event')
    const { client: token } = await daemon.token('read')
    t.notOk((await token.call('GET /ci/runs', {})).repos.some(({ account }) => account !== undefined))
    t.same((await ada!.call('GET /ci/runs', {})).repos, [], 'they are not of her areas')
  })

  await t.test('jobs are those of the forge, with what waits for what, and logs are plain text', async t => {
    for (const host of HOSTS) {
      const run = { repo: host, runId: 102 }
      const { jobs } = await client.call('POST /ci/runs/jobs', run)
      t.match(
        jobs,
        exactly(
          { id: '11', name: 'build', status: 'success', log: 'available', durationSeconds: 3 },
          { id: '12', name: 'Tests', status: 'failed', needs: exactly('build'), log: 'available' },
        ),
        host,
      )
      const log = (more: object) => client.call('POST /ci/runs/log', { ...run, job: '12', ...more })
      const { text, sizeBytes } = await log({ offset: 0 })
      t.match(text, /^building\n100 %\nthe password is \{\{secret:PASSWORD\}\}\n0 errors so far\nnot ok 3/)
      t.equal(sizeBytes, Buffer.byteLength(text))
      t.match(await log({ bytes: 30 }), { text: /^ok/m, offset: sizeBytes - 30, truncated: true })
      t.match(await log({ bytes: 80, find: 'failure' }), { text: /not ok 3 - totals/, truncated: true })
    }
    const unknown = { repo: 'github', runId: 102, job: '99' }
    t.equal((await refusalOf(() => client.call('POST /ci/runs/log', unknown))).status, 404)
    t.equal((await refusalOf(() => client.call('POST /ci/runs/jobs', { repo: 'github', runId: 9 }))).status, 404)
    t.equal((await refusalOf(() => client.call('POST /ci/runs/jobs', { repo: 'root', runId: 102 }))).status, 404)
    t.equal((await refusalOf(() => ada!.call('POST /ci/runs/jobs', { repo: 'github', runId: 102 }))).status, 404)
  })

  await t.test('a run is run again and stopped at the forge, where that can do it', async t => {
    const statusOf = (host: ForgeHost) => forge(host).runs[1]!.status
    for (const host of HOSTS) {
      const run = { repo: host, runId: 102 }
      const rerun = (failedOnly: boolean) => mai!.call('POST /ci/runs/rerun', { ...run, failedOnly })
      t.equal((await refusalOf(() => mai!.call('POST /ci/runs/cancel', run))).status, 409)
      if (host === 'gitlab') t.equal((await refusalOf(() => rerun(false))).status, 422)
      await rerun(true)
      t.equal(statusOf(host), 'running')
      const shown = async () => (await client.call('GET /ci/runs', { host, limit: 1 })).runs[0]?.status
      await until(async () => (await shown()) === 'running')
      t.equal((await refusalOf(() => rerun(true))).status, 409)
      await mai!.call('POST /ci/runs/cancel', run)
      t.equal(statusOf(host), 'canceled')
      await until(async () => (await shown()) === 'canceled')
    }
  })

  await t.test('a report is believed only with its proof, and once', async t => {
    for (const host of HOSTS) {
      const hook = await client.call('GET /ci/webhook/{host}', { host })
      t.equal(hook.url, `${daemon.url}/ci/webhook/${host}`)
      const run = forge(host).add('failed', { branch: 'once', sha: shaOf(host) })
      const body = JSON.stringify(reportOf(forge(host), run))
      const events = { 'x-github-event': 'workflow_run', 'x-gitlab-event': 'Pipeline Hook' }
      const proof = { ...events, ...proofOf(host, hook.secret, body) }
      const changed = body.replace('once', 'onca')
      if (host !== 'gitlab') t.equal((await sendReport(daemon, host, changed, proof)).status, 401)
      t.equal((await sendReport(daemon, host, body, events)).status, 401)
      t.equal((await sendReport(daemon, host, body, { ...events, ...proofOf(host, 'other', body) })).status, 401)
      const before = dispatched.length
      t.same(await reportTo(daemon, forge(host), run, hook.secret), { status: 200, ok: true })
      t.same(await reportTo(daemon, forge(host), run, hook.secret), { status: 200, ok: true, ignored: true })
      await until(() => dispatched.length > before)
      t.match(
        dispatched.slice(before),
        exactly({
          ...{ provider: 'ci', type: 'pipeline_failed', channelId: host, branch: 'once' },
          extra: { host, project: PROJECT, runId: run.id, status: 'failed', failedJobs: exactly('Tests') },
        }),
      )
      t.match(
        (await client.call('GET /ci/runs', { branch: 'once', host })).runs,
        exactly({ failedJobs: exactly('Tests') }),
      )
      t.type((await client.call('GET /ci/webhook/{host}', { host })).lastUsedAt, 'number')
    }
    const { secret } = await client.call('GET /ci/webhook/{host}', { host: 'github' })
    const signed = (body: string, event = 'workflow_run') =>
      sendReport(daemon, 'github', body, { 'x-github-event': event, ...proofOf('github', secret, body) })
    t.equal((await signed('no json')).status, 400)
    t.match(await signed('{"zen":"x"}', 'ping'), { status: 200, ignored: true })
    const other = { action: 'completed', workflow_run: { id: 1 }, repository: { full_name: 'acme/other' } }
    t.match(await signed(JSON.stringify(other)), { status: 200, ignored: true })
    const unfinished = forge('github').add('running')
    t.match(await reportTo(daemon, forge('github'), unfinished, secret), { ignored: true })
    t.equal((await sendReport(daemon, 'travis', '{}', {})).status, 404)
    t.match(await sendReport(daemon, 'github', '{}', {}, `?token=${secret}`), { status: 200, ignored: true })
    t.match(await sendReport(daemon, 'github', '{}', { authorization: `Bearer ${secret}` }), { status: 200 })
    const { secret: next } = await client.call('POST /ci/webhook/{host}/rotate', { host: 'github' })
    t.equal((await signed('{}')).status, 401, 'the old secret stopped')
    t.equal((await sendReport(daemon, 'github', '{}', {}, `?token=${next}`)).status, 200)
    t.equal((await refusalOf(() => client.call('GET /ci/webhook/{host}', { host: 'local' }))).status, 404)
  })

  await t.test('a branch breaks once and is fixed once, however often it fails', async t => {
    const { secret } = await client.call('GET /ci/webhook/{host}', { host: 'gitea' })
    const before = dispatched.length
    const attention = async () => (await client.call('GET /ci/runs', { host: 'gitea' })).runs
    for (const status of ['success', 'failed', 'failed', 'success'] as const) {
      const run = forge('gitea').add(status, { branch: 'edges' })
      t.match(await reportTo(daemon, forge('gitea'), run, secret), { status: 200 })
    }
    const types = () => dispatched.slice(before).map(({ type }) => type)
    await until(() => types().length >= 6)
    t.same(types(), [
      'pipeline_succeeded',
      'pipeline_failed',
      'pipeline_broken',
      'pipeline_failed',
      'pipeline_succeeded',
      'pipeline_fixed',
    ])
    t.match(await attention(), beginning({ branch: 'edges', status: 'success' }))
    const skipped = forge('gitea').add('canceled', { branch: 'edges' })
    await reportTo(daemon, forge('gitea'), skipped, secret)
    const { seenAt } = await client.call('POST /ci/seen')
    t.equal((await client.call('GET /ci/runs', {})).seenAt, seenAt)
    t.equal(types().length, 6, 'a run that was stopped makes no event')
  })

  await t.test('an agent is put on a failed run, at its commit and with the ends of its logs', async t => {
    const [failed] = (await client.call('GET /ci/runs', { branch: 'once', host: 'forgejo' })).runs
    const asked = { repo: 'forgejo', runId: failed!.runId, note: 'look at rounding' }
    const first = await client.call('POST /ci/fix', asked)
    t.same(await client.call('POST /ci/fix', asked), first)
    const sha = shaOf('forgejo')
    t.match(
      started,
      exactly({
        ...{ isolated: true, errand: 'ci-fix', runRole: 'pipeline-fix', startIn: 'forgejo' },
        worktreeBase: exactly({ repo: 'forgejo', base: sha }),
      }),
    )
    const { prompt } = started[0]!
    for (const words of ['look at rounding', PROJECT, 'once', sha, 'Tests', '{{secret:PASSWORD}}', 'not ok 3'])
      t.ok(prompt.includes(words), words)
    t.notOk(prompt.includes(SECRET))
    const elsewhere = forge('forgejo').add('failed', { sha: 'b'.repeat(40), branch: 'gone' })
    const { secret } = await client.call('GET /ci/webhook/{host}', { host: 'forgejo' })
    await reportTo(daemon, forge('forgejo'), elsewhere, secret)
    const lost = await refusalOf(() => client.call('POST /ci/fix', { repo: 'forgejo', runId: elsewhere.id }))
    t.match(lost, { status: 422, message: /cannot be fetched/ })
  })

  await t.test('a forge without a credential says so in its row, and the others answer', async t => {
    store.values.delete('gitlab/token')
    const { repos } = await client.call('GET /ci/runs', { repo: 'gitlab', fresh: true })
    t.equal(repos.length, 1)
    const { events } = await client.call('GET /activity', {})
    for (const type of ['ci.rerun', 'ci.cancel', 'ci.fix', 'ci.hook_revealed', 'ci.hook_rotated'])
      t.ok(
        events.some(event => event.type === type),
        type,
      )
  })
})
