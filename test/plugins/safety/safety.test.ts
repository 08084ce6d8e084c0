import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { SafetyPolicy } from '../../../plugins/safety/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { inner } from '../agent/support.js'
import { policyOf, rawLog, ruleOf, verdicts } from './support.js'

const ROUTES = [
  ['GET', '/safety'],
  ['POST', '/safety'],
  ['POST', '/safety/test'],
  ['POST', '/safety/replay'],
  ['GET', '/safety/verdicts'],
  ['POST', '/safety/verdicts/v-0mg6zq2k0-0001/review'],
] as const
const RM = { kind: 'command', text: 'rm -rf build' } as const
const SECRET = 'tops3cret-value-9321'

let daemon: Support
t.before(async () => {
  daemon = await daemonWith(t, ['safety', 'settings', 'secrets', 'system', 'activity', 'areas'])
})

const set = (policy: SafetyPolicy, revision?: string) =>
  daemon.client.call('POST /safety', { policy, ...(revision !== undefined && { revision }) })
const decide = (text: string, more: object = {}) =>
  inner(daemon, 'safety.decide', { subject: { kind: 'command', text }, context: { unattended: false, ...more } })

t.test('without a credential nothing is read or written', async t => {
  for (const [method, path] of ROUTES) {
    const sent = await fetch(daemon.url + path, {
      method,
      ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, body: '{}' }),
    })
    t.equal(sent.status, 401, `${method} ${path}`)
  }
})

t.test(
  'reading needs a viewer, testing a collaborator, and the rest a maintainer; no token changes anything',
  async t => {
    const vic = await joined(daemon, 'vic', 'viewer')
    const ann = await joined(daemon, 'ann', 'collaborator')
    const policy = policyOf()
    const id = 'v-0mg6zq2k0-0001'
    t.match(await vic.client.call('GET /safety'), { policy: { rules: exactly() }, judge: { available: false } })
    t.match(await refusalOf(() => vic.client.call('POST /safety/test', { subject: RM })), { status: 403 })
    t.match(await ann.client.call('POST /safety/test', { subject: RM }), { decision: { verdict: 'allow' } })
    const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
    for (const { client } of [ann, ...tokens]) {
      t.match(await refusalOf(() => client.call('POST /safety', { policy })), { status: 403 })
      t.match(await refusalOf(() => client.call('POST /safety/replay', { policy })), { status: 403 })
      t.match(await refusalOf(() => client.call('GET /safety/verdicts', {})), { status: 403 })
      t.match(await refusalOf(() => client.call('POST /safety/verdicts/{id}/review', { id, correct: true })), {
        status: 403,
      })
    }
    t.match(await refusalOf(() => tokens[0]!.client.call('GET /safety')), { status: 403 })
    t.match(await tokens[2]!.client.call('POST /safety/test', { subject: RM }), { decision: { by: 'default' } })
  },
)

t.test('a policy that does not compile is refused by its field, and the old one stays', async t => {
  await set(policyOf([ruleOf('old')]))
  const refused = async (path: string, policy: unknown) => {
    for (const call of ['/safety', '/safety/replay']) {
      const answer = await daemon.fetch(call, { method: 'POST', body: JSON.stringify({ policy }) })
      const body = (await answer.json()) as { errors?: { path: string }[] }
      t.match({ status: answer.status, body }, { status: 400, body: { errors: exactly({ path }) } }, `${call} ${path}`)
    }
  }
  await refused('policy.rules[0].match.regex', policyOf([ruleOf('a', { match: { regex: '(a+)+$\\1' } })]))
  await refused('policy.rules[0].match.regex', policyOf([ruleOf('a', { match: { regex: '(' } })]))
  await refused('policy.rules[0].match.glob', policyOf([ruleOf('a', { target: 'path', match: { glob: 'a[' } })]))
  await refused('policy.rules[0].match.glob', policyOf([ruleOf('a', { match: { glob: '*' } })]))
  await refused('policy.rules[0].match.action', policyOf([ruleOf('a', { match: { action: 'chat.*' } })]))
  await refused('policy.rules[0].match', policyOf([ruleOf('a', { match: {} })]))
  await refused('policy.rules[1].id', policyOf([ruleOf('a'), ruleOf('a')]))
  await refused('policy.rules[0].match.class', policyOf([ruleOf('a', { match: { class: 'moon' as 'git.publish' } })]))
  await refused('policy.rules[0].verdict', policyOf([ruleOf('a', { verdict: 'maybe' as 'deny' })]))
  await refused('policy.judge.timeoutMs', { ...policyOf(), judge: { ...policyOf().judge, timeoutMs: 1 } })
  t.match((await daemon.client.call('GET /safety')).policy.rules, exactly({ id: 'old' }))
  const unknown = await daemon.fetch('/settings/patch', {
    method: 'POST',
    body: '{"set":{"commandRules":{"moon":"deny"}}}',
  })
  t.equal(unknown.status, 400, 'settings refuse an unknown class')
  const action = await daemon.fetch('/settings/patch', {
    method: 'POST',
    body: '{"set":{"actionRules":{"moon":"deny"}}}',
  })
  t.equal(action.status, 400, 'and an action without a type')
})

t.test('a stale revision changes nothing, and a saved policy holds for the next decision', async t => {
  const { revision } = await set(policyOf())
  t.match(await decide('rm -rf a'), { verdict: 'allow', by: 'default' })
  await set(policyOf([ruleOf('no-rm', { message: 'move it to the trash' })]), revision)
  t.match(await refusalOf(() => set(policyOf(), revision)), { status: 409 })
  t.match(await decide('rm -rf a'), { verdict: 'deny', by: 'rule', ruleId: 'no-rm', message: 'move it to the trash' })
  t.match(JSON.parse(readFileSync(join(daemon.workspace, '.sandbox/config/safety.json'), 'utf8')), {
    rules: exactly({ id: 'no-rm' }),
  })
  const { events } = await daemon.client.call('GET /activity', {})
  t.ok(events.some(({ type }) => type === 'safety.changed') && events.some(({ type }) => type === 'safety.denied'))
})

t.test('the first line of the table that answers wins', async t => {
  await daemon.client.call('POST /settings/patch', {
    set: {
      commandRules: { 'git.destructive': 'deny', 'package.publish': 'hold' },
      actionRules: { 'chat.*': 'hold', 'chat.read': 'allow' },
    },
  })
  await set(
    policyOf([
      ruleOf('git-ok', { match: { class: 'git.destructive' }, verdict: 'allow' }),
      ruleOf('pub-ok', { match: { regex: '^npm publish --tag next$' }, verdict: 'allow' }),
      ruleOf('keys', { target: 'path', match: { glob: 'keys/**' }, verdict: 'hold', when: { unattended: true } }),
    ]),
  )
  const tested = async (subject: object, context: object = {}) =>
    (await daemon.client.call('POST /safety/test', { subject: subject as typeof RM, context })).decision
  const command = (text: string) => ({ kind: 'command', text })
  t.match(
    await tested(command('git push -f')),
    { verdict: 'deny', by: 'commandRules' },
    'no rule excepts from a denial',
  )
  t.match(await tested(command('npm publish')), { verdict: 'hold', by: 'commandRules' })
  t.match(await tested(command('npm publish --tag next')), { verdict: 'allow', by: 'rule', ruleId: 'pub-ok' })
  t.match(await tested({ kind: 'path', text: 'keys/a/b' }, { unattended: true }), { verdict: 'hold', ruleId: 'keys' })
  t.match(await tested({ kind: 'path', text: 'keys/a/b' }), { verdict: 'allow' })
  t.match(await tested(command('cat .env'), { outside: true }), { verdict: 'hold', by: 'outside-floor' })
  t.match(await tested(command('cat .env')), { verdict: 'allow', by: 'default' })
  const action = { kind: 'action', text: 'hello', provider: 'chat' }
  t.match(await tested({ ...action, type: 'send' }), { verdict: 'hold', by: 'actionRules' })
  t.match(await tested({ ...action, type: 'read' }), { verdict: 'allow' })
  await daemon.client.call('POST /settings/patch', { set: { commandRules: { 'secrets.access': 'allow' } } })
  t.match(
    await tested(command('cat .env'), { outside: true }),
    { verdict: 'allow' },
    'a setting for the class lifts the floor',
  )
  await daemon.client.call('POST /settings/patch', { unset: ['commandRules', 'actionRules'] })
  const before = (await verdicts(daemon)).length
  await tested(command('rm -rf a'))
  t.equal((await verdicts(daemon)).length, before, 'a test logs nothing')
})

t.test('a rule that allows, and a floor that is off, count only once a maintainer saved them', async t => {
  await set(policyOf())
  const file = join(daemon.workspace, '.sandbox/config/safety.json')
  const allow = ruleOf('all', { match: { regex: '.' }, verdict: 'allow' })
  writeFileSync(file, JSON.stringify({ rules: [allow, ruleOf('deny-rm')], outsideFloor: false, judge: 7 }))
  t.match(await decide('rm -rf a'), { verdict: 'deny', ruleId: 'deny-rm' }, 'the rule that denies is in force at once')
  const { policy } = await daemon.client.call('GET /safety')
  t.match(policy, {
    outsideFloor: true,
    judge: { mode: 'off' },
    rules: exactly({ id: 'all', enabled: false }, { id: 'deny-rm' }),
  })
  const reports = await daemon.client.call('GET /system/manifest-problems')
  t.match(
    reports
      .find(({ path }) => path === '.sandbox/config/safety.json')
      ?.problems.map(({ kind }) => kind)
      .sort(),
    exactly('invalidEntry', 'unaccepted', 'unaccepted'),
  )
  await set(policyOf([allow], { outsideFloor: false }))
  t.match(await decide('rm -rf a'), { verdict: 'allow', by: 'rule', ruleId: 'all' })
})

t.test('the log has what was held, denied or excepted, with stored values masked, and pages without a gap', async t => {
  await daemon.client.call('POST /secrets/store', { kind: 'vault', unlock: 'file' })
  await daemon.client.call('POST /secrets', { key: 'TOKEN', value: SECRET })
  await set(policyOf([ruleOf('no-rm'), ruleOf('ok', { match: { regex: '^make' }, verdict: 'allow' })]))
  const start = (await verdicts(daemon)).length
  await decide(`rm -rf ${SECRET}`, { conversationId: 'c-1' })
  await decide(`echo ${SECRET}`, { conversationId: 'c-1' })
  await decide('make all', { conversationId: 'c-2', persona: 'ada' })
  const all = await verdicts(daemon)
  t.equal(all.length, start + 2, 'a plain allow is not in it')
  t.match(
    all.slice(0, 2),
    exactly(
      { verdict: 'allow', outcome: 'ran', persona: 'ada' },
      { verdict: 'deny', outcome: 'refused', subject: { text: 'rm -rf {{secret:TOKEN}}' } },
    ),
  )
  await daemon.client.call('POST /safety/replay', { policy: policyOf() })
  t.notMatch(rawLog(daemon.data), SECRET)
  t.match(rawLog(daemon.data), 'echo {{secret:TOKEN}}')
  const page = await daemon.client.call('GET /safety/verdicts', { limit: 1 })
  const next = await daemon.client.call('GET /safety/verdicts', { limit: 1, before: page.next! })
  t.same([...page.verdicts, ...next.verdicts], all.slice(0, 2))
  t.match(
    (await daemon.client.call('GET /safety/verdicts', { conversationId: 'c-1' })).verdicts,
    exactly({ verdict: 'deny' }),
  )
  t.match(
    (await daemon.client.call('GET /safety/verdicts', { class: 'files.destructive', verdict: 'deny', limit: 1 }))
      .verdicts,
    exactly({ conversationId: 'c-1' }),
  )
  for (const query of ['before=moon', 'verdict=moon', 'class=moon', 'limit=0'])
    t.equal((await daemon.fetch(`/safety/verdicts?${query}`)).status, 400, query)
})

t.test('a review is counted, the newest stands, and its rule comes first', async t => {
  await set(policyOf([ruleOf('no-rm')]))
  await decide('rm -rf reviewed')
  const { id } = (await verdicts(daemon, 1))[0]!
  const review = (more: object) =>
    daemon.client.call('POST /safety/verdicts/{id}/review', { id, correct: true, ...more })
  const before = (await daemon.client.call('GET /safety')).reviewed
  t.same(await review({}), { ok: true })
  t.same(
    await review({
      correct: false,
      note: 'harmless',
      rule: ruleOf('fine', { match: { regex: 'reviewed' }, verdict: 'allow' }),
    }),
    { ok: true, ruleId: 'fine' },
  )
  t.same((await daemon.client.call('GET /safety')).reviewed, { right: before.right, wrong: before.wrong + 1 })
  t.match((await verdicts(daemon, 1))[0]?.review, { correct: false, note: 'harmless', by: 'owner@sandbox.local' })
  t.match(await decide('rm -rf reviewed'), { verdict: 'allow', by: 'rule', ruleId: 'fine' })
  t.match(await refusalOf(() => review({ rule: ruleOf('fine') })), { status: 409 })
  t.match(await refusalOf(() => review({ rule: ruleOf('bad', { match: {} }) })), {
    status: 400,
    message: /^rule.match: expected at least one of/,
  })
  const id2 = 'v-000000000-0000'
  t.match(await refusalOf(() => daemon.client.call('POST /safety/verdicts/{id}/review', { id: id2, correct: true })), {
    status: 404,
  })
})

t.test('20,001 plain allows: the oldest is gone, and a replay of the rest lets other calls go on', async t => {
  await set(policyOf())
  const many = Array.from({ length: 20_001 }, (_, n) => (n === 0 ? 'rm -rf first' : `rm -rf ${n}`))
  const fresh = await daemonWith(t, ['safety', 'settings'])
  for (let at = 0; at < many.length; at += 2_000)
    await Promise.all(
      many
        .slice(at, at + 2_000)
        .map(text =>
          inner(fresh, 'safety.decide', { subject: { kind: 'command', text }, context: { unattended: true } }),
        ),
    )
  const started = performance.now()
  const replaying = fresh.client.call('POST /safety/replay', { policy: policyOf([ruleOf('no-rm')]) })
  t.match(await refusalOf(() => fresh.client.call('POST /safety/replay', { policy: policyOf() })), { status: 409 })
  let answered = 0
  let done = false
  const replay = replaying.then(found => ((done = true), found))
  while (!done) {
    await fresh.client.call('GET /safety')
    answered++
  }
  const found = await replay
  t.ok(performance.now() - started < 10_000)
  t.ok(answered > 3, `${answered} other calls were answered`)
  t.match(found, {
    replayed: 20_000,
    truncated: false,
    unjudged: 0,
    counts: exactly({ was: 'allow', now: 'deny', count: 20_000 }),
  })
  t.equal(found.changes.length, 1_000)
  t.notMatch(JSON.stringify(found.changes), 'rm -rf first')
})

t.test('after ten replays in a minute the next one waits', async t => {
  const policy = policyOf()
  let refused: unknown
  for (let n = 0; n < 11 && !refused; n++)
    refused = await daemon.client.call('POST /safety/replay', { policy, limit: 1 }).then(
      () => undefined,
      (error: unknown) => error,
    )
  t.match(refused, { status: 429 })
})
