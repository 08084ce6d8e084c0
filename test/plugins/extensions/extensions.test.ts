import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { ExtensionCatalog } from '../../../plugins/extensions/listing/catalog.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import {
  approvePending,
  daemonWithBackends,
  eraseExtension,
  isRunning,
  listedUntil,
  pidOf,
  recordNamed,
  writeExtension,
} from './support.js'

const people = new People()
people.add('owner@sandbox.local', 'owner')
people.add('vic@example.org', 'viewer')
people.add('mia@example.org', 'maintainer')
const daemon = await daemonWithBackends(t, ['activity'], { fakes: people.fakes })
people.admit(daemon)
const { client, workspace } = daemon
const BACKEND = { 'server.js': 'export const activate = () => {}\n' }
const ANY = '0'.repeat(64)
const post = async (path: string, body: object) =>
  (await daemon.fetch(path, { method: 'POST', body: JSON.stringify(body) })).status
const running = (id: string) =>
  listedUntil(daemon, ({ extensions }) => extensions.find(each => each.id === id && each.backend?.state === 'running'))
const pending = (id: string) => listedUntil(daemon, list => list.pending.find(each => each.id === id))

t.test('without a credential, with another scope and with a lower role nothing is done', async t => {
  t.equal((await fetch(`${daemon.url}/extensions`)).status, 401)
  const { client: editor } = await daemon.token('editor')
  t.match(await refusalOf(() => editor.call('GET /extensions')), { status: 403 })
  const { client: land } = await daemon.token('land')
  t.ok(await land.call('GET /extensions'))
  const asked = { publisher: 'ada', name: 'none' }
  t.match(await refusalOf(() => land.call('POST /extensions/workspace', asked)), { status: 403 })
  const vic = clientOf(daemon, 'vic@example.org')
  t.match(await refusalOf(() => vic.call('POST /extensions/workspace', asked)), { status: 403 })
  t.match(await refusalOf(() => vic.call('POST /extensions/{id}/approve', { id: 'a.b', digest: ANY })), { status: 403 })
  const mia = clientOf(daemon, 'mia@example.org')
  t.match(await refusalOf(() => mia.call('POST /extensions/{id}/remove', { id: 'a.b' })), { status: 403 })
})

t.test('bad input is refused', async t => {
  t.equal(await post('/extensions/workspace', { publisher: 'Ada', name: 'x' }), 400)
  t.equal(await post('/extensions/workspace', { publisher: 'sandbox', name: 'x' }), 400)
  t.equal(await post('/extensions/workspace', { publisher: 'ada' }), 400)
  t.equal(await post('/extensions/ada.none/approve', { digest: 'short' }), 400)
  t.equal(await post('/extensions/ada.none/approve', { digest: ANY }), 404)
  t.equal(await post('/extensions/ada.none/enabled', { enabled: true }), 404)
  t.equal(await post('/extensions/ada.none/remove', {}), 404)
  for (const what of ['removal', 'settings', 'readiness'])
    t.equal((await daemon.fetch(`/extensions/ada.none/${what}`)).status, 404, what)
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, at) => [`a.b${at}`, {}]))
  t.equal(await post('/extensions/usage', { reports: many }), 400)
})

t.test('the groups of the sandbox are built in, and cannot be switched off or removed', async t => {
  t.match(await recordNamed(daemon, 'sandbox.activity'), { source: 'builtin', enabled: true, essential: true })
  t.equal(await post('/extensions/sandbox.activity/enabled', { enabled: false }), 409)
  t.equal(await post('/extensions/sandbox.activity/enabled', { enabled: true }), 200)
  t.equal(await post('/extensions/sandbox.activity/remove', {}), 409)
  const plan = await client.call('GET /extensions/{id}/removal', { id: 'sandbox.activity' })
  t.match(plan, { source: 'builtin', blocked: /built in/, files: exactly() })
})

t.test('a new extension runs at once, and the same again is refused', async t => {
  const made = await client.call('POST /extensions/workspace', { publisher: 'ada', name: 'first' })
  t.same(made, { id: 'ada.first', dir: '.sandbox/config/workspace-extensions/first' })
  for (const file of [
    'intentic-extension.json',
    'page.ts',
    'server.ts',
    'server.test.ts',
    'tsconfig.json',
    'README.md',
  ])
    t.ok(existsSync(join(workspace, made.dir, file)), file)
  t.match(await running('ada.first'), { source: 'workspace', enabled: true, problems: exactly() })
  t.equal(await post('/extensions/workspace', { publisher: 'ada', name: 'first' }), 409)
  t.equal(await post('/extensions/workspace', { publisher: 'eve', name: 'first' }), 409)
})

t.test('what asks for a power that nobody approved waits, and its backend is gone', async t => {
  await client.call('POST /extensions/workspace', { publisher: 'ada', name: 'asks' })
  const pid = pidOf(await running('ada.asks'))
  const folder = join(workspace, '.sandbox/config/workspace-extensions/asks')
  const manifest = JSON.parse(readFileSync(join(folder, 'intentic-extension.json'), 'utf8')) as object
  const asksFor = (...daemon: string[]) =>
    writeFileSync(join(folder, 'intentic-extension.json'), JSON.stringify({ ...manifest, permissions: { daemon } }))
  asksFor('GET /activity', 'GET /info')
  const { digest: shownBefore } = await pending('ada.asks')
  asksFor('GET /activity')
  const found = await listedUntil(daemon, list =>
    list.pending.find(each => each.id === 'ada.asks' && each.digest !== shownBefore),
  )
  t.match(found, {
    added: exactly('calls GET /activity of the sandbox'),
    removed: exactly(),
    approvedBefore: true,
    dir: '.sandbox/config/workspace-extensions/asks',
  })
  await listedUntil(daemon, () => !isRunning(pid))
  const stale = { id: 'ada.asks', digest: shownBefore }
  const refused = await refusalOf(() => client.call('POST /extensions/{id}/approve', stale))
  t.match(refused, { status: 409, message: /others by now/ })
  t.equal(await post('/extensions/ada.asks/enabled', { enabled: false }), 409)
  await client.call('POST /extensions/{id}/approve', { id: 'ada.asks', digest: found.digest })
  const again = await running('ada.asks')
  const second = pidOf(again)
  t.not(second, pid)
  writeFileSync(join(folder, 'server.ts'), 'export const activate = (): void => {}\n// edited\n')
  // The list knows the new code before the old process has ended.
  const third = await listedUntil(daemon, ({ extensions }) => {
    const edited = extensions.find(
      each => each.id === 'ada.asks' && each.commit !== again.commit && each.backend?.state === 'running',
    )
    const found = edited && pidOf(edited)
    return found !== undefined && found !== second && isRunning(found)
  })
  t.ok(third, 'code that asks for no more starts again without approval')
})

t.test(
  'a new folder waits for approval by its digest, and one that is removed and put back stays approved',
  async t => {
    writeExtension(daemon, 'dropped', { publisher: 'eve', name: 'dropped', server: 'server.js' }, BACKEND)
    const found = await pending('eve.dropped')
    t.match(found, { powers: exactly('runs a backend process, contained behind a wall'), approvedBefore: false })
    await approvePending(daemon, 'eve.dropped')
    await client.call('POST /extensions/{id}/approve', { id: 'eve.dropped', digest: found.digest })
    const pid = pidOf(await running('eve.dropped'))
    eraseExtension(daemon, 'dropped')
    await listedUntil(daemon, ({ extensions }) => !extensions.some(({ id }) => id === 'eve.dropped') && !isRunning(pid))
    writeExtension(daemon, 'dropped', { publisher: 'eve', name: 'dropped', server: 'server.js' }, BACKEND)
    t.ok(await running('eve.dropped'), 'the approval was kept')
  },
)

t.test('an approval is kept for 30 days without the folder, and as long as its manifest does not parse', async t => {
  const breaks = { publisher: 'eve', name: 'breaks', server: 'server.js' }
  const folder = writeExtension(daemon, 'breaks', breaks, BACKEND)
  const invalid = async () => {
    writeFileSync(join(folder, 'intentic-extension.json'), '{"publisher": "eve", ')
    await listedUntil(daemon, ({ invalid, pending, extensions }) => {
      const listed = [...pending, ...extensions].some(({ id }) => id === 'eve.breaks')
      return !listed && invalid.some(({ dir, error }) => dir.endsWith('/breaks') && /JSON/.test(error))
    })
  }
  const { digest } = await pending('eve.breaks')
  await invalid()
  t.equal(await post('/extensions/eve.breaks/approve', { digest }), 422, 'it cannot be approved now')
  writeExtension(daemon, 'breaks', breaks)
  t.equal((await pending('eve.breaks')).digest, digest, 'a pending one waits again')
  await approvePending(daemon, 'eve.breaks')
  const pid = pidOf(await running('eve.breaks'))
  await invalid()
  eraseExtension(daemon, 'dropped')
  const records = join(daemon.data, 'journals/extensions/records.jsonl')
  const lastOf = (id: string) =>
    readFileSync(records, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { id: string; record?: object })
      .findLast(each => each.id === id)
  await listedUntil(daemon, () => !isRunning(pid) && 'goneAt' in (lastOf('eve.dropped')?.record ?? {}))
  const { now } = Date
  t.teardown(() => (Date.now = now))
  Date.now = () => now() + 31 * 24 * 60 * 60_000
  writeExtension(daemon, 'later', { publisher: 'eve', name: 'later' })
  await listedUntil(daemon, () => lastOf('eve.dropped')?.record === undefined)
  Date.now = now
  writeExtension(daemon, 'dropped', { publisher: 'eve', name: 'dropped', server: 'server.js' }, BACKEND)
  t.match(await pending('eve.dropped'), { approvedBefore: false })
  writeExtension(daemon, 'breaks', breaks)
  t.not(pidOf(await running('eve.breaks')), pid, 'nobody approved it again')
})

t.test('a folder that is no extension is listed with the reason', async t => {
  const wrong = async (name: string, manifest: object, files = {}) => {
    writeExtension(daemon, name, manifest, files)
    const dir = `.sandbox/config/workspace-extensions/${name}`
    const error = await listedUntil(daemon, list => list.invalid.find(each => each.dir === dir))
    eraseExtension(daemon, name)
    return error.error
  }
  t.match(
    await wrong('bad', { contributes: { capabilities: [{ id: 'a', kind: 'docker' }] } }),
    /capabilities\[0\]\.kind/,
  )
  t.match(await wrong('bad', { internal: {} }), /^internal/)
  t.match(await wrong('bad', { contributes: { magic: 1 } }), /contributes\.magic: no key of a manifest/)
  t.match(await wrong('bad', { permissions: { daemon: ['POST /secrets/reveal'] } }), /trust surface/)
  t.match(await wrong('bad', { publisher: 'sandbox' }), /reserved/)
  t.match(await wrong('bad', { server: '../outside.js' }), /^server: expected a path inside/)
  t.match(await wrong('bad', { version: 'one' }), /semantic version/)
  t.match(
    await wrong('bad', { contributes: { environment: { fragment: 'image' } } }, { image: 'RUN true\nFROM other\n' }),
    /FROM other/,
  )
  t.match(await wrong('bad', { publisher: 'ada', name: 'first' }), /its id ada.first is that of/)
})

t.test('of two folders with one id the approved one is used, also after a restart', async t => {
  const workspace = t.testdir()
  for (const name of ['a-second', 'z-first']) writeExtension({ workspace }, name, { publisher: 'ada', name: 'twin' })
  const used = async (folder?: string) => {
    const record = { id: 'ada.twin', source: 'workspace' as const, enabled: true, ...(folder && { folder }) }
    const kept = { get: (id: string) => (id === 'ada.twin' ? record : undefined) }
    const catalog = new ExtensionCatalog({ workspace, code: workspace, dev: workspace, kept })
    await catalog.rescan()
    return catalog
  }
  const approved = await used('z-first')
  t.match(approved.loaded.get('ada.twin')?.shown, /z-first$/)
  t.match(approved.invalid, exactly({ dir: /a-second$/, error: /its id ada.twin is that of .*z-first/ }))
  t.match((await used('gone')).loaded.get('ada.twin')?.shown, /a-second$/, 'when it is gone the first by name')
  const later = await used('z-first')
  await later.rescan(new Set(['a-second']))
  t.match(later.loaded.get('ada.twin')?.shown, /z-first$/)
})

t.test('a link that leaves the folder makes it no extension', async t => {
  const folder = writeExtension(daemon, 'linked', { publisher: 'eve', name: 'linked' })
  symlinkSync('/etc/passwd', join(folder, 'passwd'))
  const { invalid } = await listedUntil(daemon, list => list.invalid.some(({ dir }) => dir.endsWith('/linked')) && list)
  t.match(
    invalid.find(({ dir }) => dir.endsWith('/linked')),
    { error: /leaves its folder/ },
  )
  eraseExtension(daemon, 'linked')
})

t.test('an extension for another host version is incompatible', async t => {
  const manifest = { publisher: 'eve', name: 'newer', server: 'server.js', engines: { sandbox: '^9.0' }, later: true }
  writeExtension(daemon, 'newer', manifest, BACKEND)
  const found = await listedUntil(daemon, ({ extensions }) => extensions.find(({ id }) => id === 'eve.newer'))
  t.match(found, { backend: { state: 'incompatible', detail: /\^9\.0.*1\.0\.0/ }, problems: exactly(/nothing of it/) })
  eraseExtension(daemon, 'newer')
})

t.test('an extension that is switched off has no process, and runs again when it is on', async t => {
  writeExtension(daemon, 'off', { publisher: 'eve', name: 'off', server: 'server.js' }, BACKEND)
  await pending('eve.off')
  await approvePending(daemon, 'eve.off')
  const pid = pidOf(await running('eve.off'))
  await client.call('POST /extensions/{id}/enabled', { id: 'eve.off', enabled: false })
  t.notOk(isRunning(pid), 'it has ended at the answer')
  t.match(await recordNamed(daemon, 'eve.off'), { enabled: false, backend: { state: 'stopped' } })
  await client.call('POST /extensions/{id}/enabled', { id: 'eve.off', enabled: false })
  await client.call('POST /extensions/{id}/enabled', { id: 'eve.off', enabled: true })
  t.ok(await running('eve.off'))
})

t.test('a backend whose file is missing is absent until it appears', async t => {
  const folder = writeExtension(daemon, 'late', { publisher: 'eve', name: 'late', server: 'built/server.js' })
  await pending('eve.late')
  await approvePending(daemon, 'eve.late')
  t.match((await recordNamed(daemon, 'eve.late')).backend, { state: 'absent', detail: /built\/server\.js/ })
  mkdirSync(join(folder, 'built'))
  writeFileSync(join(folder, 'built/server.js'), BACKEND['server.js'])
  t.ok(await running('eve.late'))
})

t.test('declarations that cannot be honoured are problems', async t => {
  writeExtension(daemon, 'odd', {
    publisher: 'eve',
    name: 'odd',
    permissions: { sandbox: ['fs:burn:*', 'GET /nowhere'], daemon: ['GET /activity', 'POST /extensions/**'] },
    contributes: {
      commands: [{ command: 'odd.run', title: 'Run', when: 'a == ' }],
      processes: [{ name: 'worker', command: 'no-such-program-here --x' }],
      automationTemplates: [{ id: 't', title: 'T', prompt: 'x', trigger: { kind: 'schedule' } }],
      listener: {
        provider: 'chat',
        events: [{ type: 'message', label: 'Message' }],
        automation: {
          label: 'On a message',
          channel: { label: 'Channel', placeholder: '#general' },
          starterPrompt: 'Answer it.',
        },
      },
    },
  })
  await pending('eve.odd')
  await approvePending(daemon, 'eve.odd')
  const { problems } = await recordNamed(daemon, 'eve.odd')
  for (const expected of [
    /fs:burn/,
    /GET \/nowhere matches no route/,
    /extensions\/\*\*/,
    /odd\.run/,
    /no-such-program/,
    /messages of chat start nothing: this sandbox has no automations/,
    /automations are not offered/,
  ])
    t.ok(
      problems.some(problem => expected.test(problem)),
      String(expected),
    )
  t.ok(problems.some(problem => /trigger\.cron/.test(problem)))
})

t.test('uses that pages report are counted by declared entry', async t => {
  const entry = 'GET /activity'
  writeExtension(daemon, 'used', { publisher: 'eve', name: 'used', permissions: { sandbox: [entry] } })
  await pending('eve.used')
  await approvePending(daemon, 'eve.used')
  const report = { 'eve.used': { [entry]: 3, 'GET /other': 5 }, 'no.such': { [entry]: 1 } }
  await client.call('POST /extensions/usage', { reports: report })
  await client.call('POST /extensions/usage', { reports: { 'eve.used': { [entry]: 2 } } })
  const { usage } = await recordNamed(daemon, 'eve.used')
  t.same(Object.keys(usage), [entry])
  t.match(usage[entry], { calls: 5, last: /^\d{4}-/ })
})
