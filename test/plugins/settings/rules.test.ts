import t from 'tap'
import type { Rule, OccasionFacts, RuleMoment, Settings } from '../../../plugins/settings/contract.js'
import { DEFAULTS } from '../../../plugins/settings/current-settings.js'
import { tryRules } from '../../../plugins/settings/rules/matching.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { inner } from '../capabilities/support.js'

const rule = (id: string, more: Partial<Rule> = {}): Rule => ({
  ...{ id, label: `Rule ${id}`, moment: 'agent.finished', action: { kind: 'verdict', verdict: 'allow' } },
  ...more,
})
const command = (id: string, text: string, more: Partial<Rule> = {}): Rule =>
  rule(id, { moment: 'push.starting', action: { kind: 'command', command: text }, ...more })

const people = new People()
for (const role of ['viewer', 'collaborator', 'maintainer'] as const) people.add(`${role}@example.org`, role)
const recorded: { type: string; extra?: unknown }[] = []
const daemon = await daemonWith(t, ['settings'], {
  fakes: {
    ...people.fakes,
    'activity.record': entry => {
      recorded.push(entry)
      return { ok: true } as never
    },
  },
})
people.admit(daemon)
const { client } = daemon
const READS = ['/settings/rule-firings', '/settings/schema', '/settings/models', '/settings/system-prompt/core']
const trial = { moment: 'agent.finished', facts: {} } as const

t.test('without a credential nothing is read or tried', async t => {
  for (const path of READS) t.equal((await fetch(daemon.url + path)).status, 401, path)
  const sent = await fetch(`${daemon.url}/settings/rules/test`, { method: 'POST', body: '{}' })
  t.equal(sent.status, 401)
})

t.test('tokens read by their scope, and drive and land try rules', async t => {
  for (const scope of ['read', 'drive', 'land', 'editor'] as const) {
    const { client: token } = await daemon.token(scope)
    const reads = token.call('GET /settings/rule-firings')
    if (scope === 'editor') t.match(await refusalOf(() => reads), { status: 403 })
    else t.same(await reads, [])
    const tries = token.call('POST /settings/rules/test', trial)
    if (scope === 'drive' || scope === 'land') t.match(await tries, { verdict: 'hold' })
    else t.match(await refusalOf(() => tries), { status: 403 })
  }
})

t.test('viewers read, collaborators try rules, and maintainers save them', async t => {
  const viewer = clientOf(daemon, 'viewer@example.org')
  t.same(await viewer.call('GET /settings/rule-firings'), [])
  t.ok((await viewer.call('GET /settings/schema')).fields.length > 0)
  t.match(await refusalOf(() => viewer.call('POST /settings/rules/test', trial)), { status: 403 })
  const collaborator = clientOf(daemon, 'collaborator@example.org')
  t.match(await collaborator.call('POST /settings/rules/test', trial), {
    matched: exactly(),
    skipped: exactly(),
    verdict: 'hold',
  })
  const saved = () => collaborator.call('POST /settings/patch', { set: { rules: [rule('a')] } })
  t.match(await refusalOf(saved), { status: 403 })
})

t.test('rules that do not fit are refused by where they stand, and nothing is changed', async t => {
  const bad: [rules: unknown[], path: string][] = [
    [[rule('a'), rule('a')], 'rules[1].id'],
    [[rule('A')], 'rules[0].id'],
    [[rule('a', { label: '' })], 'rules[0].label'],
    [[{ ...rule('a'), moment: 'turn.started' }], 'rules[0].moment'],
    [[{ ...rule('a'), action: { kind: 'command', command: 'x'.repeat(501) } }], 'rules[0].action'],
    [[command('a', 'true', { action: { kind: 'command', command: 'x', timeoutMs: 0 } })], 'rules[0].action'],
    [[{ ...rule('a'), surprise: true }], 'rules[0].surprise'],
    [[rule('a', { moment: 'turn.ending' })], 'rules[0].action'],
    [[command('a', 'true', { moment: 'agent.finished' })], 'rules[0].action'],
    [[rule('a', { moment: 'push.starting' })], 'rules[0].action'],
    [[rule('a', { when: { paths: ['src/[a'] } })], 'rules[0].when.paths[0]'],
    [Array.from({ length: 51 }, (_, at) => rule(`r${at}`)), 'rules'],
  ]
  for (const [rules, path] of bad) {
    const set = { rules } as never
    const refused = await refusalOf(() => client.call('POST /settings/patch', { set }))
    t.equal(refused.status, 400, path)
    t.match(refused.body?.errors?.[0]?.path, path)
    const tried = await refusalOf(() => client.call('POST /settings/rules/test', { ...trial, rules } as never))
    t.equal(tried.status, 400, path)
    t.equal((await refusalOf(() => client.call('POST /settings', set))).status, 400, path)
  }
  t.match(await refusalOf(() => client.call('POST /settings/rules/test', { moment: 'never', facts: {} } as never)), {
    status: 400,
  })
  t.same(await client.call('GET /settings'), DEFAULTS)
})

const tried = (rules: readonly Rule[], moment: RuleMoment, facts: OccasionFacts) => {
  const { matched, skipped, verdict } = tryRules(rules, moment, facts)
  return { matched: matched.map(({ id }) => id), skipped: skipped.map(({ id, why }) => `${id}: ${why}`), verdict }
}

t.test('where work may land, the first rule that fits decides; without one the work is held', async t => {
  const docs = rule('docs', { when: { paths: ['docs/**'] } })
  const hold = rule('rest', { action: { kind: 'verdict', verdict: 'hold' } })
  const paths = ['docs/a.md', 'docs/deep/.b.md']
  t.same(tried([docs, hold], 'agent.finished', { paths }), {
    ...{ matched: ['docs'], skipped: ['rest: docs decides already'], verdict: 'allow' },
  })
  t.match(tried([docs, hold], 'agent.finished', { paths: [...paths, 'src/a.ts'] }), {
    matched: exactly('rest'),
    skipped: exactly(/^docs: src\/a\.ts does not fit/),
    verdict: 'hold',
  })
  t.match(tried([docs], 'agent.finished', {}), { matched: exactly(), verdict: 'hold' }, 'a fact that is not known')
  const mine = rule('mine', { when: { repo: 'app' } })
  t.match(tried([mine], 'agent.finished', { repos: ['app'] }), { verdict: 'allow' })
  t.match(tried([mine], 'agent.finished', { repos: ['app', 'lib'] }), { verdict: 'hold' })
  const clean = rule('clean', { when: { outcome: ['clean'] } })
  t.match(tried([clean], 'agent.finished', { outcome: 'error' }), { skipped: exactly(/the outcome is error/) })
  t.match(tried([clean], 'agent.finished', { outcome: 'clean' }), { verdict: 'allow' })
})

t.test('before a push every rule that fits acts, in order, and the others say why not', async t => {
  const rules = [
    command('b', 'true'),
    command('a', 'true', { when: { paths: ['src/*.ts'], repo: 'root' } }),
    command('off', 'true', { enabled: false }),
    command('empty', ' '),
    command('other', 'true', { when: { repo: 'lib' } }),
    command('never', 'true', { when: { outcome: ['clean'] } }),
    rule('elsewhere'),
  ]
  const bothRepos = { repos: ['root', 'app'], paths: ['README.md', 'src/a.ts'] }
  const { matched, skipped, verdict } = tried(rules, 'push.starting', bothRepos)
  t.same([matched, verdict], [['b', 'a'], undefined])
  t.match(
    skipped,
    exactly(
      'off: it is switched off',
      'empty: its command is empty',
      'other: lib is not affected',
      /^never: no outcome is known/,
      'elsewhere: it stands at agent.finished',
    ),
  )
  t.match(tried(rules, 'push.starting', { repos: ['root'], paths: ['src/deep/a.ts'] }), { matched: exactly('b') })
})

t.test('a trial of stored and of unsaved rules runs nothing', async t => {
  await client.call('POST /settings/patch', { set: { rules: [rule('a'), command('ran', 'touch ran')] } })
  t.match(await client.call('POST /settings/rules/test', trial), {
    matched: exactly({ id: 'a', label: 'Rule a', decides: true }),
    skipped: exactly({ id: 'ran' }),
    verdict: 'allow',
  })
  const unsaved = { moment: 'push.starting', facts: {}, rules: [command('new', 'touch new')] } as const
  t.match(await client.call('POST /settings/rules/test', unsaved as never), {
    matched: exactly({ id: 'new', decides: false }),
  })
  t.same(await client.call('GET /settings/rule-firings'), [])
  const standing = await inner(daemon, 'rules.standing', { moment: 'push.starting' })
  t.same(standing, { rules: [{ id: 'ran', label: 'Rule ran', asks: [] }] })
  await client.call('POST /settings/patch', { unset: ['rules'] })
})

t.test('a trial takes no longer than its text is long', async t => {
  const nasty = `${'**a'.repeat(300)}b`
  const rules = [command('nasty', 'true', { when: { paths: Array.from({ length: 20 }, () => nasty) } })]
  const facts = { paths: Array.from({ length: 100 }, () => 'a'.repeat(4000)) }
  const trial = { moment: 'push.starting', facts, rules } as const
  t.match(await refusalOf(() => client.call('POST /settings/rules/test', trial)), { status: 413 })
  const before = performance.now()
  const one = { ...trial, facts: { paths: ['a'.repeat(500)] } }
  t.match(await client.call('POST /settings/rules/test', one), { matched: exactly() })
  t.ok(performance.now() - before < 10_000)
})

t.test('firings are counted, listed newest first, and go with their rule', async t => {
  await client.call('POST /settings/patch', { set: { rules: [rule('a'), rule('b')] } })
  await inner(daemon, 'rules.stamp', { id: 'a', outcome: 'held' })
  await inner(daemon, 'rules.stamp', { id: 'b', outcome: 'acted' })
  await inner(daemon, 'rules.stamp', { id: 'a', outcome: 'acted' })
  const firings = () => client.call('GET /settings/rule-firings')
  t.match(await firings(), exactly({ id: 'a', count: 2, outcome: 'acted' }, { id: 'b', count: 1, outcome: 'acted' }))
  await client.call('POST /settings/patch', { set: { rules: [rule('b')] } })
  t.match(await firings(), exactly({ id: 'b' }))
  await client.call('POST /settings/patch', {
    set: { rules: [rule('c', { action: { kind: 'verdict', verdict: 'hold' } })] },
  })
  const fired = await inner(daemon, 'rules.fire', { moment: 'agent.finished', facts: {}, conversationId: 'c-1' })
  t.match(fired, { go: false, ruleId: 'c', reason: /holds this work/ })
  t.match(await firings(), exactly({ id: 'c', outcome: 'held' }))
  t.match(recorded.at(-1), { type: 'rule.held_work', extra: { id: 'c' } })
  await client.call('POST /settings/patch', { unset: ['rules'] })
  t.same(await firings(), [])
})

t.test('the schema lists every setting with its range, and what was changed', async t => {
  const { fields, revision } = await client.call('GET /settings/schema')
  t.same(fields.map(({ key }) => key).sort(), Object.keys(DEFAULTS).sort())
  for (const field of fields) t.same(field.default, DEFAULTS[field.key as keyof Settings], field.key)
  t.notOk(fields.some(({ changed }) => changed))
  const answer = await client.call('POST /settings/patch', { set: { subagentDepth: 2 }, revision })
  const next = await client.call('GET /settings/schema')
  t.equal(next.revision, answer.revision)
  t.match(
    next.fields.filter(({ changed }) => changed),
    exactly({ key: 'subagentDepth', min: 1, max: 10, default: 3 }),
  )
  for (const { key, type, min, max } of fields.filter(({ type }) => type === 'number')) {
    for (const value of [min! - 1, max! + 1])
      t.equal((await refusalOf(() => client.call('POST /settings/patch', { set: { [key]: value } }))).status, 400, key)
    t.ok(type)
  }
  for (const { key, values } of fields.filter(each => each.values))
    for (const value of values!) await client.call('POST /settings/patch', { set: { [key]: value } })
  await client.call('POST /settings', {})
})

t.test('a built-in base is read where turns run, and another one is refused', async t => {
  t.equal((await refusalOf(() => client.call('GET /settings/system-prompt/{base}', { base: 'core' }))).status, 503)
  const other = await daemon.fetch('/settings/system-prompt/mine')
  t.equal(other.status, 400)
  const turns: Support = await daemonWith(t, ['settings', 'agent', 'agents'])
  const [core, vendor] = await Promise.all(
    (['core', 'vendor'] as const).map(base => turns.client.call('GET /settings/system-prompt/{base}', { base })),
  )
  t.match(core, { text: /^You are a coding agent/, version: /^\d+\.\d+\.\d+/ })
  t.same(vendor, core)
})
