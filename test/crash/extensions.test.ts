import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../sdk/client.js'
import { runTurn } from '../support/turns.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon } from '../support/daemon.js'
import { committed } from '../support/servers/git-server.js'
import { dies, EXTENSIONS_POINTS, LATE_MS, type Where } from './failpoints/failpoints.js'
import { spread } from '../support/lists.js'

const WORKSPACE = '.sandbox/config/workspace-extensions'
const ID = 'ada.notes'
const INSTALLED = 'ada.far'

const whereFor = (t: Test): Where & { commits: readonly [string, string] } => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const origin = join(where.workspace, 'far')
  mkdirSync(origin)
  inGit(origin, 'init', '-q')
  const commits = ['1.0.0', '2.0.0'].map(version => {
    const manifest = { publisher: 'ada', name: 'far', version }
    writeFileSync(join(origin, 'intentic-extension.json'), JSON.stringify(manifest))
    return committed(origin)
  })
  const extensions = [{ id: INSTALLED, source: { url: 'far', ref: commits[1] } }]
  writeFileSync(join(where.workspace, 'registry.json'), JSON.stringify({ name: 'test', extensions }))
  return { ...where, commits: commits as [string, string] }
}

const install = async (client: Client, ref: string): Promise<void> => {
  const source = { url: 'far', ref, registry: 'registry.json' }
  const { digest } = await client.call('POST /extensions/install/preview', source)
  for await (const line of await client.call('POST /extensions/install', { ...source, digest }))
    if (line.kind === 'result') return
}

/** All changes to extensions, one after another. */
const drive = async (client: Client, { workspace, commits: [first, second] }: ReturnType<typeof whereFor>) => {
  await client.call('POST /extensions/workspace', { publisher: 'ada', name: 'notes' })
  const file = join(workspace, WORKSPACE, 'notes/intentic-extension.json')
  const manifest = JSON.parse(readFileSync(file, 'utf8')) as object
  const settings = [{ key: 'tone', type: 'string', title: 'Tone' }]
  const contributes = { settings, commands: [{ command: 'notes.add', title: 'Add' }] }
  writeFileSync(file, JSON.stringify({ ...manifest, contributes }))
  const { pending } = await client.call('GET /extensions')
  await client.call('POST /extensions/{id}/approve', { id: ID, digest: pending[0]!.digest })
  await client.call('POST /extensions/{id}/settings', { id: ID, settings: { tone: 'kind' } })
  await client.call('POST /extensions/{id}/enabled', { id: ID, enabled: false })
  await install(client, first)
  await client.call('POST /extensions/{id}/update-policy', { id: INSTALLED, updates: 'agent' })
  await client.call('POST /extensions/updates/check')
  await client.call('POST /extensions/{id}/update', { id: INSTALLED, ref: second })
  await client.call('POST /extensions/{id}/dev', { id: INSTALLED, path: 'far' })
  await client.call('DELETE /extensions/{id}/dev', { id: INSTALLED })
  await runTurn(client, 'copied', 'say hi', { agent: 'script', isolated: true })
  await client.call('POST /extensions/{id}/dev', { id: INSTALLED, path: 'far', conversation: 'copied' })
  await client.call('POST /agents/{id}/discard', { id: 'copied' })
  await backAtCommit(client)
  await client.call('POST /extensions/{id}/remove', { id: ID })
}

/** Waits until the extension runs its commit. */
const backAtCommit = async (client: Client): Promise<void> => {
  for (const end = Date.now() + LATE_MS; ;) {
    const { extensions } = await client.call('GET /extensions')
    if (extensions.every(({ dev }) => !dev)) return
    if (Date.now() > end) throw new Error('the extension still runs from the private copy')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

// The second end is that of a private copy.
const POINTS = [...EXTENSIONS_POINTS, 'extensions.code.placed:2', 'extensions.dev.ending:2']
for (const point of spread(POINTS, 6))
  t.test(`killed at ${point}, each extension is in the state before a step or after it`, async t => {
    const where = whereFor(t)
    await dies(t, where, point, ({ once }) => drive(once, where))
    const next = await spawnDaemon(t, where)
    if (point.startsWith('extensions.dev.ending:')) {
      const { agents } = await next.client.call('GET /agents')
      t.notOk(
        agents.some(({ id }) => id === 'copied'),
        'the conversation is discarded',
      )
      await backAtCommit(next.client)
    }
    const { extensions, pending, invalid } = await next.client.call('GET /extensions')
    t.same(invalid, [])
    const folder = join(where.workspace, WORKSPACE, 'notes')
    const known = [...extensions, ...pending].filter(({ id }) => id === ID)
    t.equal(known.length, Number(existsSync(folder)), 'its folder and its record both exist, or neither')
    t.same(
      existsSync(join(folder, '..')) ? readdirSync(join(folder, '..')) : [],
      known.length > 0 ? ['notes'] : [],
      'no leftovers are beside it',
    )
    const begun = Number(point.includes('create')) && known.length > 0
    if (begun) t.equal(pending.length, 0, 'a new extension is approved from the start')
    if (point.includes('remove')) t.equal(known.length, 0, 'an interrupted removal is completed')
    const far = extensions.find(({ id }) => id === INSTALLED)
    const code = join(where.data, 'extensions/code', INSTALLED)
    const kept = [far?.commit, far?.previous?.ref].filter(each => each !== undefined)
    t.same(existsSync(code) ? readdirSync(code).sort() : [], kept.sort(), 'exactly the code of its versions exists')
    if (far) t.equal(far.manifest.version, far.commit === where.commits[0] ? '1.0.0' : '2.0.0', 'its files match')
    const copies = join(where.data, 'extensions/dev', INSTALLED)
    t.same(
      existsSync(copies) ? readdirSync(copies) : [],
      far?.dev ? [far.dev.revision] : [],
      'the copy that runs, or none',
    )
    if (point === 'extensions.update.review-started') {
      await next.client.call('POST /extensions/updates/check')
      const again = (await next.client.call('GET /extensions')).extensions.find(({ id }) => id === INSTALLED)
      const { agents } = await next.client.call('GET /agents')
      const reviews = agents.map(({ id }) => id).filter(id => id.startsWith('review-'))
      t.same(reviews, [again?.update?.review?.conversationId], 'its one review is found again')
    }
    const staging = join(where.data, 'extensions/staging')
    t.same(existsSync(staging) ? readdirSync(staging) : [], [])
    await next.terminate()
  })
