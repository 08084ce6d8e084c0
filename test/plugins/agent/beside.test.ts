import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { runTurn } from '../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents', 'areas']
const HERE = 'write in app, services/web'

/** A workspace that is not a repository but contains two, with files around them. */
const around = async (t: Test): Promise<Support> => {
  const daemon = await daemonWith(t, GROUPS, {
    git: false,
    files: { 'PLAN.md': 'the plan\n', 'docs/guide.md': 'guide\n', 'services/notes.txt': 'notes\n' },
  })
  const { workspace } = daemon
  for (const path of ['app', 'services/web']) makeWorkspace(join(workspace, path), { 'a.txt': `of ${path}\n` })
  symlinkSync('app', join(workspace, 'current'))
  return daemon
}

/** The results of a turn's calls, in the order of their ends. */
const outcomes = (frames: readonly Frame[]): { ok: boolean; text: string }[] =>
  frames.flatMap(frame =>
    frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed')
      ? [{ ok: frame.status === 'completed', text: JSON.stringify(frame.content) }]
      : [],
  )

const played = async ({ client }: Support, script: string, id = 'c-1'): Promise<Frame[]> =>
  runTurn(client, id, script, { isolated: true })

t.test(
  'in a private copy files outside every repository are read and listed, beside the files of the copy',
  async t => {
    const daemon = await around(t)
    const frames = await played(
      daemon,
      [
        'read PLAN.md',
        'read docs/guide.md',
        'read current/a.txt',
        'write app/a.txt',
        '| changed',
        'read current/a.txt',
        'list .',
        'list services',
        'run cat PLAN.md services/notes.txt current/a.txt; ls',
        'run cd docs && pwd && cat guide.md',
      ].join('\n'),
    )
    const calls = outcomes(frames)
    t.same(
      calls.map(({ ok }) => ok),
      calls.map(() => true),
      JSON.stringify(calls),
    )
    for (const [call, text] of [
      [0, 'the plan'],
      [1, 'guide'],
      [2, 'of app'],
      [4, 'changed'],
      [5, 'PLAN.md'],
      [6, 'web/'],
      [6, 'notes.txt'],
      [7, 'the plan\\nnotes\\nchanged'],
      [8, 'guide'],
    ] as const) {
      t.ok(calls[call]?.text.includes(text), `call ${call} has ${text}: ${calls[call]?.text}`)
    }
    const preamble = frames.find(({ kind }) => kind === 'preamble')
    t.match(preamble, { notes: exactly({ title: 'Private copy', text: /app, services\/web/ }) })
    t.equal(readFileSync(join(daemon.workspace, 'app/a.txt'), 'utf8'), 'of app\n', 'the workspace is unchanged')
  },
)

t.test('no tool and no command writes these files, and each failure names the repositories', async t => {
  const daemon = await around(t)
  const listed = () =>
    (readdirSync(daemon.workspace, { recursive: true }) as string[])
      .filter(path => !/^\.sandbox|\.git/.test(path))
      .sort()
  const before = listed()
  const writes = [
    'write NOTES.md\n| lost',
    'write docs/new/deep.md\n| lost',
    'edit PLAN.md\n| - the plan\n| + another',
    'delete PLAN.md',
    'move PLAN.md -> app/PLAN.md',
    'move app/a.txt -> a.txt',
    'write services/x.txt\n| lost',
    'run echo lost > NOTES.md',
    'run mkdir made',
    'run rm PLAN.md',
    'run mv services other',
    'run touch services/x',
  ]
  const calls = outcomes(await played(daemon, writes.join('\n')))
  t.equal(calls.length, writes.length)
  for (const [at, { ok, text }] of calls.entries()) {
    t.notOk(ok, writes[at]!)
    t.ok(text.includes(HERE), `${writes[at]}: ${text}`)
  }
  t.same(listed(), before)
  t.equal(readFileSync(join(daemon.workspace, 'PLAN.md'), 'utf8'), 'the plan\n')
})

t.test('every write that succeeded is in the diff and lands, also through a link into a repository', async t => {
  const daemon = await around(t)
  const { client, workspace } = daemon
  const frames = await played(
    daemon,
    'write app/one.txt\n| 1\nwrite current/two.txt\n| 2\nrun echo 3 > services/web/three.txt; echo 4 > '
      + 'current/four.txt',
  )
  t.same(
    outcomes(frames).map(({ ok }) => ok),
    [true, true, true],
  )
  const { repos } = await client.call('GET /agents/{id}/diff', { id: 'c-1' })
  t.same(repos.flatMap(({ repo, changes }) => changes.map(({ path }) => `${repo}/${path}`)).sort(), [
    'app/four.txt',
    'app/one.txt',
    'app/two.txt',
    'services/web/three.txt',
  ])
  t.notOk(existsSync(join(workspace, 'app/two.txt')))
  t.match(await client.call('POST /agents/{id}/land', { id: 'c-1' }), { landed: true })
  for (const path of ['app/one.txt', 'app/two.txt', 'app/four.txt', 'services/web/three.txt'])
    t.ok(existsSync(join(workspace, path)), path)
})

t.test('a turn that starts in a folder outside the repositories runs there', async t => {
  const daemon = await around(t)
  const calls = outcomes(
    await runTurn(daemon.client, 'c-1', 'run pwd; cat guide.md', { isolated: true, startIn: 'docs' }),
  )
  t.match(calls[0]?.text, /docs\\nguide/)
})

t.test('a turn ends with a notice when older files lie outside every repository of the copy', async t => {
  const daemon = await around(t)
  await played(daemon, 'say begun')
  const copy = join(daemon.data, 'agent/checkouts/c-1')
  mkdirSync(join(copy, 'services/old'), { recursive: true })
  writeFileSync(join(copy, 'services/old/lost.md'), 'lost')
  const frames = await played(daemon, 'say more')
  t.match(
    frames.filter(({ kind }) => kind === 'notice'),
    exactly({
      level: 'warning',
      text: /^1 file lies outside .*services\/old\/lost\.md; have the agent move .* into app, services\/web$/,
    }),
  )
})
