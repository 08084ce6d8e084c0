import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { partOf } from '../../../../sdk/node/files/byte-part.js'
import { Exports, handedOver } from '../../../../plugins/system/bundles/exports.js'
import { sweepCutOff, sweepPoints } from '../../../../plugins/system/bundles/restoring.js'
import { BundleStore } from '../../../../plugins/system/bundles/bundle-store.js'
import { refusalOf } from '../../../kernel/auth/memory.js'
import { onceIn } from '../../../support/changes.js'
import { daemonWith, folderOf, inGit, makeWorkspace, spawnDaemon, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { refusal } from '../../agent/support.js'
import { openEvents } from '../stream/events-support.js'
import { brought, leftOf, packed, placeOf, startedAnew } from './bundles-support.js'

t.test('a backup is restored into an empty sandbox: files, commits, conversations', async t => {
  const folder = folderOf(t)
  const one = { workspace: join(folder, 'one'), data: join(folder, 'one-data') }
  makeWorkspace(one.workspace, {
    'README.md': '# work\n',
    '.gitignore': 'node_modules\n.env\n',
    'src/run.sh': '#!/bin/sh\n',
    '.sandbox/config/settings.json': '{"subagentDepth": 2}\n',
  })
  makeWorkspace(join(one.workspace, 'nested'), { 'inner.txt': 'inner\n' })
  inGit(one.workspace, 'remote', 'add', 'origin', 'https://ada:hush@example.org/work.git')
  writeFileSync(join(one.workspace, 'draft.txt'), 'not committed\n')
  writeFileSync(join(one.workspace, '.env'), 'TOKEN=hush\n')
  mkdirSync(join(one.workspace, 'node_modules/x'), { recursive: true })
  writeFileSync(join(one.workspace, 'node_modules/x/index.js'), '')
  chmodSync(join(one.workspace, 'src/run.sh'), 0o755)
  symlinkSync('README.md', join(one.workspace, 'link'))
  const first = await spawnDaemon(t, one)
  await first.client.call('POST /workspace/repos/init', { path: 'begun' })
  writeFileSync(join(one.workspace, 'begun/kept.txt'), 'kept\n')
  await runTurn(first.client, 'alpha', 'write a.txt\n| from alpha\nsay written', { isolated: true })
  await runTurn(first.client, 'beta', 'say in the shared tree')
  const bundle = await packed(t, first)
  t.match(bundle, { state: 'ready', secrets: false, createdBy: 'owner@sandbox.local', doneBytes: undefined })
  if (bundle.state !== 'ready') t.fail(first.stderr())
  t.equal(bundle.sizeBytes, statSync(placeOf(first, bundle.name)).size)
  const listing = execFileSync('tar', ['tzf', placeOf(first, bundle.name)], { encoding: 'utf8' }).split('\n')
  t.equal(listing[0], 'manifest.json')
  t.notMatch(listing.join('\n'), /node_modules|\.env|workspace\/\.git\//)
  t.notMatch(execFileSync('tar', ['xzOf', placeOf(first, bundle.name)], { encoding: 'latin1' }), /hush/)

  const two = { workspace: join(folder, 'two'), data: join(folder, 'two-data') }
  mkdirSync(two.workspace)
  const second = await spawnDaemon(t, two)
  const path = brought(first, second, bundle.name)
  const check = await second.client.call('POST /bundles/restore', { path, mode: 'check' })
  t.match(check, { restarting: false, skipped: { length: 0 } })
  t.ok(check.written.some(({ path, files }) => path === 'state/agent' && files === 2))
  t.notOk(existsSync(join(two.workspace, 'README.md')), 'nothing was written')
  const events = await openEvents(t, second)
  await events.until('hello')
  const asked = Date.now()
  const report = await second.client.call('POST /bundles/restore', { path, mode: 'apply' })
  t.match(report, { restarting: true, from: { sandboxId: String } })
  t.match(await events.end(), { event: 'done', data: { reason: 'restored' } })
  const again = await startedAnew(second, asked)
  t.equal(second.process.exitCode, null, 'the process is the same')
  for (const id of ['alpha', 'beta']) {
    const [was, is] = await Promise.all(
      [first, again].map(({ client }) => client.call('GET /agents/{id}/transcript', { id })),
    )
    t.same(is!.messages, was!.messages)
  }
  t.equal(readFileSync(join(two.workspace, 'draft.txt'), 'utf8'), 'not committed\n')
  t.equal(readFileSync(join(two.workspace, 'begun/kept.txt'), 'utf8'), 'kept\n', 'also of a repository begun here')
  t.match(inGit(join(two.workspace, 'begun'), 'status', '--porcelain'), 'kept.txt')
  t.equal(readlinkSync(join(two.workspace, 'link')), 'README.md')
  t.ok(statSync(join(two.workspace, 'src/run.sh')).mode & 0o100)
  t.notOk(existsSync(join(two.workspace, '.env')))
  for (const repo of ['', 'nested']) {
    const [was, is] = [join(one.workspace, repo), join(two.workspace, repo)]
    t.equal(inGit(is, 'for-each-ref'), inGit(was, 'for-each-ref'))
    t.equal(
      inGit(is, 'status', '--porcelain').replace(/^\?\? \.sandbox.*\n/gm, ''),
      inGit(was, 'status', '--porcelain').replace(/^\?\? \.sandbox.*\n/gm, ''),
    )
  }
  t.equal(inGit(two.workspace, 'config', 'remote.origin.url').trim(), 'https://example.org/work.git')
  t.match(await again.client.call('GET /settings'), { subagentDepth: 2 })
  const [was, is] = await Promise.all(
    [first, again].map(({ client }) => client.call('GET /agents/{id}/diff', { id: 'alpha' })),
  )
  t.same(
    is!.repos.map(({ repo, changes }) => [repo, changes]),
    was!.repos.map(({ repo, changes }) => [repo, changes]),
  )
  await runTurn(again.client, 'alpha', 'append a.txt\n| more')
  t.match(await again.client.call('POST /agents/{id}/land', { id: 'alpha' }), { landed: true })
  t.equal(readFileSync(join(two.workspace, 'a.txt'), 'utf8'), 'from alpha\nmore\n')
  // Until then a warm copy may be incomplete.
  await again.terminate()
  for (const repo of ['', 'nested']) t.equal(inGit(join(two.workspace, repo), 'fsck', '--strict'), '')
})

t.test("only the owner's session may use backups", async t => {
  const daemon = await daemonWith(t, ['system'])
  const calls = [
    ['GET', '/bundles'],
    ['POST', '/bundles'],
    ['DELETE', '/bundles/x'],
    ['POST', '/bundles/restore'],
  ] as const
  const { token } = await daemon.token('land')
  for (const [method, path] of calls) {
    const sent = method === 'POST' ? { body: '{"path":"x","mode":"check"}' } : {}
    t.equal(
      (await fetch(daemon.url + path, { method, headers: { 'content-type': 'application/json' }, ...sent })).status,
      401,
    )
    t.equal(
      (
        await fetch(daemon.url + path, {
          method,
          headers: { 'content-type': 'application/json', 'x-sandbox-control': token },
          ...sent,
        })
      ).status,
      403,
    )
  }
  t.equal((await fetch(`${daemon.url}/bundles/download?name=x`)).status, 401)
  t.match(await refusal(daemon.client.call('POST /bundles', { secrets: true })), { status: 400, message: /passphrase/ })
  t.match(await refusal(daemon.client.call('POST /bundles', { passphrase: 'short' })), { status: 400 })
  t.match(await refusal(daemon.client.call('POST /bundles', { repos: ['none'] })), {
    status: 400,
    message: /expected repositories of the workspace \(root\)/,
  })
  t.match(await refusal(daemon.client.call('DELETE /bundles/{name}', { name: 'none' })), { status: 404 })
})

t.test('an encrypted backup opens only with its passphrase, and a plain one says that it has none', async t => {
  const daemon = await daemonWith(t, ['system', 'agent', 'settings', 'activity'], {
    files: { 'a.txt': 'plain words\n' },
  })
  const { client, workspace } = daemon
  await runTurn(client, 'said', 'say something')
  const { name, secrets } = await packed(t, daemon, { secrets: true, passphrase: 'correct horse battery' })
  t.match([name, secrets], exactly(/\.sealed$/, true))
  t.notMatch(readFileSync(placeOf(daemon, name), 'latin1'), /plain words|manifest/)
  const path = brought(daemon, daemon, name, 'b.sealed')
  const before = readdirSync(workspace)
  const check = (more: object) => client.call('POST /bundles/restore', { path, mode: 'check', ...more })
  t.match(await refusal(check({})), { status: 422, message: /encrypted: give its passphrase/ })
  t.match(await refusal(check({ passphrase: 'wrong horse battery' })), { status: 422, message: /does not open/ })
  t.match(await check({ passphrase: 'correct horse battery' }), {
    written: [{ path: 'a.txt' }, { path: 'state/agent', files: 1 }].toReversed(),
  })
  t.same([readdirSync(workspace), leftOf(daemon)], [before, []])
  const { events } = await client.call('GET /activity', { type: 'bundle.*' })
  t.same(
    events.map(({ type, actor, audience }) => [type, actor, audience]),
    [
      ['bundle.ready', 'owner@sandbox.local', 'maintainer'],
      ['bundle.started', 'owner@sandbox.local', 'maintainer'],
    ],
  )
})

t.test('a backup of some repositories restores those and does not change the rest', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, { 'root.txt': 'root\n', '.gitignore': 'one\ntwo\n' })
  makeWorkspace(join(where.workspace, 'one'), { 'a.txt': 'packed\n' })
  makeWorkspace(join(where.workspace, 'two'), { 'b.txt': 'packed\n' })
  const daemon = await spawnDaemon(t, where)
  await runTurn(daemon.client, 'kept', 'say kept')
  const { name } = await packed(t, daemon, { repos: ['one'] })
  for (const file of ['one/a.txt', 'two/b.txt', 'root.txt']) writeFileSync(join(where.workspace, file), 'changed\n')
  const path = brought(daemon, daemon, name)
  const asked = Date.now()
  t.match(await daemon.client.call('POST /bundles/restore', { path, mode: 'apply' }), {
    restarting: true,
    written: exactly({ path: 'one' }),
  })
  const again = await startedAnew(daemon, asked)
  await again.client.call('GET /agents')
  t.same(
    ['one/a.txt', 'two/b.txt', 'root.txt'].map(file => readFileSync(join(where.workspace, file), 'utf8')),
    ['packed\n', 'changed\n', 'changed\n'],
  )
  t.equal(
    (await again.client.call('GET /agents/{id}/transcript', { id: 'kept' })).messages.length,
    2,
    'conversations are not part of a repository',
  )
  makeWorkspace(join(where.workspace, 'one/inner'))
  t.match(await refusal(again.client.call('POST /bundles/restore', { path, mode: 'apply' })), {
    status: 409,
    message: /one\/inner would be replaced/,
  })
})

t.test('with a time only conversations that changed after it are packed', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  await runTurn(daemon.client, 'old', 'say old')
  const since = Date.now() + 1
  while (Date.now() <= since) await new Promise(setImmediate)
  await runTurn(daemon.client, 'new', 'say new')
  const { name } = await packed(t, daemon, { since })
  t.same(
    execFileSync('tar', ['tzf', placeOf(daemon, name)], { encoding: 'utf8' })
      .split('\n')
      .filter(path => path.startsWith('state/')),
    ['state/agent/new.json'],
  )
})

t.test('a running turn prevents a restore', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  const { name } = await packed(t, daemon)
  const path = brought(daemon, daemon, name)
  await daemon.client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Now?\n| yes' })
  await framesOf(daemon.client, 'asks').until(({ kind }) => kind === 'question')
  t.match(await daemon.client.call('POST /bundles/restore', { path, mode: 'check' }), { restarting: false })
  t.match(await refusal(daemon.client.call('POST /bundles/restore', { path, mode: 'apply' })), {
    status: 409,
    message: /turns are running \(asks\)/,
  })
  t.same(leftOf(daemon), [])
})

t.test('a turn that begins while a backup is unpacked prevents the restore', async t => {
  let asked = 0
  const busy = () => ({ conversations: ++asked === 1 ? [] : [{ conversation: { id: 'late' }, live: { run: 'r-1' } }] })
  const daemon = await daemonWith(t, ['system', 'activity'], { fakes: { 'agent.conversations': busy as never } })
  const { name } = await packed(t, daemon)
  const path = brought(daemon, daemon, name)
  asked = 0
  t.match(await refusal(daemon.client.call('POST /bundles/restore', { path, mode: 'apply' })), {
    status: 409,
    message: /turns are running \(late\)/,
  })
  t.same(
    leftOf(daemon).flatMap(path =>
      statSync(path).isDirectory() ? readdirSync(path).filter(name => name !== '.gitignore') : [path],
    ),
    [],
    'no restore is pending for the next start',
  )
  t.equal(asked, 2)
})

t.test('a running turn does not prevent packing', async t => {
  const daemon = await daemonWith(t, ['system', 'agent'])
  await runTurn(daemon.client, 'asks', 'say before')
  await daemon.client.call('POST /agent', { conversationId: 'asks', prompt: 'ask Now?\n| yes' })
  await framesOf(daemon.client, 'asks').until(({ kind }) => kind === 'question')
  t.match(await packed(t, daemon), { state: 'ready' })
})

const ticketOf = async ({ client }: Pick<Support, 'client'>, name: string) =>
  (await client.call('POST /system/ws-ticket', { for: 'bundle', name })).ticket

t.test('a backup is downloaded with a ticket, whole or in parts', async t => {
  const daemon = await daemonWith(t, ['system', 'activity'])
  const { name, sizeBytes } = await packed(t, daemon)
  t.match(await refusal(daemon.client.call('POST /system/ws-ticket', { for: 'bundle', name: 'none' })), { status: 404 })
  const ticket = await ticketOf(daemon, name)
  const bytes = readFileSync(placeOf(daemon, name))
  const get = (range?: string, more: { [name: string]: string } = {}, method = 'GET') =>
    fetch(`${daemon.url}/bundles/download?name=${name}&ticket=${ticket}`, {
      method,
      headers: { ...(range && { range }), ...more },
    })
  const whole = await get()
  t.match(
    [
      whole.status,
      whole.headers.get('content-type'),
      whole.headers.get('content-length'),
      whole.headers.get('content-disposition'),
    ],
    exactly(200, 'application/gzip', String(sizeBytes), `attachment; filename="${name}"`),
  )
  t.equal(whole.headers.get('cache-control'), 'no-store')
  t.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes))
  const part = async (range: string, more = {}) => {
    const response = await get(range, more)
    return [
      response.status,
      response.headers.get('content-range'),
      Buffer.from(await response.arrayBuffer()).toString('hex'),
    ]
  }
  t.same(await part('bytes=0-9'), [206, `bytes 0-9/${sizeBytes}`, bytes.subarray(0, 10).toString('hex')])
  t.same(await part('bytes=100-'), [
    206,
    `bytes 100-${sizeBytes - 1}/${sizeBytes}`,
    bytes.subarray(100).toString('hex'),
  ])
  t.same(await part('bytes=-7'), [
    206,
    `bytes ${sizeBytes - 7}-${sizeBytes - 1}/${sizeBytes}`,
    bytes.subarray(-7).toString('hex'),
  ])
  t.same((await part('bytes=5-99999999')).slice(0, 2), [206, `bytes 5-${sizeBytes - 1}/${sizeBytes}`])
  t.same((await part('bytes=0-9', { 'if-range': whole.headers.get('etag')! }))[0], 206)
  for (const [range, more] of [
    ['bytes=0-9', { 'if-range': '"another"' }],
    ['bytes=9-1', {}],
    ['lines=1-2', {}],
    ['bytes=0-1,3-4', {}],
    ['bytes=-', {}],
  ] as const)
    t.equal((await part(range, more))[0], 200, range)
  for (const range of [`bytes=${sizeBytes}-`, 'bytes=-0'])
    t.same((await part(range)).slice(0, 2), [416, `bytes */${sizeBytes}`], range)
  const head = await get(undefined, {}, 'HEAD')
  t.match([head.status, head.headers.get('content-length'), await head.text()], exactly(200, String(sizeBytes), ''))
  t.equal(
    (await daemon.client.call('GET /activity', { type: 'bundle.downloaded' })).events.length,
    1,
    'the first use of a ticket',
  )
  t.equal(
    (await fetch(`${daemon.url}/bundles/download?name=other&ticket=${ticket}`)).status,
    401,
    'only for this bundle',
  )
  t.notMatch(daemon.logged.join('\n'), ticket)
  await daemon.client.call('DELETE /bundles/{name}', { name })
  t.equal((await get()).status, 404)
})

t.test('an interrupted download resumes with the following parts', async t => {
  t.same(
    [
      partOf(undefined, 10),
      partOf('bytes=2-', 10),
      partOf('bytes=-3', 10),
      partOf('bytes=-30', 10),
      partOf('bytes=9-9', 10),
    ],
    [undefined, { first: 2, last: 9 }, { first: 7, last: 9 }, { first: 0, last: 9 }, { first: 9, last: 9 }],
  )
  for (const range of ['bytes=10-', 'bytes=-0', 'bytes=10-11'])
    t.match(await refusalOf(() => partOf(range, 10)), { status: 416 }, range)
})

t.test('packing fails when the sandbox stops, and leaves no files', async t => {
  const daemon = await daemonWith(t, ['system'], { files: { 'a.txt': 'a' } })
  const files = new Map<string, unknown>()
  const folder = folderOf(t)
  const kept = {
    read: async <T>(name: string) => structuredClone(files.get(name)) as T | undefined,
    write: async (name: string, value: unknown) => void files.set(name, structuredClone(value)),
    remove: async (name: string) => void files.delete(name),
  }
  const store = await BundleStore.open(kept, join(folder, 'exports'))
  const told: string[] = []
  const host = {
    place: { workspace: daemon.workspace, data: folder, folder, root: '', hidden: [] },
    signal: new AbortController().signal,
    log: { info: () => {}, warn: () => {}, error: () => {} },
    call: async () => ({ sandboxId: 's', version: '1' }),
    collect: () => new Promise(() => {}),
  } as never
  const exports = new Exports({ host, store, changed: () => {}, record: async type => void told.push(type) })
  const owner = { kind: 'session', actor: 'ada@example.org', role: 'owner' } as const
  const { name } = await exports.begin({}, owner)
  t.match(store.all, exactly({ name, state: 'packing', doneBytes: 0, createdBy: 'ada@example.org' }))
  t.match(await refusal(exports.begin({}, owner)), { status: 409, message: /is being packed/ })
  await exports.stop()
  t.match(store.all, exactly({ name, state: 'failed', sizeBytes: 0, detail: 'it was stopped', doneBytes: undefined }))
  t.same(
    [existsSync(join(folder, 'making')), readdirSync(join(folder, 'exports')), told],
    [false, [], ['bundle.started', 'bundle.failed']],
  )
})

t.test('a backup fails if a group cannot give its part', async t => {
  const part = { group: 'agent', version: 1, files: [] }
  const host = (parts: object[]) =>
    ({ collect: async (point: string) => (point === 'bundle.parts' ? parts : [['agent']]) }) as never
  t.same(await handedOver(host([part])), [part])
  t.match(await refusal(handedOver(host([]))), { status: 424, message: /group agent could not export/ })
})

t.test(
  'the files from before a restore are removed after a week, unless a restore is pending for the ' + 'next start',
  async t => {
    const folder = folderOf(t)
    const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
    makeWorkspace(workspace)
    const stamp = (days: number) => `${Date.now() - days * 86_400_000}-abcdef`
    const [old, young] = [stamp(7.1), stamp(6.9)]
    const [before, state] = [join(workspace, '.sandbox/restored'), join(data, 'system/restore-points')]
    for (const name of [old, young])
      for (const point of [join(before, name, 'before'), join(state, name, 'agent')])
        mkdirSync(point, { recursive: true })
    mkdirSync(join(before, young, 'new'))
    mkdirSync(join(before, 'mine'))
    const host = { place: { workspace, data, folder: join(data, 'system') } } as never
    writeFileSync(join(data, 'moves.json'), '{}')
    await sweepPoints(host)
    await sweepCutOff(host)
    t.same(
      [readdirSync(before), readdirSync(join(before, young))],
      [
        [old, young, 'mine'],
        ['before', 'new'],
      ],
    )
    rmSync(join(data, 'moves.json'))
    await daemonWith(t, ['system'], { workspace, data })
    t.same(readdirSync(join(before, young)), ['before'], 'interrupted work is removed before a restore is possible')
    await onceIn(state, () => readdirSync(state).length === 1)
    await onceIn(before, () => readdirSync(before).length === 2)
    t.same([readdirSync(before), readdirSync(state)], [[young, 'mine'], [young]])
  },
)

t.test('the three newest are kept, none longer than a week, and unknown files are removed', async t => {
  const files = new Map<string, unknown>()
  const kept = {
    read: async <T>(name: string) => files.get(name) as T | undefined,
    write: async (name: string, value: unknown) => void files.set(name, value),
    remove: async (name: string) => void files.delete(name),
  }
  const clock = { now: 1_000_000_000_000 }
  const folder = join(folderOf(t), 'exports')
  const store = await BundleStore.open(kept, folder, () => clock.now)
  const add = async () => {
    clock.now += 1000
    const { name } = await store.begin({ sizeBytes: 1, secrets: false, createdBy: 'x' }, false)
    writeFileSync(join(folder, name), 'x')
    await store.change(name, { state: 'ready' })
    return name
  }
  const names = [await add(), await add(), await add(), await add()]
  writeFileSync(join(folder, 'stranger'), '')
  await store.sweep()
  t.same(
    store.all.map(({ name }) => name),
    names.slice(1).toReversed(),
  )
  t.same(readdirSync(folder).sort(), names.slice(1))
  clock.now += 7 * 86_400_000 - 500
  await store.sweep()
  t.same(readdirSync(folder), [names[3]!])
  const { name } = await store.begin({ sizeBytes: 1, secrets: false, createdBy: 'x' }, false)
  const next = await BundleStore.open(kept, folder, () => clock.now)
  t.match(next.find(name), { state: 'failed', detail: /stopped while it was packed/ })
})
