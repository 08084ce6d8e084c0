import { existsSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import { wallKind } from '../../../sdk/node/wall/wall.js'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith, inGit, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { clientOf, People } from '../../support/people.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { noWall } from '../../support/walls.js'

/** No file, conversation or person inside has it in its name or content. */
const PLANTED = 'zirkonia'
const FILES = {
  'README.md': `# ${PLANTED}\n`,
  'docs/a.md': 'one\n',
  'docs/deep/b.md': 'two\n',
  [`src/${PLANTED}.ts`]: `${PLANTED} source\n`,
  'look/c.md': 'seen only\n',
}

const skip = noWall((await wallKind()) !== 'none')

interface World {
  readonly daemon: Support
  readonly people: People
  readonly as: (name: string) => Client
}

/**
 * `ann` is a collaborator of `docs` for work and `look` for reading, `dot` of `docs`, `lou` of `look`, `vic` a viewer
 * of `docs`, `nil` holds nothing.
 */
const world = async (t: Test, files: { [path: string]: string } = FILES): Promise<World> => {
  const people = new People()
  people.add('owner@sandbox.local', 'owner')
  people.add('ann@example.org', 'collaborator', ['docs', 'look'])
  people.add('vic@example.org', 'viewer', ['docs'])
  people.add('dot@example.org', 'collaborator', ['docs'])
  people.add('lou@example.org', 'collaborator', ['looks'])
  people.add('nil@example.org', 'collaborator', [])
  const daemon = await daemonWith(t, ['areas', 'agent', 'agents'], { files, fakes: people.fakes })
  people.admit(daemon)
  await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
  await daemon.client.call('POST /areas', { id: 'look', label: 'Look', folders: ['look'], access: 'read' })
  await daemon.client.call('POST /areas', { id: 'looks', label: 'Looks', folders: ['look'] })
  return { daemon, people, as: name => clientOf(daemon, `${name}@example.org`) }
}

const outcomes = async (client: Client, conversationId: string, prompt: string, options: object = {}) => {
  const frames = await runTurn(client, conversationId, prompt, options)
  return { text: JSON.stringify(frames), end: frames.at(-1), frames }
}

t.test(
  'a conversation that starts outside does not exist for somebody limited, in no list, count or search',
  { skip },
  async t => {
    const { daemon, as } = await world(t)
    await runTurn(as('dot'), 'inside', `say hello quartz`, { startIn: 'docs/deep' })
    await runTurn(as('ann'), 'both', 'say hello', { startIn: 'docs' })
    await runTurn(daemon.client, PLANTED, `say hello quartz ${PLANTED}`, { startIn: 'src', title: PLANTED })
    await runTurn(daemon.client, `root-${PLANTED}`, `say hello quartz ${PLANTED}`, {})
    await runTurn(daemon.client, `docs-${PLANTED}`, `say hello quartz ${PLANTED}`, { startIn: 'docs', isolated: true })
    const { client } = daemon
    t.same(
      (await client.call('GET /agents')).agents.map(({ id }) => id).sort(),
      ['inside', 'both', `root-${PLANTED}`, `docs-${PLANTED}`, PLANTED].sort(),
    )
    const seen = async (name: string) => (await as(name).call('GET /agents')).agents.map(({ id }) => id).sort()
    t.same(
      [await seen('ann'), await seen('dot'), await seen('vic'), await seen('nil')],
      [['both', 'inside'], ['inside'], ['inside'], []],
      'by all that its turns could see',
    )
    t.match(await as('ann').call('GET /agents/search', { query: 'quartz' }), {
      matches: exactly({ id: 'inside' }),
      scanned: 2,
    })
    t.match(
      [
        (await as('ann').call('GET /areas/{id}', { id: 'docs' })).conversations,
        (await as('dot').call('GET /areas/{id}', { id: 'docs' })).conversations,
        (await client.call('GET /areas/{id}', { id: 'docs' })).conversations,
      ],
      exactly(2, 1, 3),
    )
    t.same(await as('nil').call('GET /agents/search', { query: 'quartz' }), {
      matches: [],
      scanned: 0,
      indexing: false,
    })
    t.same(
      (await (await daemon.token('read')).client.call('GET /agents')).agents.length,
      5,
      'tokens are not limited by areas',
    )
    t.notMatch(
      JSON.stringify([
        await as('ann').call('GET /agents'),
        await as('ann').call('GET /agents/search', { query: 'hello' }),
      ]),
      PLANTED,
    )
  },
)

t.test('every call about a conversation outside answers as if there was none', async t => {
  const { daemon, as } = await world(t)
  const { messageId } = await daemon.client.call('POST /agent', {
    conversationId: 'out',
    prompt: 'ask Go on?\n| yes: go on\n| no: stop',
    startIn: 'src',
    messageId: 'm-known',
  })
  const card = await framesOf(daemon.client, 'out').until(({ kind }) => kind === 'question')
  const asked: ((id: string) => Promise<unknown>)[] = [
    id => as('ann').call('GET /agents/{id}', { id }),
    id => as('ann').call('GET /agents/{id}/transcript', { id }),
    id => as('ann').call('GET /agents/{id}/diff', { id }),
    id => as('ann').call('GET /agents/{id}/{repo}/file-diff', { id, repo: 'root', path: 'docs/a.md' }),
    id => as('ann').call('GET /agents/{id}/conflicts', { id }),
    id => as('ann').call('GET /agents/{id}/queue', { id }),
    id => as('ann').call('POST /agents/{id}/rename', { id, title: 'mine' }),
    id => as('ann').call('POST /agents/{id}/seen', { id }),
    id => as('ann').call('POST /agents/seen', { ids: [id] }),
    id => as('ann').call('POST /agents/{id}/resume-after-outage', { id, resumeAfterOutage: true }),
    id => as('ann').call('POST /agents/{id}/request-land', { id }),
    id => as('ann').call('DELETE /agents/{id}/queue/{messageId}', { id, messageId }),
    id => as('ann').call('POST /agents/{id}/queue/order', { id, messageIds: [] }),
    id => as('ann').call('POST /agents/archive', { ids: [id] }),
    id => as('ann').call('POST /agents/unarchive', { ids: [id] }),
    id => as('ann').call('POST /agents/{id}/sync', { id }),
    id => as('ann').call('POST /agent/steer', { conversationId: id, text: 'x' }),
    id => as('ann').call('POST /agent/stop', { conversationId: id }),
    id => as('ann').call('POST /agent/rewind', { conversationId: id, index: 0 }),
    id => as('ann').call('POST /agent/switch-account', { conversationId: id, model: 'x' }),
    async id => {
      for await (const _ of await as('ann').call('POST /agent/attach', { conversationId: id })) continue
    },
  ]
  for (const ask of asked) {
    const [outside, unknown] = [await refusalOf(() => ask('out')), await refusalOf(() => ask('non'))]
    t.match(outside, { status: 404 }, ask.toString().slice(0, 90))
    t.equal(outside.message.replaceAll('out', 'non'), unknown.message)
  }
  t.match(
    await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'out', prompt: 'say x', startIn: 'docs' })),
    { status: 404 },
  )
  t.match(
    await refusalOf(() =>
      as('ann').call('POST /agent', {
        conversationId: 'new',
        prompt: 'say x',
        startIn: 'docs',
        forkOf: { conversationId: 'out', keep: 0, files: 'now' },
      }),
    ),
    { status: 404 },
  )
  const { requestId } = card
  t.match(
    await refusalOf(() =>
      as('ann').call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } }),
    ),
    { status: 404, message: /^there is no card/ },
  )
  t.match(await refusalOf(() => as('ann').call('POST /agent', { prompt: 'say x', messageId: 'm-known' })), {
    status: 409,
  })
  await daemon.client.call('POST /agent/stop', { conversationId: 'out' })
})

t.test('without names, only conversations inside the area are archived or marked as read', { skip }, async t => {
  const { daemon, as } = await world(t)
  await runTurn(as('dot'), 'in', 'say x', { startIn: 'docs' })
  await runTurn(as('lou'), 'looked', 'say x', { startIn: 'look' })
  await runTurn(daemon.client, 'out', 'say x', { isolated: true, startIn: 'docs' })
  const seenAt = async (id: string) => (await daemon.client.call('GET /agents/{id}', { id })).seenAt
  t.same((await as('ann').call('POST /agents/seen')).agents.map(({ id }) => id).sort(), ['in', 'looked'])
  t.same([typeof (await seenAt('in')), await seenAt('looked'), await seenAt('out')], ['number', undefined, undefined])
  t.same(
    (await as('ann').call('POST /agents/archive')).moved.map(({ id }) => id),
    ['in'],
  )
  t.same(
    (await daemon.client.call('GET /agents/archived')).agents.map(({ id }) => id),
    ['in'],
  )
  await daemon.client.call('POST /agents/archive')
  t.same((await as('ann').call('GET /agents/archived')).agents.map(({ id }) => id).sort(), ['in', 'looked'])
  t.same((await as('ann').call('GET /agents/archived', { limit: 1 })).agents.length, 1)
})

t.test('an area held for reading can be read and not changed', { skip }, async t => {
  const { as } = await world(t)
  await runTurn(as('lou'), 'looked', 'say x', { startIn: 'look' })
  t.match(await as('ann').call('GET /agents/{id}', { id: 'looked' }), { id: 'looked' })
  t.match(await refusalOf(() => as('ann').call('POST /agents/{id}/rename', { id: 'looked', title: 'x' })), {
    status: 403,
    message: 'looked lies in an area that you may only read: ask a maintainer for an area with access work',
  })
  t.match(await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'looked', prompt: 'say x' })), {
    status: 403,
  })
  t.match(
    await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'new', prompt: 'say x', startIn: 'look' })),
    { status: 403, message: 'look' },
  )
})

t.test('a turn is started inside an area held for work, and nowhere else', async t => {
  const { daemon, as } = await world(t)
  symlinkSync('../src', join(daemon.workspace, 'docs/way'))
  symlinkSync('docs', join(daemon.workspace, 'door'))
  for (const startIn of [undefined, 'src', 'nowhere', 'docs/way', 'DOCS', '.']) {
    t.match(
      await refusalOf(() =>
        as('ann').call('POST /agent', {
          conversationId: 'c',
          prompt: 'say x',
          ...(startIn !== undefined && { startIn }),
        }),
      ),
      { status: 404, message: 'inside your areas' },
      String(startIn),
    )
  }
  t.match(
    await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'c', prompt: 'say x', startIn: '../x' })),
    { status: 404 },
  )
  t.match(
    await refusalOf(() =>
      as('ann').call('POST /agent', { conversationId: 'c', prompt: 'say x', startIn: 'docs/nowhere' }),
    ),
    { status: 422 },
  )
  t.match(
    await refusalOf(() => as('vic').call('POST /agent', { conversationId: 'c', prompt: 'say x', startIn: 'docs' })),
    { status: 403 },
  )
  t.same((await daemon.client.call('GET /agents')).agents, [])
})

t.test('a turn of somebody limited gets the covered folders and nothing else', { skip }, async t => {
  const { daemon, as } = await world(t)
  const { text, end } = await outcomes(
    as('ann'),
    'mine',
    [
      'list .',
      'read docs/a.md',
      `read src/${PLANTED}.ts`,
      'read README.md',
      'read look/c.md',
      'write docs/new.md',
      '| made',
      'write src/new.ts',
      '| made',
      'write look/new.md',
      '| made',
      'run pwd; ls -A; ls -A ..; cat src/*.ts README.md; git log; cat .git; git -C .. show HEAD:README.md',
      'run echo x > ../look/by-shell.md; echo y > ../new; echo z > by-shell.md',
      'say done',
    ].join('\n'),
    { startIn: 'docs' },
  )
  t.match(end, { kind: 'done', reason: 'completed' })
  t.notMatch(text, `${PLANTED} source`)
  t.notMatch(text, `# ${PLANTED}`)
  t.match(text, 'one')
  t.match(text, 'seen only')
  const card = await as('ann').call('GET /agents/{id}', { id: 'mine' })
  t.match(card, { branch: 'agent/mine', startIn: 'docs' }, 'it works in a private copy')
  const { repos } = await as('ann').call('GET /agents/{id}/diff', { id: 'mine' })
  t.same(repos[0]?.changes.map(({ path }) => path).sort(), ['docs/by-shell.md', 'docs/new.md'])
  const all = await daemon.client.call('GET /agents/{id}/diff', { id: 'mine' })
  t.same(
    all.repos[0]?.changes.map(({ path }) => path).sort(),
    ['docs/by-shell.md', 'docs/new.md'],
    'nothing outside was changed',
  )
})

t.test(
  'a repository that an area covers whole has its history in a turn, and one covered in part has none',
  { skip },
  async t => {
    const { daemon, as, people } = await world(t)
    const nested = join(daemon.workspace, 'docs/site')
    mkdirSync(nested)
    writeFileSync(join(nested, 'page.md'), 'page\n')
    inGit(nested, 'init', '-q', '-b', 'main')
    inGit(nested, 'add', '-A')
    inGit(nested, 'commit', '-q', '-m', 'the first page')
    const { text } = await outcomes(
      as('ann'),
      'whole',
      'run cd site && git log --format=%s && git status --short && echo more >> page.md && git add -A && git -c '
        + 'user.name=A -c user.email=a@b.c commit -qm second && git log --format=%s\nrun git log; echo in $PWD',
      { startIn: 'docs' },
    )
    t.match(text, 'the first page')
    t.match(text, /second/)
    t.match(text, /not a git repository/)
    await daemon.client.call('POST /areas', { id: 'look', label: 'Look', folders: ['docs/site'], access: 'read' })
    people.add('ann@example.org', 'collaborator', ['look', 'deep'])
    await daemon.client.call('POST /areas', { id: 'deep', label: 'Deep', folders: ['docs/deep'] })
    const part = await outcomes(
      as('ann'),
      'part',
      'run cat ../site/page.md; git -C ../site log 2>&1; echo x >> ../site/page.md',
      { startIn: 'docs/deep' },
    )
    t.match(part.text, 'page')
    t.notMatch(part.text, 'the first page')
  },
)

t.test(
  'whoever speaks in a conversation of somebody limited, its turns are kept to the folders of that person',
  { skip },
  async t => {
    const { daemon, as } = await world(t)
    await as('ann').call('POST /agent', {
      conversationId: 'shared',
      prompt: 'ask Go on?\n| yes: go on\n| no: stop\nwait words 60000\nsay $words',
      startIn: 'docs',
    })
    const frames = framesOf(as('ann'), 'shared')
    const { requestId } = await frames.until(({ kind }) => kind === 'question')
    await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
    await daemon.client.call('POST /agent/steer', { conversationId: 'shared', text: 'from the owner' })
    await frames.all()
    t.match(
      await refusalOf(() =>
        daemon.client.call('POST /agent', { conversationId: 'shared', prompt: 'say x', attachments: ['README.md'] }),
      ),
      { status: 422, message: /README\.md/ },
    )
    const prompt =
      `read src/${PLANTED}.ts\nread docs/a.md\nlist .\nrun cat ../src/*.ts ../README.md; git -C .. `
      + `log\nwrite docs/b.md\n| b\nwrite look/c.md\n| c`
    const mine = JSON.stringify(await runTurn(daemon.client, 'shared', prompt))
    t.match(mine, /kept to docs, look.*fork the conversation/)
    t.notMatch(mine, `${PLANTED} source`)
    t.notMatch(mine, `# ${PLANTED}`)
    const theirs = JSON.stringify(await framesOf(as('ann'), 'shared').all())
    t.match(theirs, 'one')
    const { repos } = await as('ann').call('GET /agents/{id}/diff', { id: 'shared' })
    t.same(
      repos[0]?.changes.map(({ path }) => path),
      ['docs/b.md'],
      'and what the person reads only stays so',
    )
    t.match(await daemon.client.call('GET /agents/{id}', { id: 'shared' }), {
      folders: exactly({ path: 'docs', access: 'work' }, { path: 'look', access: 'read' }),
    })
    const fork = await runTurn(daemon.client, 'fork', `read src/${PLANTED}.ts`, {
      forkOf: { conversationId: 'shared', keep: 1, files: 'now' },
    })
    t.match(JSON.stringify(fork), `${PLANTED} source`, 'a fork of somebody who is not limited is not kept to them')
    t.match(await refusalOf(() => as('ann').call('GET /agents/{id}', { id: 'fork' })), { status: 404 })
  },
)

t.test(
  'who reaches less than the one who opened a conversation does not see it, and who reaches as much works in it',
  { skip },
  async t => {
    const { daemon, as, people } = await world(t)
    await runTurn(as('ann'), 'shared', 'read look/c.md', { startIn: 'docs' })
    t.match(
      await refusalOf(() =>
        as('dot').call('POST /agent', { conversationId: 'shared', prompt: 'say x', startIn: 'docs' }),
      ),
      { status: 404 },
    )
    people.add('dot@example.org', 'collaborator', ['docs', 'look', 'looks'])
    await runTurn(as('dot'), 'shared', 'write look/d.md\n| d')
    t.match(
      JSON.stringify(await as('dot').call('GET /agents/{id}/transcript', { id: 'shared' })),
      'seen only',
      'the record is theirs as well',
    )
    t.same(
      (await daemon.client.call('GET /agents/{id}/diff', { id: 'shared' })).repos.flatMap(({ changes }) => changes),
      [],
      'nobody writes there what the one who opened it may only read',
    )
    people.add('ann@example.org', 'collaborator', ['docs'])
    t.match(
      await refusalOf(() => as('ann').call('GET /agents/{id}/transcript', { id: 'shared' })),
      { status: 404 },
      'what a lost area showed is not there any more',
    )
  },
)

t.test(
  'words of somebody who only reads where a running turn may write wait for a turn of their own',
  { skip },
  async t => {
    const { as, people } = await world(t)
    people.add('dot@example.org', 'collaborator', ['docs', 'looks'])
    await as('dot').call('POST /agent', {
      conversationId: 'shared',
      prompt: 'say begun\nwait words 60000\nwrite look/d.md\n| by $words',
      startIn: 'docs',
    })
    const frames = framesOf(as('dot'), 'shared')
    await frames.until(({ kind }) => kind === 'text_end')
    const steered = (name: string) =>
      as(name).call('POST /agent/steer', { conversationId: 'shared', text: `from ${name}` })
    t.match(await refusalOf(() => steered('ann')), { status: 409, message: /may only read/ })
    const { run, delivery } = await as('ann').call('POST /agent', {
      conversationId: 'shared',
      prompt: 'read look/d.md\nwrite look/e.md\n| e',
    })
    t.equal(delivery, 'queued')
    await steered('dot')
    await frames.all()
    await framesOf(as('ann'), 'shared', { run }).all()
    const { repos } = await as('dot').call('GET /agents/{id}/diff', { id: 'shared' })
    t.same(
      repos[0]?.changes.map(({ path }) => path),
      ['look/d.md'],
      'and that turn writes where they may',
    )
    t.match(
      await as('dot').call('GET /agents/{id}/{repo}/file-diff', { id: 'shared', repo: 'root', path: 'look/d.md' }),
      { after: 'by from dot\n' },
    )
  },
)

t.test(
  'somebody who only reads where a turn may write answers none of its cards, and takes nothing of it back',
  { skip },
  async t => {
    const { as, people } = await world(t)
    people.add('dot@example.org', 'collaborator', ['docs', 'looks'])
    const asking = (path: string) => `ask Write?\n| yes: go on\nwrite ${path}\n| written`
    const asked = async (name: string, path: string) => {
      const { run } = await as(name).call('POST /agent', {
        conversationId: 'shared',
        prompt: asking(path),
        startIn: 'docs',
      })
      const frames = framesOf(as(name), 'shared', { run })
      const { requestId } = await frames.until(({ kind }) => kind === 'question')
      const answer = (by: string) =>
        as(by).call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Write?': 'yes' } })
      return { frames, answer }
    }
    const theirs = await asked('dot', 'look/d.md')
    t.match(await refusalOf(() => theirs.answer('ann')), { status: 403, message: /folders you may only read/ })
    await theirs.answer('dot')
    await theirs.frames.all()
    t.match(await refusalOf(() => as('ann').call('POST /agent/rewind', { conversationId: 'shared', index: 0 })), {
      status: 403,
      message: /folders you may only read/,
    })
    const own = await asked('ann', 'look/e.md')
    await own.answer('ann')
    await own.frames.all()
    const { repos } = await as('dot').call('GET /agents/{id}/diff', { id: 'shared' })
    t.same(
      repos[0]?.changes.map(({ path }) => path),
      ['look/d.md'],
      'a turn of their own, which writes where they may, takes their answer',
    )
    await as('dot').call('POST /agent/rewind', { conversationId: 'shared', index: 0 })
  },
)

t.test('a turn that waited starts with what its sender still holds', { skip }, async t => {
  const { daemon, as, people } = await world(t)
  await as('ann').call('POST /agent', {
    conversationId: 'shared',
    prompt: 'ask Go on?\n| yes: go on\n| no: stop',
    startIn: 'docs',
  })
  const frames = framesOf(daemon.client, 'shared')
  const { requestId } = await frames.until(({ kind }) => kind === 'question')
  const { run } = await as('ann').call('POST /agent', { conversationId: 'shared', prompt: 'read docs/a.md' })
  people.add('ann@example.org', 'collaborator', ['look'])
  await daemon.client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
  await frames.all()
  const later = await framesOf(daemon.client, 'shared', { run }).all()
  t.match(later.at(-1), { event: { kind: 'done', reason: 'failed' } })
  t.match(JSON.stringify(later), 'where it may no longer write')
})

t.test('a conversation in the shared tree takes no words of somebody limited', { skip }, async t => {
  const { daemon, as, people } = await world(t)
  await runTurn(daemon.client, 'tree', 'say x', { startIn: 'docs' })
  t.match(await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'tree', prompt: 'say x' })), {
    status: 404,
  })
  await daemon.client.call('POST /areas', { id: 'all', label: 'All', folders: ['.'] })
  people.add('ann@example.org', 'collaborator', ['all'])
  t.match(await refusalOf(() => as('ann').call('POST /agent', { conversationId: 'tree', prompt: 'say x' })), {
    status: 409,
    message: 'shared tree',
  })
})

t.test('attachments and mentions outside of an area are handled like missing files', async t => {
  const { daemon, as } = await world(t)
  const sent = (attachment: string) =>
    refusalOf(() =>
      as('ann').call('POST /agent', {
        conversationId: 'c',
        prompt: 'say x',
        startIn: 'docs',
        attachments: [attachment],
      }),
    )
  const [outside, unknown] = [await sent('README.md'), await sent('NOTHING')]
  t.match(outside, { status: 422 })
  t.equal(outside.message.replace('README.md', 'NOTHING'), unknown.message)
  if (skip) return
  const frames = await runTurn(as('ann'), 'c', 'say x', {
    startIn: 'docs',
    mentions: ['README.md', 'docs/a.md'],
    attachments: ['docs/a.md'],
  })
  t.notMatch(JSON.stringify(frames.filter(({ kind }) => kind === 'preamble')), 'README')
  t.ok(existsSync(join(daemon.workspace, 'README.md')))
  t.equal(readFileSync(join(daemon.workspace, 'docs/a.md'), 'utf8'), 'one\n')
})

t.test('a diff that reaches beyond the area shows only the files inside', { skip }, async t => {
  const { daemon, as } = await world(t)
  await runTurn(as('dot'), 'wide', 'write docs/a.md\n| changed', { startIn: 'docs' })
  const copy = join(daemon.data, 'agent/checkouts/wide')
  writeFileSync(join(copy, `src/${PLANTED}.ts`), 'changed\n')
  renameSync(join(copy, 'README.md'), join(copy, 'docs/from-outside.md'))
  await daemon.client.call('POST /agents/{id}/sync', { id: 'wide' })
  const diff = await as('dot').call('GET /agents/{id}/diff', { id: 'wide' })
  t.same(
    diff.repos.map(({ repo, changes }) => [repo, changes.map(({ path }) => path).sort()]),
    [['root', ['docs/a.md', 'docs/from-outside.md']]],
  )
  t.notMatch(JSON.stringify(diff), /zirkonia|README/)
  t.match(await as('dot').call('GET /agents/{id}/{repo}/file-diff', { id: 'wide', repo: 'root', path: 'docs/a.md' }), {
    before: 'one\n',
    after: 'changed\n',
  })
  t.notMatch(
    JSON.stringify(
      await as('dot').call('GET /agents/{id}/{repo}/file-diff', {
        id: 'wide',
        repo: 'root',
        path: 'docs/from-outside.md',
      }),
    ),
    'README',
  )
  const sides = (path: string) =>
    refusalOf(() => as('dot').call('GET /agents/{id}/{repo}/file-diff', { id: 'wide', repo: 'root', path }))
  t.equal(
    (await sides(`src/${PLANTED}.ts`)).message.replace(`src/${PLANTED}.ts`, 'src/none.ts'),
    (await sides('src/none.ts')).message,
  )
  const [mine, whole] = [
    await as('dot').call('GET /agents/{id}', { id: 'wide' }),
    await daemon.client.call('GET /agents/{id}', { id: 'wide' }),
  ]
  t.ok(whole.diff)
  t.notOk(mine.diff, 'figures over the whole of it are left out')
})

t.test(
  'entries of activity are there for somebody limited when their conversation is, and for a token without an account',
  { skip },
  async t => {
    const people = new People()
    people.add('owner@sandbox.local', 'owner')
    people.add('ann@example.org', 'collaborator', ['docs'])
    const daemon = await daemonWith(t, ['areas', 'activity', 'agent', 'agents'], { files: FILES, fakes: people.fakes })
    people.admit(daemon)
    await daemon.client.call('POST /areas', { id: 'docs', label: 'Docs', folders: ['docs'] })
    await runTurn(clientOf(daemon, 'ann@example.org'), 'inside', 'say hello', { startIn: 'docs/deep' })
    await runTurn(daemon.client, PLANTED, `say ${PLANTED}`, { startIn: 'src', isolated: true })
    for (const id of ['inside', PLANTED])
      await daemon.client.call('POST /agents/{id}/auto-land', { id, autoLand: false })
    const { events } = await clientOf(daemon, 'ann@example.org').call('GET /activity')
    t.same([...new Set(events.map(({ conversationId }) => conversationId))], ['inside'])
    t.notMatch(JSON.stringify(events), PLANTED)
    t.match(JSON.stringify((await daemon.client.call('GET /activity')).events), PLANTED)
  },
)

t.test(
  'how far somebody limited reaches is asked once for a call, however much of its answer goes by it',
  { skip },
  async t => {
    const people = new People()
    people.add('ann@example.org', 'collaborator', ['docs'])
    let asked = 0
    const reach = () => {
      asked += 1
      return { folders: [{ path: 'docs', access: 'work' as const }] }
    }
    const daemon = await daemonWith(t, ['agent', 'agents'], {
      files: FILES,
      fakes: { ...people.fakes, 'areas.reach': reach },
    })
    people.admit(daemon)
    const ann = clientOf(daemon, 'ann@example.org')
    await runTurn(ann, 'in', 'write docs/b.md\n| x', { startIn: 'docs' })
    await runTurn(daemon.client, 'out', 'say x', { startIn: 'src' })
    const asks = async (work: () => Promise<unknown>) => {
      asked = 0
      await work()
      return asked
    }
    t.equal(
      await asks(async () =>
        t.same(
          (await ann.call('GET /agents')).agents.map(({ id }) => id),
          ['in'],
        ),
      ),
      1,
    )
    t.equal(await asks(() => ann.call('POST /agents/{id}/sync', { id: 'in' })), 1)
    t.equal(await asks(() => ann.call('POST /agents/seen', {})), 1)
    t.equal(await asks(() => daemon.client.call('GET /agents')), 0)
  },
)
