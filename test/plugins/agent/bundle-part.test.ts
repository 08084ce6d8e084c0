import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parseExported } from '../../../plugins/agent/conversations/bundle-part.js'
import { returnedFolder } from '../../../sdk/node/files/moves.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'
import { refusal } from './support.js'

/** A conversation as a daemon exports it, to be modified. */
const handed = async (t: Parameters<typeof daemonWith>[0]) => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 'c', 'write a.txt\n| a\nsay done', { isolated: true })
  const [part] = (await daemon.kernel.events.collect('bundle.parts')) as [
    { group: string; files: { name: string; path: string; at: number }[] },
  ]
  t.match(part, { group: 'agent', version: 1, files: exactly({ name: 'c.json', at: Number }) })
  return { daemon, text: readFileSync(part.files[0]!.path, 'utf8') }
}

t.test('a restored conversation starts nothing and has no access', async t => {
  const { text } = await handed(t)
  const value = JSON.parse(text) as {
    conversation: { [key: string]: unknown; repos: object[] }
    anchors: object[]
    settled: object[]
  }
  const armed = {
    autoLand: true,
    landsAlone: true,
    resumeAfterOutage: true,
    permissionMode: 'bypassPermissions',
    openedByToken: 'someone',
    session: { id: 's', provider: 'script', harness: 'native' },
    lastRun: 'r-x',
    landRequested: { email: 'a@b.c', at: 1 },
    branch: 'main',
    startIn: '../out',
    folders: [{ path: '../out', access: 'read' }],
    repos: [
      ...value.conversation.repos,
      { repo: '../../out', base: 'a'.repeat(40) },
      { repo: 'x/.git', base: 'a'.repeat(40) },
      { repo: 'root', base: '--option' },
    ],
  }
  const back = parseExported(
    JSON.stringify({
      ...value,
      settled: value.settled.map(line => ({ ...line, lands: true })),
      conversation: { ...value.conversation, ...armed },
      anchors: [
        ...value.anchors,
        { id: 'x', run: 'r', index: 0, repos: [{ repo: '../x', tip: 'a'.repeat(40), base: 'a'.repeat(40) }] },
      ],
    }),
    'c.json',
  )
  const { conversation, anchors, settled } = back!
  t.equal(settled.length, value.settled.length)
  t.notOk(
    settled.some(line => 'lands' in line),
    'messages from elsewhere do not permit landing',
  )
  for (const key of [
    'autoLand',
    'landsAlone',
    'folders',
    'resumeAfterOutage',
    'permissionMode',
    'openedByToken',
    'session',
    'lastRun',
    'landRequested',
    'startIn',
  ])
    t.notOk(key in conversation, key)
  t.equal(conversation.branch, 'agent/c')
  t.match(conversation.repos, exactly({ repo: 'root' }))
  const kept = { ...value, conversation: { ...value.conversation, folders: [{ path: 'docs', access: 'work' }] } }
  t.same(parseExported(JSON.stringify(kept), 'c.json')!.conversation.folders, [{ path: 'docs', access: 'work' }])
  t.same([conversation.repos.length, anchors.length], [1, value.anchors.length])
})

t.test('invalid entries are skipped', async t => {
  const { text } = await handed(t)
  const value = JSON.parse(text) as { conversation: object; settled: object[]; anchors: object[] }
  t.ok(parseExported(text, 'c.json'))
  for (const [what, bad, name] of [
    ['another name', text, 'd.json'],
    ['no JSON', '{', 'c.json'],
    ['nothing', 'null', 'c.json'],
    [
      'an id that is a path',
      JSON.stringify({ ...value, conversation: { ...value.conversation, id: '../c' } }),
      '../c.json',
    ],
    [
      'a card of another form',
      JSON.stringify({ ...value, conversation: { ...value.conversation, totals: 'many' } }),
      'c.json',
    ],
    [
      'a row of another form',
      JSON.stringify({ ...value, settled: [{ run: 'r', rows: [{ role: 'owner', text: 'x' }] }] }),
      'c.json',
    ],
    ['a line of nobody', JSON.stringify({ ...value, settled: [{ rows: [] }] }), 'c.json'],
  ] as const)
    t.equal(parseExported(bad, name), undefined, what)
})

t.test('restored conversations replace existing ones, and unreadable ones are reported and skipped', async t => {
  const { daemon, text } = await handed(t)
  const { workspace, data } = daemon
  await runTurn(daemon.client, 'other', 'say other')
  const { messages } = (await daemon.kernel.calls.answer('GET /agents/{id}/transcript', { id: 'c' }, PLUGIN)) as {
    messages: object[]
  }
  await daemon.stop()
  const folder = returnedFolder(data, 'agent')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'c.json'), text)
  writeFileSync(join(folder, 'bad.json'), '{')
  const next = await daemonWith(t, ['agent'], { workspace, data })
  t.same(
    ((await next.kernel.calls.answer('GET /agents/{id}/transcript', { id: 'c' }, PLUGIN)) as { messages: object[] })
      .messages,
    messages,
  )
  t.match(await refusal(next.kernel.calls.answer('agent.conversation', { id: 'other' }, PLUGIN)), { status: 404 })
  t.match(
    next.logged.join('\n'),
    /reading a restored conversation failed.*bad\.json|bad\.json.*reading a restored conversation failed/,
  )
})

const PLUGIN = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const
