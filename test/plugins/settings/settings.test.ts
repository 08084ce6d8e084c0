import { execFileSync } from 'node:child_process'
import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { KERNEL } from '../../../kernel/events.js'
import type { Rule, Settings, SettingsEvents, SettingsGiven } from '../../../plugins/settings/contract.js'
import { CurrentSettings, DEFAULTS } from '../../../plugins/settings/current-settings.js'
import { SettingsFile } from '../../../plugins/settings/settings-file.js'
import { TEMPORARY } from '../../../sdk/node/files/files.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace, spawnDaemon, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'

const FILE = '.sandbox/config/settings.json'
const WRITES = ['/settings', '/settings/patch']

const fileOf = ({ workspace }: { workspace: string }): string => join(workspace, FILE)
const kept = (daemon: { workspace: string }): { [key: string]: unknown } =>
  JSON.parse(readFileSync(fileOf(daemon), 'utf8'))
const write = (daemon: { workspace: string }, text: string | Uint8Array): void => {
  mkdirSync(join(daemon.workspace, '.sandbox/config'), { recursive: true })
  writeFileSync(fileOf(daemon), text)
}
const post = async (daemon: Support, path: string, body: string, headers: { [name: string]: string } = {}) => {
  const response = await daemon.fetch(path, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as { message: string; errors?: { path: string }[] } }
}
/** A store that keeps nothing. */
const memory = () => {
  const kept = new Map<string, unknown>()
  return {
    get: async <T>(key: string) => kept.get(key) as T | undefined,
    set: async (key: string, value: unknown) => void kept.set(key, value),
  }
}
const warnings = (daemon: Support): string[] => daemon.logged.filter(line => line.includes('do not take effect'))

t.test('without a credential nothing is read or written', async t => {
  const daemon = await daemonWith(t, ['settings'])
  t.equal((await fetch(`${daemon.url}/settings`)).status, 401)
  for (const path of WRITES) {
    const sent = await fetch(daemon.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    t.equal(sent.status, 401, path)
  }
  t.throws(() => lstatSync(fileOf(daemon)), { code: 'ENOENT' })
})

t.test('a control token reads by its scope and never writes', async t => {
  const daemon = await daemonWith(t, ['settings'])
  for (const scope of ['read', 'drive', 'land'] as const) {
    const { client } = await daemon.token(scope)
    t.same(await client.call('GET /settings'), DEFAULTS, scope)
    t.match(await refusalOf(() => client.call('POST /settings', {})), { status: 403, message: 'sign in as' })
    t.match(await refusalOf(() => client.call('POST /settings/patch', {})), { status: 403, message: 'sign in as' })
  }
  const { client } = await daemon.token('editor')
  t.match(await refusalOf(() => client.call('GET /settings')), { status: 403, message: 'editor' })
  t.throws(() => lstatSync(fileOf(daemon)), { code: 'ENOENT' })
})

t.test('an unknown key and an invalid value are refused by name, and nothing is written', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const bad: [key: string, value: unknown][] = [
    ['terseOutput', 'yes'],
    ['terseHoldout', 2],
    ['terseHoldout', -0.1],
    ['iqSearchHoldout', '0.5'],
    ['outputHoldout', 1.01],
    ['stableSystemPrompt', 1],
    ['outputCleaners', 'nothing-such'],
    ['outputCleaners', 'git,-progress'],
    ['outputCleaners', 'a'.repeat(201)],
    ['x', 1],
    ['toString', 1],
    ['workspaceMap', 'yes'],
    ['agentRetentionDays', -1],
    ['agentRetentionDays', 366],
    ['agentRetentionDays', '3'],
    ['agentRetentionDays', [3]],
    ['agentRetentionDays', null],
    ['autoResumeOnRestart', 1],
    ['autoResumeOnRestart', null],
    ['resumeAfterOutage', 'yes'],
    ['resumeAfterOutage', null],
    ['subagentsAtOnce', 0],
    ['subagentsAtOnce', 201],
    ['subagentsAtOnce', '20'],
    ['subagentsPerTurn', 0],
    ['subagentsPerTurn', 2001],
    ['subagentDepth', 0],
    ['subagentDepth', 11],
    ['subagentDepth', true],
    ['network', 'none'],
    ['network', true],
    ['networkOnly', 'yes'],
    ['networkAllow', 'localhost:1'],
    ['networkAllow', Array(201).fill('a.example')],
  ]
  for (const [key, value] of bad) {
    const body = JSON.stringify({ agentRetentionDays: 2, [key]: value })
    t.match(
      await post(daemon, '/settings', body),
      { status: 400, body: { message: key, errors: exactly({ path: key }) } },
      body,
    )
    t.match(
      await post(daemon, '/settings/patch', `{"set":${body}}`),
      { status: 400, body: { errors: exactly({ path: `set.${key}` }) } },
      body,
    )
  }
  t.equal((await post(daemon, '/settings', '{"agentRetentionDays":1e999}')).status, 400)
  t.equal((await post(daemon, '/settings', '{"__proto__":{"agentRetentionDays":2}}')).status, 400)
  for (const body of [
    '{"sets":{}}',
    '{"set":[]}',
    '{"set":null}',
    '{"unset":["x"]}',
    '{"unset":["workspace"]}',
    '{"unset":"agentRetentionDays"}',
    '{"revision":1}',
    '{"agentRetentionDays":2}',
  ]) {
    t.equal((await post(daemon, '/settings/patch', body)).status, 400, body)
  }
  t.match(await post(daemon, '/settings/patch', '{"set":{"agentRetentionDays":2},"unset":["agentRetentionDays"]}'), {
    status: 400,
    body: { message: 'in both' },
  })
  t.same(await daemon.client.call('GET /settings'), DEFAULTS)
  t.throws(() => lstatSync(fileOf(daemon)), { code: 'ENOENT' })
})

t.test('invalid and forbidden entries of what conversations reach are refused by entry', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const own = new URL(daemon.url).port
  for (const entry of [
    'localhost',
    'not a host',
    '',
    '10.0.0.0/99',
    'a.example:0',
    '169.254.169.254',
    `localhost:${own}`,
    `127.0.0.1:${own}`,
    `[::1]:${own}`,
  ]) {
    const body = JSON.stringify({ networkAllow: ['a.example', entry] })
    t.match(
      await post(daemon, '/settings', body),
      { status: 400, body: { errors: exactly({ path: 'networkAllow[1]' }) } },
      body,
    )
    t.match(
      await post(daemon, '/settings/patch', `{"set":${body}}`),
      { status: 400, body: { errors: exactly({ path: 'set.networkAllow[1]' }) } },
      body,
    )
  }
  t.same(await daemon.client.call('GET /settings'), DEFAULTS)
  const set = {
    network: 'shared',
    networkAllow: ['localhost:5432', '*.example.org', '10.0.0.0/8:443'],
    networkOnly: true,
  } as const
  await daemon.client.call('POST /settings/patch', { set: { ...set, networkAllow: [...set.networkAllow] } })
  t.same(await daemon.client.call('GET /settings'), { ...DEFAULTS, ...set })
})

t.test('an invalid entry in the file allows nothing, and is reported', async t => {
  const daemon = await daemonWith(t, ['settings', 'system'])
  write(daemon, '{"networkAllow":["a.example","localhost"],"networkOnly":true}')
  t.same(await daemon.client.call('GET /settings'), { ...DEFAULTS, networkOnly: true })
  t.match(
    JSON.stringify(await daemon.client.call('GET /system/manifest-problems')),
    /networkAllow: its value does not fit, so the default \[\] holds/,
  )
})

t.test('what came with the code widens nothing until a maintainer saves it', async t => {
  const daemon = await daemonWith(t, ['settings', 'system'])
  const { client } = daemon
  const read = async () => {
    const { network, networkAllow, networkOnly } = await client.call('GET /settings')
    return { network, networkAllow, networkOnly }
  }
  const wide = { network: 'shared', networkAllow: ['localhost:5432', 'a.example'], agentRetentionDays: 9 } as const
  write(daemon, JSON.stringify(wide))
  t.same(await read(), { network: 'own', networkAllow: [], networkOnly: false })
  t.equal((await client.call('GET /settings')).agentRetentionDays, 9, 'the rest of the file is in force')
  const told = JSON.stringify(await client.call('GET /system/manifest-problems'))
  for (const sentence of [
    /"unaccepted"/,
    /network: shared does not count until a maintainer saves it/,
    /networkAllow: localhost:5432 does not count/,
    /networkAllow: a\.example does not/,
  ])
    t.match(told, sentence)

  await client.call('POST /settings/patch', { set: { agentRetentionDays: 8 } })
  t.same(
    await read(),
    { network: 'own', networkAllow: [], networkOnly: false },
    'who saves something else accepts nothing',
  )
  await client.call('POST /settings/patch', { set: { networkAllow: ['a.example'], networkOnly: true } })
  t.same(await read(), { network: 'own', networkAllow: ['a.example'], networkOnly: true })

  write(daemon, JSON.stringify({ networkAllow: ['a.example', 'b.example'] }))
  t.same(await read(), { network: 'own', networkAllow: ['a.example'], networkOnly: true }, 'what was narrow stays so')
  t.match(JSON.stringify(await client.call('GET /system/manifest-problems')), /networkOnly: false does not count/)
  write(daemon, '{"networkAllow":[],"networkOnly":true}')
  t.same(await read(), { network: 'own', networkAllow: [], networkOnly: true }, 'a file may narrow')
  await client.call('POST /settings/patch', { unset: ['networkAllow', 'networkOnly'] })
  t.same(await read(), { network: 'own', networkAllow: [], networkOnly: false })
})

t.test('what a maintainer saved holds after a kill', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const one = await spawnDaemon(t, where)
  await one.client.call('POST /settings/patch', { set: { network: 'shared', networkAllow: ['a.example'] } })
  await one.kill9()
  write(where, '{"network":"shared","networkAllow":["a.example","b.example"]}')
  const two = await spawnDaemon(t, where)
  t.match(await two.client.call('GET /settings'), { network: 'shared', networkAllow: exactly('a.example') })
  t.equal((await two.client.call('GET /settings')).networkAllow.length, 1)
})

t.test('every setting is read, written whole and listed with its values, and the cleaners by name', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const whole = {
    ...DEFAULTS,
    ...{ stableSystemPrompt: true, terseOutput: true, terseHoldout: 0.25, iqSearch: true, iqSearchHoldout: 1 },
    ...{ workspaceMap: true, outputCleaners: '-logs, -git', outputHoldout: 0.5 },
    ...{
      draftLandedMessages: false,
      changelogRepos: ['root', 'libs/tool'],
      autoTier: 'on' as const,
      autoTierEagerness: 'eager' as const,
    },
    autoFastModels: ['endpoint/local:small'],
    admission: { ...DEFAULTS.admission, webchat: 'hold' as const },
  } satisfies Settings
  t.same(await daemon.client.call('POST /settings', whole), { ok: true })
  t.same(await daemon.client.call('GET /settings'), whole)
  const { fields, cleaners } = await daemon.client.call('GET /settings/schema')
  t.same(fields.map(({ key }) => key).toSorted(), Object.keys(DEFAULTS).toSorted())
  t.match(
    fields.filter(({ key }) => key.endsWith('Holdout')),
    exactly(...Array(3).fill({ type: 'number', min: 0, max: 1, default: 0, changed: true })),
  )
  t.ok(cleaners.length >= 12)
  for (const { id } of cleaners)
    t.match(
      await daemon.client.call('POST /settings/patch', { set: { outputCleaners: id } }),
      { settings: { outputCleaners: id } },
      id,
    )
})

t.test('a read takes any query', async t => {
  const daemon = await daemonWith(t, ['settings'])
  t.equal((await daemon.fetch('/settings?at=1')).status, 200)
})

t.test('settings are written whole: a key left out takes its default, and a key of no setting stays', async t => {
  const daemon = await daemonWith(t, ['settings'])
  write(daemon, '{"laterFlag":true,"laterSwitch":true,"laterList":["a"]}')
  t.same(await daemon.client.call('POST /settings', { agentRetentionDays: 0.5, autoResumeOnRestart: true }), {
    ok: true,
  })
  const now = { ...DEFAULTS, agentRetentionDays: 0.5, autoResumeOnRestart: true }
  t.same(await daemon.client.call('GET /settings'), now)
  t.same(kept(daemon), { laterFlag: true, laterSwitch: true, laterList: ['a'], ...now })
  await daemon.client.call('POST /settings', {})
  t.same(await daemon.client.call('GET /settings'), DEFAULTS)
  t.equal(kept(daemon).laterFlag, true)
})

t.test('a patch changes what it names and no more', async t => {
  const daemon = await daemonWith(t, ['settings'])
  write(daemon, '{"agentRetentionDays":5,"autoResumeOnRestart":"often","laterSwitch":true,"laterMap":true}')
  const left = { autoResumeOnRestart: 'often', laterSwitch: true, laterMap: true }
  t.same((await daemon.client.call('POST /settings/patch', { unset: ['agentRetentionDays'] })).settings, DEFAULTS)
  t.same(kept(daemon), left, 'what does not fit is left to the person')
  const { settings, revision } = await daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 9 } })
  t.same(settings, { ...DEFAULTS, agentRetentionDays: 9 })
  t.same(kept(daemon), { ...left, agentRetentionDays: 9 })
  const { ino } = statSync(fileOf(daemon))
  t.same(await daemon.client.call('POST /settings/patch', {}), { settings, revision })
  t.equal(statSync(fileOf(daemon)).ino, ino, 'nothing to change writes nothing')
})

t.test('a write on a stale revision is refused and changes nothing', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const tag = async () => (await daemon.fetch('/settings')).headers.get('etag')!
  const first = await tag()
  const { revision } = await daemon.client.call('POST /settings/patch', {
    set: { agentRetentionDays: 4 },
    revision: first.replaceAll('"', ''),
  })
  t.equal(await tag(), `"${revision}"`, 'the revision is the tag of a read')
  t.match(await post(daemon, '/settings', '{}', { 'if-match': first }), {
    status: 409,
    body: { message: 'have changed' },
  })
  t.match(
    await post(daemon, '/settings', '{}', { 'if-match': `W/"${revision}"` }),
    { status: 409 },
    'a weak tag is none',
  )
  t.match(
    await refusalOf(() =>
      daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 9 }, revision: 'x' }),
    ),
    { status: 409 },
  )
  t.equal((await daemon.client.call('GET /settings')).agentRetentionDays, 4)
  t.equal(
    (await post(daemon, '/settings', '{"agentRetentionDays":6}', { 'if-match': `"other", "${revision}"` })).status,
    200,
  )
  t.equal((await post(daemon, '/settings', '{"agentRetentionDays":7}', { 'if-match': '*' })).status, 200)
  t.equal((await daemon.fetch('/settings', { headers: { 'if-none-match': await tag() } })).status, 304)
})

t.test('a hand-edited file takes effect at the next read, and its invalid entries are reported once', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const read = () => daemon.client.call('GET /settings')
  t.same(await read(), DEFAULTS)
  write(
    daemon,
    '\ufeff{"autoResumeOnRestart":true,"agentRetentionDays":"soon","hurry":"s3cret","laterSearch":7,'
      + '"__proto__":{"agentRetentionDays":1}}',
  )
  for (let n = 0; n < 3; n++) t.same(await read(), { ...DEFAULTS, autoResumeOnRestart: true })
  t.equal(warnings(daemon).length, 1)
  t.match(
    warnings(daemon)[0],
    /agentRetentionDays: its value does not fit.*default 3.*hurry: no setting.*laterSearch: no setting/,
  )
  t.notMatch(warnings(daemon)[0], 's3cret')
  write(daemon, '{"agentRetentionDays":8}')
  t.same(await read(), { ...DEFAULTS, agentRetentionDays: 8 })
  rmSync(fileOf(daemon))
  t.same(await read(), DEFAULTS)
  t.equal(warnings(daemon).length, 1)
})

t.test('a file that holds no settings reads as the defaults, and is not written over', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const deep = '['.repeat(60_000) + ']'.repeat(60_000)
  const texts = [
    '',
    '{"agentRetentionDays":7',
    '<<<<<<< HEAD\n{}',
    '[]',
    'null',
    '7',
    `{"x":${deep}}`,
    Buffer.from('{"x":"\xff"}', 'latin1'),
    ' '.repeat(300_000),
  ]
  for (const text of texts) {
    write(daemon, text)
    t.same(await daemon.client.call('GET /settings'), DEFAULTS)
    for (const path of WRITES) t.match(await post(daemon, path, '{}'), { status: 422, body: { message: FILE } })
    t.same(readFileSync(fileOf(daemon)), Buffer.from(text))
  }
})

t.test('nothing is read or written through a link, or in place of something that is not a file', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const outside = join(daemon.workspace, '..', 'outside')
  const [top, folder] = [join(daemon.workspace, '.sandbox'), join(daemon.workspace, '.sandbox/config')]
  const set: [what: string, message: RegExp, make: () => void][] = [
    ['the top is a link', /^\.sandbox is a link/, () => symlinkSync(outside, top)],
    ['the top is a link that leads nowhere', /^\.sandbox is a link/, () => symlinkSync(join(outside, 'none'), top)],
    ['the top is a file', /^\.sandbox is no folder/, () => writeFileSync(top, '')],
    [
      'the folder is a link',
      /config is a link/,
      () => {
        mkdirSync(top)
        symlinkSync(join(outside, 'config'), folder)
      },
    ],
    [
      'the folder is a file',
      /config is no folder/,
      () => {
        mkdirSync(top)
        writeFileSync(folder, '')
      },
    ],
    [
      'the file is a link',
      /json is a link/,
      () => {
        mkdirSync(folder, { recursive: true })
        symlinkSync(join(outside, 'config/settings.json'), fileOf(daemon))
      },
    ],
    [
      'the file is a link that leads nowhere',
      /json is a link/,
      () => {
        mkdirSync(folder, { recursive: true })
        symlinkSync(join(outside, 'new.json'), fileOf(daemon))
      },
    ],
    ['the file is a folder', /json is no file/, () => mkdirSync(fileOf(daemon), { recursive: true })],
    [
      'the file is a pipe',
      /json is no file/,
      () => {
        mkdirSync(folder, { recursive: true })
        execFileSync('mkfifo', [fileOf(daemon)])
      },
    ],
  ]
  for (const [what, message, make] of set) {
    for (const path of [top, outside]) rmSync(path, { recursive: true, force: true })
    mkdirSync(join(outside, 'config'), { recursive: true })
    writeFileSync(join(outside, 'config/settings.json'), '{"agentRetentionDays":9}')
    make()
    t.same(await daemon.client.call('GET /settings'), DEFAULTS, what)
    t.match(
      await refusalOf(() => daemon.client.call('POST /settings', { agentRetentionDays: 1 })),
      { status: 422, message },
      what,
    )
    t.same([readdirSync(outside), readdirSync(join(outside, 'config'))], [['config'], ['settings.json']], what)
    t.equal(readFileSync(join(outside, 'config/settings.json'), 'utf8'), '{"agentRetentionDays":9}', what)
  }
})

t.test('a link put in the way of a write after it was looked at is not followed', async t => {
  const workspace = realpathSync(t.testdir({ outside: {} }))
  const file = new SettingsFile(workspace)
  symlinkSync(join(workspace, 'outside'), join(workspace, '.sandbox'))
  t.match(await refusalOf(() => file.save({ keys: {}, mode: 0o644 })), { status: 422 })
  t.same(readdirSync(join(workspace, 'outside')), [])
})

t.test('the file keeps its permission bits, and a new one can be read by all', async t => {
  const daemon = await daemonWith(t, ['settings'])
  await daemon.client.call('POST /settings', {})
  t.equal(statSync(fileOf(daemon)).mode & 0o777, 0o644)
  execFileSync('chmod', ['660', fileOf(daemon)])
  await daemon.client.call('POST /settings/patch', { set: { agentRetentionDays: 1 } })
  t.equal(statSync(fileOf(daemon)).mode & 0o777, 0o660)
})

t.test('a full disk and a read-only folder are reported, and leave the settings as they were', async t => {
  const workspace = realpathSync(t.testdir())
  for (const [code, status] of [
    ['ENOSPC', 413],
    ['EROFS', 424],
  ] as const) {
    const told: SettingsEvents['settings.changed'][] = []
    const file = new SettingsFile(workspace, async () => {
      throw Object.assign(new Error(code), { code })
    })
    const current = new CurrentSettings(file, memory(), { warn: () => {} }, what => told.push(what))
    t.match(await refusalOf(() => current.change({ set: { agentRetentionDays: 1 }, by: 'a' })), { status })
    const rules: Rule[] = [
      { id: 'a', label: 'A', moment: 'agent.finished', action: { kind: 'verdict', verdict: 'allow' } },
    ]
    t.match(await refusalOf(() => current.change({ set: { rules }, by: 'a' })), { status })
    t.same([await current.read(), told], [DEFAULTS, []])
  }
})

t.test('settings that would not be read again are not written', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const { client } = daemon
  await client.call('POST /settings', { agentRetentionDays: 4 })
  const rules = Array.from({ length: 50 }, (_, at): Rule => {
    const when = { paths: Array.from({ length: 20 }, (_, n) => `${n}/${'x'.repeat(900)}`) }
    return { id: `r${at}`, label: 'R', moment: 'turn.ending', when, action: { kind: 'instruct', text: 'x' } }
  })
  t.match(await refusalOf(() => client.call('POST /settings/patch', { set: { rules } })), {
    status: 413,
    message: /the settings would have \d+ bytes: expected at most 262144/,
  })
  t.same(await client.call('GET /settings'), { ...DEFAULTS, agentRetentionDays: 4 })
})

t.test('a fault of the moment fails the read and is not taken for an empty file', async t => {
  const current = new CurrentSettings(
    {
      load: async () => {
        throw new Error('EMFILE')
      },
      save: async () => {},
    },
    memory(),
    { warn: () => {} },
    () => t.fail('nothing changed'),
  )
  await t.rejects(current.read(), /EMFILE/)
})

t.test('other groups get the changed keys and who changed them', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const told: SettingsEvents['settings.changed'][] = []
  daemon.kernel.events.on(
    'settings.changed',
    'test',
    async (_, input) => void told.push((input as { data: SettingsEvents['settings.changed'] }).data),
  )
  const { client } = daemon
  await client.call('GET /settings')
  await client.call('POST /settings', { agentRetentionDays: 4, autoResumeOnRestart: true })
  await client.call('POST /settings', { agentRetentionDays: 4, autoResumeOnRestart: true })
  write(daemon, '{"agentRetentionDays":6}')
  await client.call('POST /settings/patch', { unset: ['agentRetentionDays'] })
  t.same(told, [
    { keys: ['agentRetentionDays', 'autoResumeOnRestart'], by: 'owner@sandbox.local' },
    { keys: ['agentRetentionDays', 'autoResumeOnRestart'] },
    { keys: ['agentRetentionDays'], by: 'owner@sandbox.local' },
  ])
})

t.test('changes at once of one key and the others lose none, and none of a key of no setting', async t => {
  const daemon = await daemonWith(t, ['settings'])
  const foreign = { laterMap: true, laterSwitch: true, laterList: ['a'] }
  write(daemon, JSON.stringify({ ...foreign, laterSearch: 'yes' }))
  const { client } = daemon
  const rounds: SettingsGiven[] = Array.from({ length: 20 }, (_, n) => n + 1).flatMap(n => [
    { agentRetentionDays: n },
    { autoResumeOnRestart: n % 2 === 0 },
    { resumeAfterOutage: n % 2 === 1 },
  ])
  const answers = await Promise.all(rounds.map(set => client.call('POST /settings/patch', { set })))
  for (const [n, { settings }] of answers.entries()) t.match(settings, rounds[n]!, 'an answer holds what it set')
  const { agentRetentionDays, autoResumeOnRestart, resumeAfterOutage } = await client.call('GET /settings')
  t.same(kept(daemon), { ...foreign, laterSearch: 'yes', agentRetentionDays, autoResumeOnRestart, resumeAfterOutage })
  for (const last of [
    { ...DEFAULTS, agentRetentionDays: 90, autoResumeOnRestart: true },
    { ...DEFAULTS, agentRetentionDays: 91, resumeAfterOutage: true, subagentDepth: 7 },
  ] satisfies Settings[]) {
    const sets = Object.entries(last).map(([key, value]): SettingsGiven => ({ [key]: value }))
    await Promise.all(sets.map(set => client.call('POST /settings/patch', { set })))
    t.same(await client.call('GET /settings'), last)
    t.same(kept(daemon), { ...foreign, laterSearch: 'yes', ...last })
  }
})

t.test('settings hold at the next start, and the group works in a process of its own', async t => {
  const daemon = await daemonWith(t, ['settings'], { apart: ['settings'] })
  const { headers } = await daemon.fetch('/settings')
  t.equal(
    (await post(daemon, '/settings', '{"agentRetentionDays":30}', { 'if-match': headers.get('etag')! })).status,
    200,
  )
  t.equal((await post(daemon, '/settings', '{}', { 'if-match': headers.get('etag')! })).status, 409)
  await t.test('the next start', async t => {
    const again = await daemonWith(t, ['settings'], { workspace: daemon.workspace })
    t.same(await again.client.call('GET /settings'), { ...DEFAULTS, agentRetentionDays: 30 })
  })
})

t.test('another group reads the settings as they hold', async t => {
  const { kernel, client } = await daemonWith(t, ['settings'])
  await client.call('POST /settings', { autoResumeOnRestart: true })
  t.same(await kernel.calls.answer('settings.get', {}, KERNEL), { ...DEFAULTS, autoResumeOnRestart: true })
})

t.test('what a cut off write left behind is gone after a start', async t => {
  const workspace = realpathSync(
    t.testdir({
      workspace: {
        '.sandbox': { config: { [`${TEMPORARY}old`]: '{', [`${TEMPORARY}new`]: '{', 'personas.json': '{}' } },
      },
    }),
  )
  const folder = join(workspace, 'workspace/.sandbox/config')
  utimesSync(join(folder, `${TEMPORARY}old`), 1, 1)
  await new SettingsFile(join(workspace, 'workspace')).sweep()
  t.same(readdirSync(folder).sort(), [`${TEMPORARY}new`, 'personas.json'])
  await new SettingsFile(join(workspace, 'none')).sweep()
})

t.test('a kill at any moment of a write leaves a whole file with all that was acknowledged', async t => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  write({ workspace }, '{"laterMap":true}')
  for (const [round, answers] of [1, 7, 20].entries()) {
    const daemon = await spawnDaemon(t, { workspace, data })
    const patch = (set: SettingsGiven) => daemon.once.call('POST /settings/patch', { set })
    const [days, resumes] = [
      { sent: 0, acknowledged: 0 },
      { wanted: round % 2 === 0, acknowledged: false },
    ]
    const enough = Promise.withResolvers<void>()
    let seen = 0
    const told = () => {
      if (++seen === answers) enough.resolve()
    }
    const count = async () => {
      for (let n = answers * 10; ; n++) {
        days.sent = n
        await patch({ agentRetentionDays: n })
        days.acknowledged = n
        told()
      }
    }
    // Once only, so that a later change of the other key that loses it is seen.
    const turn = async () => {
      await patch({ autoResumeOnRestart: resumes.wanted })
      resumes.acknowledged = true
      told()
    }
    const writers = [count(), turn()]
    const over = Promise.allSettled(writers)
    await Promise.race([enough.promise, writers[0]])
    await daemon.kill9()
    await over
    const found = kept({ workspace })
    t.equal(found.laterMap, true)
    const n = Number(found.agentRetentionDays)
    if (days.acknowledged)
      t.ok(n >= days.acknowledged && n <= days.sent, `found ${n}, acknowledged ${days.acknowledged}, sent ${days.sent}`)
    if (resumes.acknowledged) t.equal(found.autoResumeOnRestart, resumes.wanted)
  }
  const daemon = await spawnDaemon(t, { workspace, data })
  await daemon.client.call('GET /settings')
  t.same(readdirSync(join(workspace, '.sandbox/config')), ['settings.json'])
})
