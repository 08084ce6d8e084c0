import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { walled } from '../../attack/support.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { inGit } from '../../support/daemon.js'
import { inner } from '../agent/support.js'
import { clientOf, People } from '../../support/people.js'
import { runTurn } from '../../support/turns.js'
import { committed } from '../../support/servers/git-server.js'
import { exactly } from '../../support/lists.js'
import { daemonWithBackends, isRunning, listedUntil, pidOf, recordNamed } from './support.js'

const people = new People()
people.add('vic@example.org', 'viewer', [])
const daemon = await daemonWithBackends(t, ['activity', 'agent', 'agents', 'secrets'], { fakes: people.fakes })
people.admit(daemon)
const { client, workspace, data } = daemon
const id = 'ada.notes'
const checkout = join(workspace, 'notes')
const copies = join(data, 'extensions/dev', id)
const says = (word: string) =>
  `export const activate = host => {\n  host.routes.handle('GET /word', {}, () => ({ body: '${word}' }))\n}\n`
const write = (word: string, manifest: object = {}, folder = checkout): void => {
  const base = { publisher: 'ada', name: 'notes', version: '1.0.0', server: 'dist/server.js' }
  mkdirSync(join(folder, 'dist'), { recursive: true })
  writeFileSync(join(folder, 'intentic-extension.json'), JSON.stringify({ ...base, ...manifest }))
  writeFileSync(join(folder, 'dist/server.js'), says(word))
}
mkdirSync(checkout)
inGit(checkout, 'init', '-q', '-b', 'main')
write('committed')
const ref = committed(checkout)
const status = async (call: Promise<unknown>) => (await refusalOf(() => call)).status
const running = () =>
  listedUntil(daemon, ({ extensions }) => extensions.find(each => each.id === id && each.backend?.state === 'running'))
const word = async () => (await daemon.fetch(`/x/${id}/word`)).json()
const dev = (path: string, digest?: string) =>
  client.call('POST /extensions/{id}/dev', { id, path, ...(digest !== undefined && { digest }) })
const reload = (digest?: string) =>
  client.call('POST /extensions/{id}/dev/reload', { id, ...(digest !== undefined && { digest }) })

t.test('only maintainers run extensions from folders, and only those that are installed', async t => {
  const { client: lander } = await daemon.token('land')
  t.equal((await fetch(`${daemon.url}/extensions/dev`)).status, 401)
  t.equal(await status(lander.call('GET /extensions/dev')), 403)
  t.equal(await status(lander.call('POST /extensions/{id}/dev', { id, path: 'notes' })), 403)
  t.equal(await status(lander.call('POST /extensions/{id}/dev/reload', { id })), 403)
  t.equal(await status(lander.call('DELETE /extensions/{id}/dev', { id })), 403)
  t.equal(await status(dev('')), 400)
  t.equal(await status(dev('notes')), 404)
  t.equal(await status(client.call('POST /extensions/{id}/dev', { id: 'sandbox.activity', path: 'notes' })), 409)
  t.equal(await status(client.call('DELETE /extensions/{id}/dev', { id })), 404)
  t.same(await client.call('GET /extensions/dev'), { checkouts: [] })
})

t.test('a folder that cannot run is refused, and what runs goes on', async t => {
  const { digest } = await client.call('POST /extensions/install/preview', { url: 'notes', ref })
  for await (const _ of await client.call('POST /extensions/install', { url: 'notes', ref, digest }));
  const pid = pidOf(await running())
  t.equal(await status(reload()), 409, 'it runs its commit')
  for (const path of ['none', '../notes', '/etc', '.git', '.sandbox/config', 'notes/dist/server.js'])
    t.ok([400, 404].includes((await refusalOf(() => dev(path))).status), path)
  mkdirSync(join(workspace, 'other'))
  writeFileSync(join(workspace, 'other/intentic-extension.json'), JSON.stringify({ name: 'other' }))
  t.match(await refusalOf(() => dev('other')), { status: 422, message: /local\.other, not ada\.notes/ })
  symlinkSync('/etc/passwd', join(checkout, 'leaves'))
  t.match(await refusalOf(() => dev('notes')), { status: 422, message: /leaves/ })
  rmSync(join(checkout, 'leaves'))
  rmSync(join(checkout, 'dist/server.js'))
  t.match(await refusalOf(() => dev('notes')), { status: 422, message: /dist\/server\.js is not there/ })
  symlinkSync('/etc', join(workspace, 'link'))
  t.equal(await status(dev('link')), 404, 'no link is followed')
  t.ok(isRunning(pid))
  t.same(readdirSync(copies), [])
})

t.test('the old build answers until a reload, which takes less than a second', async t => {
  write('first')
  mkdirSync(join(checkout, 'node_modules'))
  writeFileSync(join(checkout, 'node_modules/large'), 'x')
  writeFileSync(join(checkout, '.gitignore'), 'node_modules\n')
  const { dev: run } = await dev('notes')
  t.match(run, { path: 'notes', uncommitted: 2, revision: /^[0-9a-f]{64}$/ })
  t.notOk(run.held)
  t.match(await running(), { commit: ref, source: 'installed', dev: run })
  t.equal(await word(), 'first')
  t.same(readdirSync(copies), [run.revision])
  t.notOk(existsSync(join(copies, run.revision, 'node_modules')))
  write('second')
  t.match((await recordNamed(daemon, id)).dev, { held: 'rebuilt', revision: run.revision })
  t.equal(await word(), 'first')
  const times: number[] = []
  for (const next of ['second', 'third', 'fourth']) {
    write(next)
    const began = performance.now()
    const { dev: now } = await reload()
    t.notOk(now.held)
    t.equal(await word(), next)
    times.push(performance.now() - began)
  }
  t.comment(`from reload to the answer of the new build: ${times.map(Math.round).join(', ')} ms`)
  t.ok(Math.min(...times) < 1_000, `${times}`)
  const pid = pidOf(await running())
  await reload()
  t.equal(pidOf(await running()), pid, 'nothing changed, so nothing starts again')
  t.equal(readdirSync(copies).length, 1)
})

t.test('a reload ends a quarantine, also of the same build', walled(), async t => {
  writeFileSync(join(checkout, 'dist/server.js'), `${says('x')}setTimeout(() => process.exit(3), 20)\n`)
  await reload()
  const backendIs = async (pattern: RegExp) => {
    for (const end = Date.now() + 60_000; !pattern.test(JSON.stringify((await recordNamed(daemon, id)).backend));) {
      if (Date.now() > end) throw new Error(`expected ${pattern}`)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
  }
  await backendIs(/quarantined: its process ended with 3/)
  await reload()
  await backendIs(/starts again in|"running"|"starting"/)
  write('fourth')
  await reload()
  await running()
  t.equal(await word(), 'fourth')
})

t.test('a folder that adds a power waits for its digest', async t => {
  write('more', { permissions: { daemon: ['GET /activity'] } })
  t.match((await recordNamed(daemon, id)).dev, { held: /adds: calls GET \/activity/ })
  const refused = await refusalOf(() => reload())
  const added = exactly(/GET \/activity/)
  t.match(refused, { status: 409, message: /GET \/activity/, body: { added, digest: /^[0-9a-f]{64}$/ } })
  t.match(await refusalOf(() => dev('notes')), { status: 409, body: refused.body })
  t.match(await refusalOf(() => reload('0'.repeat(64))), { status: 409, body: refused.body })
  t.equal(await word(), 'fourth')
  const digest = refused.body.digest as string
  t.notOk((await reload(digest)).dev.held)
  t.equal(await word(), 'more')
  t.match(await refusalOf(() => client.call('POST /extensions/{id}/update', { id, ref: '1'.repeat(40) })), {
    status: 409,
  })
})

t.test('the folders that could run are listed with what git knows of them', async t => {
  writeFileSync(join(checkout, 'source.ts'), 'export {}\n')
  const { checkouts } = await client.call('GET /extensions/dev')
  t.match(
    checkouts,
    exactly({
      id,
      path: 'notes',
      branch: 'main',
      version: '1.0.0',
      built: true,
      stale: true,
      running: true,
      uncommitted: 4,
    }),
  )
})

t.test('it runs from a private copy until the conversation is discarded', async t => {
  const conversation = 'copied'
  const from = (given: object) => client.call('POST /extensions/{id}/dev', { id, path: 'notes', ...given })
  t.match(await refusalOf(() => from({ conversation })), { status: 404, message: /no conversation "copied"/ })
  await runTurn(client, 'shared', 'say hi', { agent: 'script', isolated: false })
  t.match(await refusalOf(() => from({ conversation: 'shared' })), { status: 409, message: /leave out conversation/ })
  await runTurn(client, conversation, 'say hi', { agent: 'script', isolated: true })
  t.match(await refusalOf(() => from({ conversation, path: 'other' })), {
    status: 404,
    message: /the private copy of copied has no folder "other"/,
  })
  const { repos } = await inner(daemon, 'checkouts.repos', { id: conversation })
  const folder = repos.find(({ repo }) => repo === 'notes')!.copy!
  write('in the copy', {}, folder)
  writeFileSync(join(folder, '..', 'beside.txt'), 'not of the repository')
  const { dev: run } = await from({ conversation })
  t.match(run, { path: 'notes', conversation, uncommitted: 1 })
  t.notOk(run.held)
  t.match((await running()).dev, run)
  t.equal(await word(), 'in the copy')
  const seen = async () =>
    (await client.call('GET /extensions/dev')).checkouts.map(each => [each.conversation, each.branch, each.running])
  t.same(await seen(), [
    [undefined, 'main', false],
    [conversation, 'agent/copied', true],
  ])
  write('rebuilt', {}, folder)
  t.match((await recordNamed(daemon, id)).dev, { held: 'rebuilt', conversation })
  await reload()
  t.equal(await word(), 'rebuilt')
  const { dev: elsewhere } = await recordNamed({ client: clientOf(daemon, 'vic@example.org') }, id)
  t.match(elsewhere, { path: 'notes' })
  t.notOk(elsewhere?.conversation, 'the conversation is named to those who may see it')
  rmSync(folder, { recursive: true })
  symlinkSync('/etc', folder)
  t.match((await recordNamed(daemon, id)).dev?.held, /is gone|cannot be read/, 'no link is followed')
  t.same(await seen(), [[undefined, 'main', false]])
  t.equal(await status(reload()), 404)
  t.equal(await word(), 'rebuilt', 'its copy goes on')
  await client.call('POST /agents/{id}/discard', { id: conversation })
  await listedUntil(daemon, () => !existsSync(copies))
  t.notOk((await running()).dev)
  t.equal(await word(), 'committed')
})

t.test('back at the commit the pinned version answers, and the folder is as it was', async t => {
  t.same(await client.call('DELETE /extensions/{id}/dev', { id }), { ok: true, ref })
  await running()
  t.equal(await word(), 'committed')
  t.notOk((await recordNamed(daemon, id)).dev)
  t.notOk(existsSync(copies))
  t.ok(existsSync(join(checkout, 'source.ts')))
  t.same(await client.call('DELETE /extensions/{id}/dev', { id }), { ok: true, ref })
  await dev('notes').catch(() => {})
  await client.call('POST /extensions/{id}/remove', { id })
  t.notOk(existsSync(copies))
})
