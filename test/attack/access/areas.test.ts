import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { openEvents } from '../../plugins/system/stream/events-support.js'
import { openStore } from '../../../kernel/storage/store.js'
import { createClient } from '../../../sdk/client.js'
import { daemonWith, folderOf, inGit, makeWorkspace, type Support } from '../../support/daemon.js'
import { joined, type Joined } from '../../support/joined.js'
import { exactly } from '../../support/lists.js'
import { OPERATIONS, resolved, type Operation, type Schema } from '../../support/schema.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { walled } from '../support.js'

/** Words that occur in no name and no content inside the area. */
const PLANTED = ['zirkonia', 'quartzite', 'feldspar'] as const
const [NAME, CONTENT, PERSON] = PLANTED
const WORDS = new RegExp(PLANTED.join('|'), 'i')
const SEED = Number(process.env.SANDBOX_PROPERTY_SEED ?? 20_261)
const RUNS = Number(process.env.SANDBOX_PROPERTY_RUNS ?? 24)

const FILES = {
  'README.md': `# ${CONTENT}\n`,
  'docs/a.md': 'one\n',
  'docs/deep/b.md': 'two\n',
  'docs/b.ipynb': JSON.stringify({ cells: [] }),
  [`src/${NAME}.ts`]: `${CONTENT}\n`,
  [`src/${NAME}.ipynb`]: JSON.stringify({ cells: [{ cell_type: 'markdown', source: CONTENT }] }),
  [`${NAME}/index.ts`]: `${CONTENT}\n`,
  'docs-old/c.md': `${CONTENT}\n`,
}

/** A notebook with a text, which a comparison of documents shows. */
const notebook = (text: string): string => JSON.stringify({ cells: [{ cell_type: 'markdown', source: text }] })

interface World {
  readonly daemon: Support
  /** Commits of the repositories, and a saved point: they hold what lies inside and what lies outside. */
  readonly commits: string[]
  readonly points: string[]
  /** People who reach `docs` and nothing else, each with a limit of their own on how often they may ask. */
  readonly people: Joined[]
  /** The ids of conversations inside the area, and of those outside. */
  readonly inside: string[]
  readonly outside: string[]
}

const openWorld = async (t: Test): Promise<World> => {
  const daemon = await daemonWith(t, [], { files: FILES })
  const { client, workspace } = daemon
  makeWorkspace(join(workspace, `${NAME}-repo`), { 'a.md': CONTENT })
  symlinkSync(`../src/${NAME}.ts`, join(workspace, 'docs/way'))
  const { id: point } = await client.call('POST /history/snapshots', { label: 'first' })
  for (const [path, text] of [
    ['docs/b.ipynb', 'inside'],
    [`src/${NAME}.ipynb`, `${CONTENT} again`],
  ] as const) {
    writeFileSync(join(workspace, path), notebook(text))
    inGit(workspace, 'add', path)
    writeFileSync(join(workspace, path), notebook(`${text} and more`))
  }
  const commits = [workspace, join(workspace, `${NAME}-repo`)].map(at => inGit(at, 'rev-parse', 'HEAD').trim())
  await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  await client.call('POST /areas', { id: NAME, label: NAME, folders: [NAME], note: CONTENT })
  await joined(daemon, PERSON, 'viewer', [NAME])
  const people = await Promise.all(
    ['ann', 'bob', 'cyd'].map((name, at) => joined(daemon, name, at === 0 ? 'collaborator' : 'viewer', ['docs'])),
  )

  const out = { title: NAME, isolated: true }
  await runTurn(
    client,
    `root-${NAME}`,
    `write src/${NAME}.ts\n| changed ${CONTENT}\nsay ${CONTENT}\nhelper ${CONTENT}\n| say ${CONTENT}`,
    out,
  )
  await runTurn(client, `src-${NAME}`, `say ${CONTENT}`, { ...out, startIn: 'src' })
  await client.call('POST /agents/{id}/land', { id: `root-${NAME}` })
  await runTurn(client, `tree-${NAME}`, `write ${NAME}/new.ts\n| ${CONTENT}`, { title: NAME, startIn: NAME })
  await runTurn(client, `away-${NAME}`, `write src/x.ts\n| ${CONTENT}`, out)
  await client.call('POST /agents/archive', { ids: [`away-${NAME}`] })
  await client.call('POST /agent', {
    conversationId: `live-${NAME}`,
    prompt: `ask ${CONTENT}?\n| yes: x`,
    ...out,
    messageId: `m-${NAME}`,
  })
  await framesOf(client, `live-${NAME}`).until(({ kind }) => kind === 'question')
  await client.call('POST /agent', { conversationId: `live-${NAME}`, prompt: `say ${CONTENT}` })
  await client
    .call('POST /system/terminals', { name: `web-${NAME}`, label: CONTENT, cwd: NAME })
    .catch(error => (error.reason === 'missing-program' ? undefined : Promise.reject(error)))
  await runTurn(client, `wide-${NAME}`, `read src/${NAME}.ts\nsay ${CONTENT}\nhelper ${CONTENT}\n| say ${CONTENT}`, {
    ...out,
    startIn: 'docs',
  })
  const [ann] = people
  await runTurn(ann!.client, 'in', 'write docs/new.md\n| new', { startIn: 'docs' })
  await runTurn(ann!.client, 'in-wide', 'say here', { startIn: 'docs/deep' })
  await runTurn(
    client,
    'in-wide',
    'run cat ../src/* ../../src/* ../../README.md\nhelper look\n| run cat ../src/* ../../src/*',
  )
  const { agents } = await client.call('GET /agents')
  const runs = agents.filter(({ folders }) => !folders).flatMap(({ run }) => run ?? [])
  const sessions = (await client.call('GET /system/subagents', {})).sessions.filter(
    ({ conversationId }) => conversationId !== 'in-wide',
  )
  t.ok(sessions.length > 0, 'a subagent outside exists')
  t.teardown(() => client.call('POST /agent/stop', { conversationId: `live-${NAME}` }).catch(() => {}))
  return {
    daemon,
    people,
    commits,
    points: [point!],
    inside: ['in', 'in-wide', 'docs', 'root'],
    outside: [
      ...agents.map(({ id }) => id).filter(id => id.includes(NAME)),
      `away-${NAME}`,
      NAME,
      `m-${NAME}`,
      `${NAME}-repo`,
      `web-${NAME}`,
      ...runs,
      ...sessions.map(({ id }) => id),
    ],
  }
}

const PATHS = [
  'README.md',
  '.',
  `src/${NAME}.ts`,
  `src/${NAME}.ipynb`,
  'src',
  `${NAME}/index.ts`,
  NAME,
  'docs-old/c.md',
  'docs-old',
  'docs/way',
  'DOCS/a.md',
  `docs/../src/${NAME}.ts`,
  `../${NAME}`,
  `docs/../../${NAME}`,
  '.git/HEAD',
  '.sandbox',
  `${NAME}-repo/a.md`,
  `docs/a.md/../../README.md`,
  `/etc/passwd`,
  'docs//../README.md',
  'docs\\..\\README.md',
  'docs/%2e%2e/README.md',
]

/** Values that lie outside, for a parameter by its name. */
const outsideFor = (name: string, { outside, commits, points }: World): fc.Arbitrary<string> => {
  if (/^(?:sha|base|ref|onto)$/.test(name)) return fc.constantFrom(...commits, 'HEAD', 'main')
  if (/^(?:snapshot|against|id)$/.test(name)) return fc.constantFrom(...points, 'now', ...outside)
  if (/^scope$/.test(name)) return fc.constantFrom('root', `${NAME}-repo`, NAME)
  if (/path|file|cwd|folder|dir|^(?:before|after|from)$/i.test(name)) return fc.constantFrom(...PATHS)
  if (/repo/i.test(name)) return fc.constantFrom('root', `${NAME}-repo`, NAME, 'src')
  if (/query|^q$/i.test(name)) return fc.constantFrom(...PLANTED, 'src', 'README', 'write')
  return fc.constantFrom(...outside, ...PATHS)
}

/** Mostly values that lie outside, for a field by its name. */
const valueFor = (name: string, world: World): fc.Arbitrary<string> =>
  fc.oneof(
    { weight: 4, arbitrary: outsideFor(name, world) },
    { weight: 1, arbitrary: fc.constantFrom(...world.inside, 'docs/a.md', 'docs/b.ipynb', 'docs') },
  )

/** A body of a published schema, whose texts mostly lie outside. */
const bodyOf = (schema: Schema, name: string, world: World): fc.Arbitrary<unknown> => {
  const { oneOf, type, properties = {}, required = [], items = {}, ...shape } = resolved(schema)
  if (oneOf) return fc.oneof(...oneOf.map(one => bodyOf(one, name, world)))
  if (shape.enum) return fc.constantFrom(...shape.enum)
  if (type === 'boolean') return fc.boolean()
  if (type === 'integer' || type === 'number') return fc.nat(100)
  if (type === 'array') return fc.array(bodyOf(items, name, world), { minLength: 1, maxLength: 2 })
  if (type !== 'object') return valueFor(name, world)
  const fields = Object.entries(properties).map(([field, of]) => [field, bodyOf(of, field, world)] as const)
  return fc.record(Object.fromEntries(fields), { requiredKeys: [...required] })
}

/** A request to a call for something outside the area. */
const requestOf = (operation: Operation, world: World): fc.Arbitrary<{ target: string; body?: object }> => {
  const value = (name: string) => valueFor(name, world)
  const bodies =
    operation.call === 'POST /agent/attach'
      ? fc.record({ conversationId: value('conversationId') })
      : bodyOf(operation.body ?? { type: 'object' }, 'body', world)
  /** One of few values is taken as it is, so that the request is about the others. */
  const valueOf = ({ name, schema }: Operation['parameters'][number]) =>
    schema.enum
      ? fc.constantFrom(...schema.enum.map(String))
      : schema.type === 'boolean'
        ? fc.boolean().map(String)
        : value(name)
  const parameters = operation.parameters.filter(({ in: place }) => place !== 'header')
  return fc
    .record({
      values: fc.tuple(...parameters.map(valueOf)),
      chosen: fc.tuple(
        ...parameters.map(({ required, in: place }) =>
          required || place === 'path' ? fc.constant(true) : fc.nat(2).map(of => of === 0),
        ),
      ),
      body: operation.method === 'GET' ? fc.constant(undefined) : bodies,
    })
    .map(({ values, chosen, body }) => {
      let { path } = operation
      const query = new URLSearchParams()
      for (const [at, { name, in: place, schema }] of parameters.entries()) {
        if (place === 'path') path = path.replace(`{${name}}`, encodeURIComponent(values[at]!))
        else if (chosen[at] && schema.type !== 'integer' && schema.type !== 'number') query.set(name, values[at]!)
      }
      return {
        target: query.size ? `${path}?${query}` : path,
        ...(body !== undefined && { body: body as object }),
      }
    })
}

/** Every text of a value. */
const textsIn = (value: unknown): string[] =>
  typeof value === 'string' ? [value] : typeof value === 'object' && value ? Object.values(value).flatMap(textsIn) : []

/** The text of an answer without the words of the request, which it may repeat. */
const said = (text: string, { target, body }: { target: string; body?: object }): string => {
  const asked = [
    target.split('?')[0]!,
    ...decodeURIComponent(target.replaceAll('+', ' ').replaceAll(/%(?![0-9a-f]{2})/gi, '')).split(/[?&=]/),
    ...textsIn(body),
  ]
  const words = asked.flatMap(each => [each, ...each.split('/')]).filter(each => WORDS.test(each))
  return words
    .toSorted((one, other) => other.length - one.length)
    .reduce((left, word) => left.replaceAll(word, ''), text)
}

const READS = OPERATIONS.filter(
  ({ call, method }) => (method === 'GET' && call !== 'GET /events') || call === 'POST /agent/attach',
)

/** Comparisons of a repository of which a part lies inside. */
const comparisons = ({ points: [point] }: World): string[] => {
  const sources = [
    'working&repo=root&side=staged',
    'working&repo=root&side=unstaged',
    `checkpoint&scope=root&snapshot=${point}&against=now`,
  ]
  return [
    `/history/diff?id=${point}&against=now`,
    ...sources.flatMap(source => [
      `/diff/documents?source=${source}`,
      `/diff/rendered?source=${source}&path=docs/b.ipynb`,
    ]),
  ]
}

/** Calls of the files and repositories that must have shown something, so that hiding is not all that was tested. */
const SHOWING = [
  'GET /workspace/tree',
  'GET /workspace/children',
  'GET /workspace/search',
  'GET /git/changes',
  'GET /git/{repo}/log',
  'GET /git/{repo}/files',
  'GET /git/{repo}/status',
  'GET /git/{repo}/commit-diff',
  'GET /history/snapshots',
]

/** Requests without a field, and those for the document, which is large and the same for everybody, are alike. */
const runsOf = ({ call, method, parameters }: (typeof READS)[number]): number =>
  call !== 'GET /openapi.json' && (parameters.length > 0 || method === 'POST') ? RUNS : 2

t.test('every read call, asked for paths outside of an area, shows nothing of them', walled(), async t => {
  const world = await openWorld(t)
  const { daemon, people } = world
  let [asked, turn] = [0, 0]
  const busy = `busy-${NAME}`
  const owned = async (client: Joined['client']) =>
    (await client.call('GET /system/usage', {})).machine.processes.some(({ conversationId }) => conversationId === busy)
  await daemon.client.call('POST /agent', { conversationId: busy, prompt: 'run while :; do :; done', isolated: true })
  while (!(await owned(daemon.client))) await new Promise(resolve => setTimeout(resolve, 200))
  t.notOk(await owned(people[0]!.client), 'processes of conversations outside are not listed')
  await daemon.client.call('POST /agent/stop', { conversationId: busy })
  const watching = await Promise.all(
    ['delta', 'snapshot'].map(roster =>
      openEvents(t, { url: daemon.url, session: people[0]!.session }, `?roster=${roster}`),
    ),
  )
  const statuses = new Map<string, Map<number, number>>()
  for (const operation of READS) {
    const found = statuses.set(operation.call, new Map()).get(operation.call)!
    await fc.assert(
      fc.asyncProperty(requestOf(operation, world), async request => {
        const { session } = people[turn++ % people.length]!
        const stop = AbortSignal.timeout(10_000)
        const response = await fetch(daemon.url + request.target, {
          method: operation.method,
          signal: stop,
          headers: { authorization: `Bearer ${session}`, ...(request.body && { 'content-type': 'application/json' }) },
          ...(request.body && { body: JSON.stringify(request.body) }),
        })
        const text = /event-stream/.test(response.headers.get('content-type') ?? '')
          ? Buffer.from((await response.body!.getReader().read()).value ?? []).toString()
          : await response.text()
        asked += 1
        found.set(response.status, (found.get(response.status) ?? 0) + 1)
        const left = said(text, request)
        if (WORDS.test(left))
          throw new Error(
            `${operation.method} ${request.target} ${JSON.stringify(request.body)} `
              + `answered ${response.status}: ${left.slice(0, 2000)}`,
          )
        if (response.status >= 500 && response.status !== 501)
          throw new Error(`${request.target} answered ${response.status}: ${text.slice(0, 500)}`)
      }),
      { seed: SEED, numRuns: runsOf(operation) },
    )
  }
  t.ok(asked > READS.length, `${asked} requests to ${READS.length} calls`)
  t.ok(
    [...statuses].some(
      ([call, found]) => call === 'GET /agents/{id}' && (found.get(404) ?? 0) > 2 && (found.get(200) ?? 0) > 0,
    ),
    'values inside were found, and values outside were not',
  )

  // Fields that belong together seldom meet by chance.
  for (const target of comparisons(world))
    for (const { session } of people) {
      const response = await fetch(daemon.url + target, { headers: { authorization: `Bearer ${session}` } })
      const text = await response.text()
      t.equal(response.status, 200, target)
      t.notMatch(text, WORDS, target)
      t.match(text, /docs\/b\.ipynb/, target)
    }
  const ok = (call: string) => (statuses.get(call)?.get(200) ?? 0) > 0
  for (const call of SHOWING) t.ok(ok(call), `${call} showed what lies inside`)

  await daemon.client.call('POST /agent/stop', { conversationId: `live-${NAME}` })
  await runTurn(daemon.client, `more-${NAME}`, `say ${CONTENT}`, { title: NAME })
  await runTurn(daemon.client, `wider-${NAME}`, `say ${CONTENT}`, { title: NAME, startIn: 'docs' })
  await runTurn(people[0]!.client, 'last', 'say x', { startIn: 'docs' })
  for (const events of watching) {
    for (;;) {
      const event = await events.next()
      t.notMatch(JSON.stringify(event), WORDS, `${event.kind} does not contain it`)
      const cards = event.kind === 'agents' ? event.agents : event.kind === 'agent' && event.agent ? [event.agent] : []
      if (cards.some(({ id, lastEnd }) => id === 'last' && lastEnd)) break
    }
    await events.close()
  }
})

/** Calls about files, repositories, documents and saved points that change something or hand out a ticket. */
const WRITES = OPERATIONS.filter(
  ({ group, floor, method }) =>
    /^(?:Workspace|Git|Diffs|History)$/i.test(group) && method !== 'GET' && /^(?:viewer|collaborator)$/.test(floor),
)

const writesLeaveTheRest = async (t: Test, world: World) => {
  const { daemon, people } = world
  const { workspace } = daemon
  const outside = () => [
    readdirSync(workspace).filter(name => name !== '.sandbox'),
    readdirSync(join(workspace, 'src')),
    ...Object.keys(FILES).flatMap(path =>
      path.startsWith('docs/') ? [] : [readFileSync(join(workspace, path), 'utf8')],
    ),
    inGit(join(workspace, `${NAME}-repo`), 'for-each-ref'),
  ]
  const before = outside()
  t.ok(WRITES.length >= 9, `${WRITES.length} calls`)
  let tickets = 0
  for (const operation of WRITES)
    await fc.assert(
      fc.asyncProperty(requestOf(operation, world), async request => {
        // A collaborator, who reaches all of them.
        const headers = { authorization: `Bearer ${people[0]!.session}`, 'content-type': 'application/json' }
        const body = JSON.stringify(request.body ?? {})
        const response = await fetch(daemon.url + request.target, { method: operation.method, headers, body })
        const text = await response.text()
        if (WORDS.test(said(text, request)) || response.status >= 500)
          throw new Error(
            `${operation.call} ${request.target} ${body} answered ${response.status}: ${text.slice(0, 500)}`,
          )
        const { ticket } = JSON.parse(text || '{}') as { ticket?: string }
        if (ticket === undefined) return
        tickets += 1
        const served = operation.path.replace('-ticket', '')
        const bytes = await (await fetch(`${daemon.url}${served}?ticket=${ticket}`)).text()
        if (WORDS.test(bytes)) throw new Error(`${operation.call} ${body} opened ${bytes.slice(0, 200)}`)
      }),
      { seed: SEED, numRuns: RUNS },
    )
  t.ok(tickets > 0, `${tickets} tickets opened what lies inside`)
  t.same(outside(), before)
}

const namesAreNotFound = async (t: Test, { daemon, people, outside }: World) => {
  const made = fc.sample(
    fc.tuple(
      fc.constantFrom(...outside),
      fc.constantFrom('', '/', '/..', '%00', '.', ' ', '?', '-1'),
      fc.constantFrom('', NAME, 'src/', '../'),
    ),
    { seed: SEED, numRuns: 1000 },
  )
  const calls = [
    '',
    '/transcript',
    '/diff',
    '/conflicts',
    '/queue',
    `/${encodeURIComponent('root')}/file-diff?path=docs/a.md`,
    `/${NAME}-repo/file-diff?path=a.md`,
  ]
  const wrong: string[] = []
  for (const [at, [id, end, before]] of made.entries()) {
    const target = `/agents/${encodeURIComponent(before + id + end)}${calls[at % calls.length]}`
    const response = await fetch(daemon.url + target, {
      headers: { authorization: `Bearer ${people[at % people.length]!.session}` },
    })
    const text = said(await response.text(), { target })
    if (response.status !== 404 || WORDS.test(text)) wrong.push(`${target}: ${response.status} ${text.slice(0, 200)}`)
  }
  t.same(wrong, [])
}

t.test('nothing outside an area is changed or found by name', walled(), async t => {
  const world = await openWorld(t)
  await t.test('every write that people limited to it may make leaves what lies outside as it is', t =>
    writesLeaveTheRest(t, world),
  )
  await t.test('a thousand paths and ids outside the area are not found by name', t => namesAreNotFound(t, world))
})

t.test(
  "the owner's turn that read files elsewhere is hidden from people limited to areas, although it started inside",
  walled(),
  async t => {
    const daemon = await daemonWith(t, [], { files: FILES })
    const { client } = daemon
    await client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
    const ann = (await joined(daemon, 'ann', 'collaborator', ['docs'])).client
    const { run } = await client.call('POST /agent', {
      conversationId: 'owners',
      messageId: 'm-owners',
      prompt: `read src/${NAME}.ts\nask Go on?\n| yes: x`,
      startIn: 'docs',
      isolated: true,
    })
    const watched = framesOf(client, 'owners')
    const { requestId } = await watched.until(({ kind }) => kind === 'question')
    const asks: { readonly [what: string]: (id: string) => Promise<unknown> } = {
      attach: async id => {
        for await (const _ of await ann.call('POST /agent/attach', { conversationId: id })) continue
      },
      'attach to its run': async id => {
        for await (const _ of await ann.call('POST /agent/attach', { conversationId: id, run })) continue
      },
      say: id => ann.call('POST /agent', { conversationId: id, prompt: 'say what did you read?', startIn: 'docs' }),
      steer: id => ann.call('POST /agent/steer', { conversationId: id, text: 'x' }),
      stop: id => ann.call('POST /agent/stop', { conversationId: id }),
      rewind: id => ann.call('POST /agent/rewind', { conversationId: id, index: 0 }),
      fork: id =>
        ann.call('POST /agent', {
          conversationId: 'mine',
          prompt: 'say x',
          startIn: 'docs',
          forkOf: { conversationId: id, keep: 1, files: 'now' },
        }),
      card: id => ann.call('GET /agents/{id}', { id }),
      transcript: id => ann.call('GET /agents/{id}/transcript', { id }),
      diff: id => ann.call('GET /agents/{id}/diff', { id }),
      'file-diff': id => ann.call('GET /agents/{id}/{repo}/file-diff', { id, repo: 'root', path: 'docs/a.md' }),
      conflicts: id => ann.call('GET /agents/{id}/conflicts', { id }),
      queue: id => ann.call('GET /agents/{id}/queue', { id }),
      archive: id => ann.call('POST /agents/archive', { ids: [id] }),
    }
    const hidden = async (moment: string) => {
      for (const [what, ask] of Object.entries(asks))
        t.match(await refusalOf(() => ask('owners')), { status: 404 }, `${moment}: ${what}`)
      const lists = [
        await ann.call('GET /agents'),
        await ann.call('GET /agents/archived', {}),
        await ann.call('GET /agents/search', { query: CONTENT }),
        await ann.call('GET /agents/search', { query: 'owners' }),
        await ann.call('GET /activity', {}),
        await ann.call('GET /system/subagents', {}),
      ]
      t.notMatch(JSON.stringify(lists), /owners|quartzite/, `${moment}: no list`)
      t.match(
        [(lists[2] as { scanned: number }).scanned, (await ann.call('GET /areas/{id}', { id: 'docs' })).conversations],
        exactly(0, 0),
        `${moment}: no count`,
      )
    }
    await hidden('parked')
    t.match(
      await refusalOf(() =>
        ann.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } }),
      ),
      { status: 404 },
    )
    t.match(await refusalOf(() => ann.call('POST /agent', { prompt: 'say x', messageId: 'm-owners' })), { status: 409 })
    await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
    await watched.all()
    await hidden('settled')
    await client.call('POST /agents/archive', { ids: ['owners'] })
    await hidden('archived')
    await client.call('POST /agents/unarchive', { ids: ['owners'] })
    await client.call('POST /agents/{id}/discard', { id: 'owners' })
    t.match(
      await refusalOf(() => ann.call('POST /agent', { conversationId: 'owners', prompt: 'say x', startIn: 'docs' })),
      { status: 404 },
      'a new conversation of its id does not show its messages',
    )
  },
)

t.test(
  'a conversation without a record of what its turns could see is hidden from people limited to areas',
  walled(),
  async t => {
    const folder = folderOf(t)
    const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    makeWorkspace(where.workspace, FILES)
    let session = ''
    await t.test('before', async t => {
      const daemon = await daemonWith(t, [], where)
      await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
      const ann = await joined(daemon, 'ann', 'collaborator', ['docs'])
      session = ann.session
      for (const id of ['old', 'new']) await runTurn(ann.client, id, 'say x', { startIn: 'docs' })
      t.same((await ann.client.call('GET /agents')).agents.map(({ id }) => id).sort(), ['new', 'old'])
      await daemon.stop()
    })
    await t.test('the files of an older daemon', async () => {
      const store = openStore(`sqlite://${join(where.data, 'store.sqlite')}`)
      const { folders: _folders, ...old } = (await store.of('agent').get<{ folders: unknown }>('c/old'))!
      await store.of('agent').set('c/old', old)
      await store.close()
    })
    await t.test('after', async t => {
      const daemon = await daemonWith(t, [], where)
      const ann = createClient({ url: daemon.url, session })
      t.same(
        (await ann.call('GET /agents')).agents.map(({ id }) => id),
        ['new'],
      )
      t.match(await refusalOf(() => ann.call('GET /agents/{id}/transcript', { id: 'old' })), { status: 404 })
    })
  },
)
