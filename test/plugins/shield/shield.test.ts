import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { ShieldPolicy } from '../../../plugins/shield/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { inner } from '../agent/support.js'
import { shieldPolicy } from './support.js'

const ROUTES = [
  ['GET', '/shield'],
  ['POST', '/shield'],
  ['POST', '/shield/preview'],
  ['GET', '/shield/conversations/c'],
  ['DELETE', '/shield/conversations/c'],
  ['POST', '/shield/restore'],
  ['POST', '/shield/replay'],
  ['GET', '/shield/stats'],
] as const
const PEOPLE = {
  ...{ id: 'people', label: 'People', kind: 'PERSON', values: ['Ottoline Morrell'] },
  ...{ wholeWord: true, caseSensitive: false },
}
const ALICE = 'alice@example.net'

let daemon: Support
let set: (policy: ShieldPolicy, revision?: string) => Promise<{ ok: true; revision: string }>
t.before(async () => {
  daemon = await daemonWith(t, ['shield', 'secrets', 'system', 'activity', 'areas'], {
    fakes: {
      'agent.record': ({ id }) => {
        if (id !== 'c') throw Object.assign(new Error('none'), {})
        return {
          ...{ id, title: 'C', updatedAt: 1, startedAt: 1, state: 'live', provider: 'endpoint/e', harness: 'native' },
          ...{ total: 1, openedBy: 'a@example.org', messages: [] },
        }
      },
      'agent.conversation': ({ id }) => {
        const { conversation } = { conversation: { id } }
        return { conversation, waiting: 0, queuePaused: false, ...(id === 'busy' && { live: {} }) } as never
      },
      'capabilities.records': () => ({
        capabilities: [
          { id: 'cloud', kind: 'endpoint', label: 'Cloud', config: {}, secrets: [] },
          { id: 'here', kind: 'localmodel', label: 'Here', config: {}, secrets: [] },
          { id: 'tool', kind: 'agent', label: 'Tool', config: {}, secrets: [] },
        ],
      }),
    },
  })
  set = (policy, revision) =>
    daemon.client.call('POST /shield', { policy, ...(revision !== undefined && { revision }) })
})

const outbound = (texts: string[], more: object = {}) =>
  inner(daemon, 'shield.outbound', {
    ...{ conversationId: 'c', provider: 'endpoint/cloud', local: false, covered: true, texts, binary: false },
    ...more,
  })

t.test('without a credential nothing is read or written', async t => {
  for (const [method, path] of ROUTES) {
    const sent = await fetch(daemon.url + path, {
      method,
      ...(method === 'POST' && { headers: { 'content-type': 'application/json' }, body: '{}' }),
    })
    t.equal(sent.status, 401, `${method} ${path}`)
  }
})

t.test('the first policy that keeps something encrypted makes the store of secrets', async t => {
  const configured = async () => (await daemon.client.call('GET /secrets/store')).configured
  await set(shieldPolicy({ enabled: false, countries: ['DE'] }))
  t.match((await daemon.client.call('GET /shield')).policy, { enabled: false, countries: exactly('DE') })
  t.equal(await configured(), false)
  await set(shieldPolicy({ enabled: false, lists: [PEOPLE] }))
  t.equal(await configured(), true)
})

t.test('the owner writes the policy, maintainers read it, and collaborators try texts', async t => {
  const policy = shieldPolicy({ lists: [PEOPLE] })
  await set(policy)
  const vic = await joined(daemon, 'vic', 'viewer')
  const ann = await joined(daemon, 'ann', 'collaborator')
  const max = await joined(daemon, 'max', 'maintainer')
  const tokens = await Promise.all((['editor', 'read', 'drive', 'land'] as const).map(scope => daemon.token(scope)))
  for (const { client } of [vic, ann, max, ...tokens]) {
    t.match(await refusalOf(() => client.call('POST /shield', { policy })), { status: 403 })
    t.match(await refusalOf(() => client.call('POST /shield/replay', { policy })), { status: 403 })
  }
  for (const { client } of [vic, ann, ...tokens]) {
    t.match(await refusalOf(() => client.call('GET /shield')), { status: 403 })
    t.match(await refusalOf(() => client.call('GET /shield/conversations/{id}', { id: 'c' })), { status: 403 })
  }
  t.match((await max.client.call('GET /shield')).policy.lists, exactly({ values: exactly('Ottoline Morrell') }))
  t.match(await refusalOf(() => vic.client.call('POST /shield/preview', { text: 'x' })), { status: 403 })
  for (const { client } of [ann, tokens[2]!]) {
    t.match(await client.call('POST /shield/preview', { text: ALICE }), { masked: '[[EMAIL_1]]', restored: ALICE })
    t.match(await refusalOf(() => client.call('POST /shield/preview', { text: 'x', policy })), { status: 403 })
  }
  t.match((await vic.client.call('GET /shield/stats', {})).suggestions, exactly())
})

t.test('the state says what each provider gets and why, and what each detector does', async t => {
  await set(shieldPolicy({ providers: { 'endpoint/cloud': 'trusted' }, detectors: { geo: 'mask' } }))
  const { providers, detectors, nationalIds } = await daemon.client.call('GET /shield')
  t.match(
    providers,
    exactly(
      { id: 'endpoint/cloud', trust: 'trusted', why: 'policy', covered: true },
      { id: 'endpoint/here', trust: 'trusted', why: 'local', covered: true },
      { id: 'agent/tool', trust: 'shielded', why: 'default', covered: false },
    ),
  )
  t.match(
    detectors.filter(({ action }) => action !== 'mask'),
    exactly({ id: 'secret-entropy', action: 'report' }),
  )
  t.equal(nationalIds.length, 21)
})

t.test('a policy that does not compile is refused by its field, and a stale one by its revision', async t => {
  const { revision } = await set(shieldPolicy({ lists: [PEOPLE] }))
  const pattern = { id: 'p', label: 'P', kind: 'CASE', regex: 'C-[0-9]+', action: 'mask' } as const
  const refused = async (path: string, policy: unknown) => {
    for (const call of ['/shield', '/shield/replay', '/shield/preview']) {
      const body = JSON.stringify({ policy, text: 'x' })
      const answer = await daemon.fetch(call, { method: 'POST', body })
      const found = (await answer.json()) as { errors?: { path: string }[] }
      t.match(
        { status: answer.status, found },
        { status: 400, found: { errors: exactly({ path }) } },
        `${call} ${path}`,
      )
    }
  }
  await refused('policy.detectors.moon', shieldPolicy({ detectors: { moon: 'mask' } }))
  await refused('policy.detectors.email', { ...shieldPolicy(), detectors: { email: 'maybe' } })
  await refused('policy.patterns[0].regex', shieldPolicy({ patterns: [{ ...pattern, regex: '(a)\\1' }] }))
  await refused('policy.patterns[0].regex', shieldPolicy({ patterns: [{ ...pattern, regex: 'a*' }] }))
  await refused('policy.patterns[1].id', shieldPolicy({ patterns: [pattern, pattern] }))
  await refused('policy.lists[0].kind', shieldPolicy({ lists: [{ ...PEOPLE, kind: 'person' }] }))
  await refused('policy.lists[0].kind', shieldPolicy({ lists: [{ ...PEOPLE, kind: 'LITERAL' }] }))
  await refused('policy.countries[0]', shieldPolicy({ countries: ['Germany'] }))
  t.match(await refusalOf(() => set(shieldPolicy(), 'stale')), { status: 409 })
  await set(shieldPolicy({ lists: [PEOPLE] }), revision)
})

t.test(
  'the file of the workspace shows the policy without the values of lists, and a hand cannot change it',
  async t => {
    await set(shieldPolicy({ lists: [PEOPLE] }))
    const path = join(daemon.workspace, '.sandbox/config/shield.json')
    t.match(JSON.parse(readFileSync(path, 'utf8')), { enabled: true, lists: exactly({ id: 'people', kind: 'PERSON' }) })
    t.notMatch(allBytes(daemon.data), /Ottoline/)
    writeFileSync(path, '{"enabled":false}')
    t.match(await daemon.client.call('GET /shield'), { policy: { enabled: true } })
    const reports = await daemon.client.call('GET /system/manifest-problems')
    t.match(
      reports.filter(({ path: of }) => of === '.sandbox/config/shield.json'),
      exactly({ problems: exactly({ kind: 'unaccepted' }) }),
    )
    await set(shieldPolicy({ lists: [PEOPLE] }))
  },
)

t.test('a preview shows what leaves, and its restored text is the input', async t => {
  await set(shieldPolicy({ lists: [PEOPLE], detectors: { iban: 'block' } }))
  const text = `Write to ${ALICE} or Alice@Example.net, [[EMAIL_7]] and ottoline morrell; DE89 3704 0044 0532 0130 00`
  const found = await daemon.client.call('POST /shield/preview', { text })
  t.match(found, {
    masked: /^Write to \[\[EMAIL_1\]\] or \[\[EMAIL_1\]\], \[\[LITERAL_1\]\] and \[\[PERSON_1\]\]; DE89/,
    findings: exactly(
      { kind: 'EMAIL', token: '[[EMAIL_1]]', confidence: 'pattern' },
      { kind: 'EMAIL', token: '[[EMAIL_1]]' },
      { detector: 'list', source: 'people', token: '[[PERSON_1]]' },
      { detector: 'iban', action: 'block', token: '' },
    ),
    ...{ blocked: true, restored: text, trust: 'shielded' },
  })
  t.match(await daemon.client.call('POST /shield/preview', { text, provider: 'endpoint/here' }), {
    ...{ trust: 'trusted', masked: text },
  })
  const policy = shieldPolicy({ detectors: { email: 'off' } })
  t.match(await daemon.client.call('POST /shield/preview', { text: ALICE, policy }), { masked: ALICE })
  t.match(await refusalOf(() => daemon.client.call('POST /shield/preview', { text: '' })), { status: 400 })
  for (const call of ['POST /shield/preview', 'POST /shield/restore'] as const) {
    const long = { text: 'x'.repeat(200_001), conversationId: 'c' }
    t.match(await refusalOf(() => daemon.client.call(call, long)), { status: 413 }, call)
  }
})

t.test('ten thousand random texts are restored as they were', async t => {
  const { placesUnder } = await import('./support.js')
  const { previewOf } = await import('../../../plugins/shield/gateway/preview.js')
  const { compiledShield } = await import('../../../plugins/shield/policy/compiled-shield.js')
  const { TokenTable } = await import('../../../plugins/shield/tokens/token-table.js')
  const { PhraseMatcher } = await import('../../../sdk/node/access/phrase-matcher.js')
  const compiled = compiledShield(shieldPolicy({ lists: [PEOPLE], countries: ['DE', 'US', 'NL'] }))
  if ('expected' in compiled) throw new Error(compiled.expected)
  const parts = [
    ...[
      '[',
      ']',
      '[[',
      ']]',
      '\\',
      '%5B',
      '%5D',
      '_',
      '1',
      '[[EMAIL_1]]',
      '[EMAIL_2]]',
      '[[x_1',
      '\\[',
      '"',
      '{"a":"',
      '\n',
    ],
    ...[
      ALICE,
      ALICE.toUpperCase(),
      'Ottoline Morrell',
      '4111 1111 1111 1111',
      'DE89370400440532013000',
      'https://x.org/?q=',
    ],
    ...['8.8.8.8', '111222333', ' ', ' ', ' and ', 'passport C01X00T47', '+49 30 901820', 'é', '😀', 'İ'],
  ]
  let seed = 7
  const next = (most: number): number => (seed = (seed * 48_271) % 2_147_483_647) % most
  const wrong: string[] = []
  let masked = 0
  for (let nth = 0; nth < 10_000; nth++) {
    const text = Array.from({ length: 1 + next(9) }, () => parts[next(parts.length)]).join('')
    const found = previewOf(text, 'shielded', { compiled, stored: new PhraseMatcher<string>([]) }, new TokenTable())
    if (found.masked !== text) masked++
    if (found.restored !== text) wrong.push(`${JSON.stringify(text)} became ${JSON.stringify(found.restored)}`)
  }
  t.same(wrong.slice(0, 3), [])
  t.ok(masked > 5_000 && placesUnder(ALICE).length === 1)
})

t.test('stored secrets are marked for the owner alone', async t => {
  await set(shieldPolicy())
  await daemon.client.call('POST /secrets', { key: 'API_KEY', value: 'plain-words-of-a-key' })
  const encoded = Buffer.from('plain-words-of-a-key').toString('base64')
  const text = `use plain-words-of-a-key or ${encoded}`
  t.match(
    (await daemon.client.call('POST /shield/preview', { text })).masked,
    /^use \[\[SECRET_1\]\] or \[\[SECRET_2\]\]$/,
  )
  const cat = await joined(daemon, 'cat', 'collaborator')
  t.match(await cat.client.call('POST /shield/preview', { text }), { masked: text, findings: exactly() })
})

t.test('one value has one token in its conversation, which is restored, forgotten and numbered on', async t => {
  await set(shieldPolicy())
  const first = await outbound([`to ${ALICE}`, 'and Alice@example.net, bob@example.net'])
  t.match(first, {
    ...{ verdict: 'masked', counts: { EMAIL: 2 } },
    texts: exactly('to [[EMAIL_1]]', 'and [[EMAIL_1]], [[EMAIL_2]]'),
  })
  t.match((await outbound([`to ${ALICE}`])).texts, exactly('to [[EMAIL_1]]'))
  t.match((await outbound(['q=alice%40example.net'])).texts, exactly('q=[[EMAIL_1]]'), 'in another spelling')
  await inner(daemon, 'shield.inbound', { conversationId: 'c', restored: { '[[EMAIL_1]]': 2 }, unrestored: 1 })
  const { client } = daemon
  t.match(
    (await client.call('GET /shield/conversations/{id}', { id: 'c' })).tokens,
    exactly(
      { token: '[[EMAIL_1]]', hint: 'a****@*******.***', uses: 3, restored: 2 },
      { token: '[[EMAIL_2]]', uses: 1, restored: 0 },
    ),
  )
  const page = await client.call('GET /shield/conversations/{id}', { id: 'c', limit: 1 })
  t.match(page, { tokens: exactly({ token: '[[EMAIL_1]]' }), next: '[[EMAIL_1]]' })
  t.match(
    (await client.call('GET /shield/conversations/{id}', { id: 'c', after: page.next! })).tokens,
    exactly({ token: '[[EMAIL_2]]' }),
  )
  t.match(await client.call('POST /shield/restore', { conversationId: 'c', text: '[[email_2]] [[EMAIL_9]]' }), {
    ...{ text: 'bob@example.net [[EMAIL_9]]', restored: 1, unknown: exactly('[[EMAIL_9]]') },
  })
  t.match((await inner(daemon, 'shield.known', { conversationId: 'c' })).tokens, exactly({ value: ALICE }, {}))
  await inner(daemon, 'shield.copy', { from: 'c', to: 'fork' })
  t.match((await outbound([`to ${ALICE}`], { conversationId: 'fork' })).texts, exactly('to [[EMAIL_1]]'))
  t.notMatch(allBytes(daemon.data), /alice@example\.net|bob@example\.net/i)

  t.match(await refusalOf(() => client.call('DELETE /shield/conversations/{id}', { id: 'busy' })), { status: 409 })
  t.match(await client.call('DELETE /shield/conversations/{id}', { id: 'c' }), { forgotten: 2 })
  t.match(await client.call('POST /shield/restore', { conversationId: 'c', text: '[[EMAIL_1]]' }), { restored: 0 })
  t.match((await outbound([`to ${ALICE}`])).texts, exactly('to [[EMAIL_3]]'))
  await inner(daemon, 'shield.purge', { conversationId: 'c' })
  t.match((await outbound([`to ${ALICE}`])).texts, exactly('to [[EMAIL_1]]'))
})

t.test('what is sent is decided by the provider, and each fate is counted', async t => {
  const before = await daemon.client.call('GET /shield/stats', {})
  await set(
    shieldPolicy({
      ...{ providers: { 'endpoint/no': 'blocked', 'p/work': 'trusted' }, binary: 'block' },
      detectors: { 'secret-stored': 'block' },
    }),
  )
  t.match(await outbound([ALICE], { local: true }), { verdict: 'sent' })
  t.match(await outbound([ALICE], { provider: 'p', account: 'work' }), { verdict: 'sent' })
  t.match(await outbound([ALICE], { provider: 'p', account: 'home' }), { verdict: 'masked' })
  t.match(await outbound(['x'], { provider: 'endpoint/no' }), { verdict: 'refused', message: /blocks the provider/ })
  t.match(await outbound([], { provider: 'agent/tool', covered: false }), {
    verdict: 'refused',
    message: /does not pass/,
  })
  t.match(await outbound(['x'], { binary: true }), { verdict: 'refused', message: /pictures/ })
  const refused = await outbound([`new@example.net plain-words-of-a-key`])
  t.match(refused, { verdict: 'refused', message: /with SECRET$/ })
  t.notMatch(JSON.stringify(refused), /plain-words/)
  t.match((await outbound(['new@example.net'])).texts, exactly('[[EMAIL_2]]'), 'a refused request took no number')
  const { conversationId: _none, ...once } = { conversationId: undefined }
  t.match(
    (await outbound([ALICE, ALICE], { ...once, conversationId: undefined })).texts,
    exactly('[[EMAIL_1]]', '[[EMAIL_1]]'),
  )
  const { requests } = await daemon.client.call('GET /shield/stats', {})
  t.equal(requests.trusted - before.requests.trusted, 2)
  t.equal(requests.blocked - before.requests.blocked, 4)
  t.equal(requests.shielded - before.requests.shielded, 3)
  await set(shieldPolicy({ enabled: false }))
  t.match(await outbound([ALICE]), { verdict: 'sent' })
})

t.test('what is reported much is suggested to be masked, and the own domain to be allowed', async t => {
  await set(shieldPolicy({ detectors: { email: 'report' } }))
  await outbound(
    Array.from({ length: 100 }, (_, nth) => `p${nth}@corp.example`),
    { conversationId: 'many' },
  )
  const { suggestions, perDay, masked } = await daemon.client.call('GET /shield/stats', {})
  t.match(
    suggestions,
    exactly({ kind: 'mask', detector: 'email', count: 100, distinct: 100 }, { kind: 'allow', hint: 'c***.*******' }),
  )
  t.notMatch(JSON.stringify({ suggestions, perDay, masked }), /corp|p99/)
  const max = await joined(daemon, 'mo', 'viewer')
  t.match((await max.client.call('GET /shield/stats', {})).suggestions, exactly())
  t.match((await daemon.client.call('GET /shield')).policy.detectors, { email: 'report' })
  t.match((await daemon.client.call('GET /shield/stats', { to: '2020-01-01' })).requests, { total: 0 })
  t.match(await refusalOf(() => daemon.client.call('GET /shield/stats', { from: '2026-02-31' })), { status: 400 })
})

t.test('when the shield itself fails, the policy says whether a request leaves', async t => {
  const file = join(daemon.data, 'journals/shield/tokens/broken.jsonl')
  writeFileSync(file, '{"sealed":"AAAA"}\n')
  const broken = { conversationId: 'broken' }
  await set(shieldPolicy())
  t.match(await outbound([ALICE], broken), { verdict: 'refused', message: /could not read this request/ })
  await set(shieldPolicy({ onFailure: 'send' }))
  t.match(await outbound([ALICE], broken), { verdict: 'sent' })
  t.notMatch(daemon.logged.join('\n'), /alice@/)
  const { client } = daemon
  t.match(await client.call('DELETE /shield/conversations/{id}', { id: 'broken' }), { forgotten: 1 })
  t.match((await outbound([ALICE], broken)).texts, exactly('[[EMAIL_2]]'), 'a number that no lost token can have')
})

t.test('the 61st preview in a minute is refused', async t => {
  const pat = await joined(daemon, 'pat', 'collaborator')
  const ask = () => pat.client.call('POST /shield/preview', { text: 'x' })
  for (let nth = 0; nth < 60; nth++) await ask()
  t.match(await refusalOf(ask), { status: 429 })
})

/** Every byte below a folder. */
const allBytes = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')
