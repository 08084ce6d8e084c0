import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Input } from '../../../sdk/contract.js'
import type { Areas } from '../../../plugins/areas/contract.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, folderOf, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'

const FILES = {
  'README.md': '# work\n',
  'docs/a.md': 'a',
  'docs/deep/b.md': 'b',
  'src/main.ts': 'main',
  'src/lib/x.ts': 'x',
  'docs-old/c.md': 'c',
}
const CALLS: [method: string, path: string, body?: object][] = [
  ['GET', '/areas'],
  ['GET', '/areas/docs'],
  ['GET', '/areas/reach?path=docs'],
  ['POST', '/areas', { id: 'docs', label: 'Docs', folders: ['docs'] }],
  ['POST', '/areas/docs/holders', { add: ['ann@example.org'] }],
  ['DELETE', '/areas/docs'],
]

interface World {
  readonly daemon: Support
  readonly people: People
  readonly as: (email: string) => ReturnType<typeof clientOf>
  readonly write: (id: string, folders: string[], more?: Partial<Input<Areas, 'POST /areas'>>) => Promise<unknown>
}

/** A daemon with areas and a roster: `cas` has no areas, `ann` is a collaborator of `docs`, `vic` a viewer of it. */
const world = async (t: Test): Promise<World> => {
  const people = new People()
  people.add('owner@sandbox.local', 'owner')
  people.add('mai@example.org', 'maintainer')
  people.add('cas@example.org', 'collaborator')
  people.add('ann@example.org', 'collaborator', ['docs'])
  people.add('vic@example.org', 'viewer', ['docs'])
  const daemon = await daemonWith(t, ['areas'], { files: FILES, fakes: people.fakes })
  people.admit(daemon)
  const write: World['write'] = (id, folders, more) =>
    daemon.client.call('POST /areas', { id, label: id, folders, ...more })
  return { daemon, people, as: email => clientOf(daemon, `${email}@example.org`), write }
}

const send = (
  daemon: Support,
  method: string,
  path: string,
  body: object | undefined,
  headers: { [name: string]: string },
) =>
  fetch(daemon.url + path, {
    method,
    headers: { ...headers, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })

t.test('without a credential no call of areas answers', async t => {
  const { daemon } = await world(t)
  for (const [method, path, body] of CALLS)
    t.equal((await send(daemon, method, path, body, {})).status, 401, `${method} ${path}`)
})

t.test('the writing and audit calls are for the owner and no token; the audit also for maintainers', async t => {
  const { daemon, write } = await world(t)
  await write('docs', ['docs'])
  const statuses = async (headers: { [name: string]: string }) =>
    Promise.all(
      CALLS.slice(2).map(async ([method, path, body]) => (await send(daemon, method, path, body, headers)).status),
    )
  t.same(await statuses({ authorization: 'Bearer mai@example.org' }), [200, 403, 403, 403])
  t.same(await statuses({ authorization: 'Bearer cas@example.org' }), [403, 403, 403, 403])
  for (const scope of ['editor', 'read', 'drive', 'land'] as const) {
    t.same(await statuses({ 'x-sandbox-control': (await daemon.token(scope)).token }), [403, 403, 403, 403], scope)
  }
})

t.test('an invalid area is refused with the expected form, and nothing is stored', async t => {
  const { daemon, write } = await world(t)
  symlinkSync(join(daemon.data), join(daemon.workspace, 'out'))
  mkdirSync(join(daemon.workspace, '.sandbox'), { recursive: true })
  const refused: [number, Partial<Input<Areas, 'POST /areas'>>][] = [
    [400, { id: 'Docs' }],
    [400, { id: '' }],
    [400, { id: 'a'.repeat(61) }],
    [400, { id: '-a' }],
    [400, { id: 'reach' }],
    [400, { label: '' }],
    [400, { label: '  ' }],
    [400, { label: 'x'.repeat(81) }],
    [400, { folders: [] }],
    [400, { folders: Array.from({ length: 51 }, (_, at) => `f${at}`) }],
    [400, { folders: ['../x'] }],
    [400, { folders: ['/etc'] }],
    [400, { folders: ['docs/../src'] }],
    [400, { folders: ['a\0b'] }],
    [400, { folders: ['docs//a'] }],
    [404, { folders: ['docs', 'nowhere'] }],
    [404, { folders: ['docs/a.md/b'] }],
    [422, { folders: ['docs/a.md'] }],
    [422, { folders: ['.git'] }],
    [422, { folders: ['.sandbox'] }],
    [422, { folders: ['out'] }],
  ]
  for (const [status, input] of refused) {
    t.match(await refusalOf(() => write('docs', ['docs'], input)), { status }, JSON.stringify(input).slice(0, 60))
  }
  t.same((await daemon.client.call('GET /areas')).areas, [])
})

t.test('folders are kept by their real location, doubles and folders below another one folded', async t => {
  const { daemon, write } = await world(t)
  symlinkSync('src', join(daemon.workspace, 'code'))
  t.match(await write('mixed', ['docs/deep', 'docs', 'code', 'src', 'docs/']), {
    created: true,
    area: { folders: exactly('docs', 'src'), access: 'work', label: 'mixed' },
  })
  t.match(await write('mixed', ['.', 'docs'], { access: 'read', note: 'all of it' }), {
    created: false,
    area: { folders: exactly('.'), access: 'read', note: 'all of it' },
  })
})

t.test('an area replaced keeps when it was made, and its holders', async t => {
  const { daemon, write } = await world(t)
  await write('docs', ['docs'])
  const [first] = (await daemon.client.call('GET /areas')).areas
  await write('docs', ['src'])
  const [second] = (await daemon.client.call('GET /areas')).areas
  t.equal(second!.createdAt, first!.createdAt)
  t.ok(second!.updatedAt > first!.updatedAt)
  t.same(second!.holders, [
    { email: 'ann@example.org', role: 'collaborator' },
    { email: 'vic@example.org', role: 'viewer' },
  ])
})

t.test('the two hundred and first area is refused, another of the two hundred is not', async t => {
  const { write } = await world(t)
  for (let at = 0; at < 200; at++) await write(`a${at}`, ['docs'])
  t.match(await refusalOf(() => write('more', ['docs'])), { status: 409, message: '200 areas' })
  t.match(await write('a7', ['src']), { created: false })
})

t.test('members see the areas they may see, and only those who manage members see who holds them', async t => {
  const { daemon, as, write } = await world(t)
  await write('docs', ['docs'], { label: 'B' })
  await write('src', ['src'], { label: 'A', access: 'read' })
  const ids = async (client: ReturnType<typeof as>) => (await client.call('GET /areas')).areas.map(({ id }) => id)
  t.same(await ids(daemon.client), ['src', 'docs'], 'by label')
  t.same(await ids(as('mai')), ['src', 'docs'])
  t.same(await ids(as('ann')), ['docs'])
  t.same(await ids(as('cas')), [])
  const { client } = await daemon.token('land')
  t.same(await ids(client), ['src', 'docs'])
  t.notOk(
    (await client.call('GET /areas')).areas.some(({ holders }) => holders),
    'no token sees who holds them',
  )
  t.notOk((await as('ann').call('GET /areas')).areas.some(({ holders }) => holders))
  t.ok((await as('mai').call('GET /areas')).areas.every(({ holders }) => holders))
  t.match(await as('ann').call('GET /areas'), {
    limited: true,
    mine: exactly('docs'),
    folders: exactly({ path: 'docs', access: 'work' }),
  })
  t.match(await as('cas').call('GET /areas'), {
    limited: false,
    mine: { length: 0 },
    folders: exactly({ path: '.', access: 'work' }),
  })
  const [outside, unknown] = [
    await refusalOf(() => as('ann').call('GET /areas/{id}', { id: 'src' })),
    await refusalOf(() => as('ann').call('GET /areas/{id}', { id: 'nope' })),
  ]
  t.match(outside, { status: 404 })
  t.equal(outside.message.replace('src', 'nope'), unknown.message, 'one not held is as one that is not there')
})

t.test('an area tells what it covers now', async t => {
  const { daemon, write } = await world(t)
  await write('docs', ['docs', 'src/lib'])
  t.match(await daemon.client.call('GET /areas/{id}', { id: 'docs' }), {
    id: 'docs',
    folders: exactly({ path: 'docs', exists: true, files: 2 }, { path: 'src/lib', exists: true, files: 1 }),
    conversations: 0,
    repos: { length: 0 },
  })
})

t.test(
  'a folder that went away grants nothing until it is back, and what stands in its place does neither',
  async t => {
    const { daemon, as, write } = await world(t)
    await write('docs', ['docs', 'src'])
    const at = (path: string) => join(daemon.workspace, path)
    const reached = async () => (await as('ann').call('GET /areas')).folders.map(({ path }) => path)
    t.same(await reached(), ['docs', 'src'])
    renameSync(at('docs'), at('moved'))
    t.same(await reached(), ['src'])
    t.match((await daemon.client.call('GET /areas')).areas[0], {
      folders: exactly('docs', 'src'),
      problems: exactly({ folder: 'docs', problem: 'missing' }),
    })
    symlinkSync('docs-old', at('docs'))
    t.same(await reached(), ['src'], 'a link to another folder grants nothing of it')
    rmSync(at('docs'))
    symlinkSync(daemon.data, at('docs'))
    t.match((await daemon.client.call('GET /areas')).areas[0], {
      problems: exactly({ folder: 'docs', problem: 'leads-outside' }),
    })
    rmSync(at('docs'))
    writeFileSync(at('docs'), 'a file')
    t.same(await reached(), ['src'])
    rmSync(at('docs'))
    renameSync(at('moved'), at('docs'))
    t.same(await reached(), ['docs', 'src'])
  },
)

t.test('areas written at once are all kept, also over a restart', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace, FILES)
  const ids = ['a', 'b', 'c', 'd', 'e', 'f']
  await t.test('the writes', async t => {
    const { client } = await daemonWith(t, ['areas'], where)
    await Promise.all(ids.map(id => client.call('POST /areas', { id, label: id, folders: ['docs'] })))
    t.same(
      (await client.call('GET /areas')).areas.map(({ id }) => id),
      ids,
    )
  })
  await t.test('the next start', async t => {
    const { client } = await daemonWith(t, ['areas'], where)
    t.same(
      (await client.call('GET /areas')).areas.map(({ id }) => id),
      ids,
    )
  })
})

t.test('two areas given to a person at once are both held', async t => {
  const people = new People()
  people.add('owner@sandbox.local', 'owner')
  people.add('ann@example.org', 'collaborator', [])
  const fakes = {
    ...people.fakes,
    'members.setAreas': async (input: Parameters<(typeof people.fakes)['members.setAreas']>[0]) => {
      for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate)
      return people.fakes['members.setAreas'](input, undefined as never)
    },
  }
  const { client } = await daemonWith(t, ['areas'], { files: FILES, fakes })
  for (const id of ['docs', 'src']) await client.call('POST /areas', { id, label: id, folders: [id] })
  await Promise.all(
    ['docs', 'src'].map(id => client.call('POST /areas/{id}/holders', { id, add: ['ann@example.org'] })),
  )
  t.same(people.members.get('ann@example.org')?.areas?.toSorted(), ['docs', 'src'])
})

t.test('people are given an area and it is taken from them, all or nothing', async t => {
  const { daemon, people, write } = await world(t)
  await write('docs', ['docs'])
  await write('src', ['src'])
  const holders = (id: string, change: Partial<Input<Areas, 'POST /areas/{id}/holders'>>) =>
    daemon.client.call('POST /areas/{id}/holders', { id, ...change })
  const before = JSON.stringify([...people.members])
  const refused: [number, string, Parameters<typeof holders>[1]][] = [
    [400, 'src', {}],
    [400, 'src', { add: [], remove: [] }],
    [400, 'src', { add: ['ann@example.org'], remove: ['Ann@example.org'] }],
    [404, 'none', { add: ['ann@example.org'] }],
    [404, 'src', { add: ['ann@example.org', 'no@example.org'] }],
    [404, 'src', { remove: ['no@example.org'] }],
    [409, 'src', { add: ['ann@example.org', 'cas@example.org'] }],
    [422, 'src', { add: ['ann@example.org', 'mai@example.org'] }],
    [422, 'src', { add: ['owner@sandbox.local'], narrow: true }],
  ]
  for (const [status, id, change] of refused)
    t.match(await refusalOf(() => holders(id, change)), { status }, JSON.stringify(change))
  t.match(
    await refusalOf(() => holders('src', { add: ['cas@example.org'] })),
    { message: 'cas@example.org' },
    'it names them',
  )
  t.equal(JSON.stringify([...people.members]), before, 'nobody was changed')
  t.same(await holders('src', { add: ['ANN@example.org', 'ann@example.org'] }), {
    holders: [{ email: 'ann@example.org', role: 'collaborator' }],
  })
  t.same(people.members.get('ann@example.org')!.areas, ['docs', 'src'], 'other areas stay')
  t.same(await holders('src', { add: ['ann@example.org'], remove: ['vic@example.org'] }), {
    holders: [{ email: 'ann@example.org', role: 'collaborator' }],
  })
  t.match(await holders('src', { add: ['cas@example.org'], narrow: true }), {
    holders: exactly({ email: 'cas@example.org' }, { email: 'ann@example.org' }),
  })
  await holders('docs', { remove: ['vic@example.org'] })
  t.same(people.members.get('vic@example.org')!.areas, [], 'whoever loses the last area has nothing')
})

t.test('an area that is held is not deleted, and one that is not is', async t => {
  const { daemon, write } = await world(t)
  await write('docs', ['docs'])
  const refusal = await refusalOf(() => daemon.client.call('DELETE /areas/{id}', { id: 'docs' }))
  t.match(refusal, {
    status: 409,
    message: 'ann@example.org',
    body: { holders: exactly({ email: 'ann@example.org' }, { email: 'vic@example.org' }) },
  })
  await daemon.client.call('POST /areas/{id}/holders', { id: 'docs', remove: ['ann@example.org', 'vic@example.org'] })
  t.same(await daemon.client.call('DELETE /areas/{id}', { id: 'docs' }), { ok: true })
  t.match(await refusalOf(() => daemon.client.call('DELETE /areas/{id}', { id: 'docs' })), { status: 404 })
})

t.test('an audit tells who reaches a path and what a person reaches', async t => {
  const { daemon, people, write } = await world(t)
  people.add('ann@example.org', 'collaborator', ['docs', 'look'])
  await write('docs', ['docs'])
  await write('look', ['docs', 'src'], { access: 'read' })
  const audit = (query: Input<Areas, 'GET /areas/reach'>) => daemon.client.call('GET /areas/reach', query)
  t.same(await audit({ path: 'docs/deep' }), {
    path: 'docs/deep',
    people: [
      { email: 'owner@sandbox.local', role: 'owner', access: 'work', via: [] },
      { email: 'mai@example.org', role: 'maintainer', access: 'work', via: [] },
      { email: 'cas@example.org', role: 'collaborator', access: 'work', via: [] },
      { email: 'ann@example.org', role: 'collaborator', access: 'work', via: ['docs', 'look'] },
      { email: 'vic@example.org', role: 'viewer', access: 'read', via: ['docs'] },
    ],
  })
  t.match(
    (await audit({ path: 'src' })).people.map(({ access }) => access),
    exactly('work', 'work', 'work', 'read', 'none'),
  )
  t.same(await audit({ email: 'Ann@example.org' }), {
    people: [{ email: 'ann@example.org', role: 'collaborator', access: 'work', via: ['docs', 'look'] }],
    folders: [
      { path: 'docs', access: 'work', via: ['docs', 'look'] },
      { path: 'src', access: 'read', via: ['look'] },
    ],
  })
  for (const [status, query] of [
    [400, {}],
    [400, { path: 'docs', email: 'ann@example.org' }],
    [400, { path: '../x' }],
    [404, { path: 'none' }],
    [404, { path: '.git' }],
    [404, { email: 'no@example.org' }],
  ] as const) {
    t.match(await refusalOf(() => audit(query)), { status }, JSON.stringify(query))
  }
})

t.test('of two owners who write at once one wins whole', async t => {
  const { daemon } = await world(t)
  const one = { label: 'one', folders: ['docs'], access: 'work' as const, note: 'one' }
  const other = { label: 'other', folders: ['src'], access: 'read' as const, note: 'other' }
  for (let round = 0; round < 20; round++) {
    await Promise.all([one, other].map(area => daemon.client.call('POST /areas', { id: 'both', ...area })))
    const { label, folders, access, note } = (await daemon.client.call('GET /areas')).areas[0]!
    t.ok([one, other].some(area => JSON.stringify({ label, folders, access, note }) === JSON.stringify(area)))
  }
})

t.test('areas are there again after a restart', async t => {
  const { daemon, write } = await world(t)
  await write('docs', ['docs'])
  const { areas } = await daemon.client.call('GET /areas')
  await daemon.stop()
  const again = await daemonWith(t, ['areas'], { workspace: daemon.workspace, data: daemon.data })
  t.match(
    (await again.client.call('GET /areas')).areas,
    areas.map(({ holders: _, ...area }) => area),
  )
})
