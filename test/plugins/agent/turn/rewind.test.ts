import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Anchor } from '../../../../plugins/agent/conversations/anchors.js'
import type { TranscriptMessage } from '../../../../plugins/agent/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace, type Support } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { refusal, state, transcript } from '../support.js'
import { treeOf } from '../../agents/support.js'

const copyOf = ({ data }: Support, id = 'r') => join(data, 'agent/checkouts', id)
const tipOf = (daemon: Support, id = 'r') => inGit(copyOf(daemon, id), 'rev-parse', 'HEAD').trim()
const rewind = ({ client }: Support, index: number, conversationId = 'r') =>
  client.call('POST /agent/rewind', { conversationId, index })
const places = (rows: readonly TranscriptMessage[]) => rows.map(({ role, text }) => `${role} ${text.split('\n', 1)[0]}`)

/** Two turns in a private copy: rows 0 and 1, then 2 and 3. */
const twoTurns = async (daemon: Support) => {
  await runTurn(daemon.client, 'r', 'say first\nwrite a.txt\n| one', { isolated: true })
  const kept = tipOf(daemon)
  await runTurn(daemon.client, 'r', 'say second\nappend a.txt\n| two\nwrite new/deep.txt\n| new\ndelete README.md')
  return kept
}

t.test('a rewind needs the scope drive and a complete request', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await runTurn(daemon.client, 'r', 'say x', { isolated: true })
  const body = JSON.stringify({ conversationId: 'r', index: 0 })
  t.equal(
    (await daemon.fetch('/agent/rewind', { method: 'POST', body, headers: { authorization: 'Bearer nothing' } }))
      .status,
    401,
  )
  for (const scope of ['editor', 'read'] as const) {
    t.match(
      await refusal((await daemon.token(scope)).client.call('POST /agent/rewind', { conversationId: 'r', index: 0 })),
      { status: 403 },
    )
  }
  for (const bad of [
    {},
    { conversationId: 'r' },
    { conversationId: 'r', index: -1 },
    { conversationId: 'r', index: 1.5 },
    { conversationId: '', index: 0 },
  ])
    t.equal(
      (await daemon.fetch('/agent/rewind', { method: 'POST', body: JSON.stringify(bad) })).status,
      400,
      JSON.stringify(bad),
    )
  t.match(await (await daemon.token('drive')).client.call('POST /agent/rewind', { conversationId: 'r', index: 0 }), {
    dropped: 2,
  })
})

t.test('an invalid rewind is refused, and nothing changes', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await twoTurns(daemon)
  await runTurn(client, 'shared', 'say x')
  const before = [tipOf(daemon), await transcript(daemon, 'r')]
  t.match(await refusal(rewind(daemon, 0, 'nobody')), { status: 404 })
  t.match(await refusal(rewind(daemon, 4)), { status: 404, message: /4 rows, found 4/ }, 'past the end')
  t.match(await refusal(rewind(daemon, 400)), { status: 404 })
  t.match(await refusal(rewind(daemon, 1)), { status: 409, message: /user message/ }, 'an answer')
  t.match(await refusal(rewind(daemon, 0, 'shared')), { status: 409, message: /shared tree/ })
  t.same([tipOf(daemon), await transcript(daemon, 'r')], before)
  await client.call('POST /agent', { conversationId: 'r', prompt: 'ask Which?\n| a: b' })
  const watched = framesOf(client, 'r')
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  t.match(await refusal(rewind(daemon, 0)), { status: 409, message: /parked/ })
  await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Which?': 'a' } })
  await watched.all()
  await client.call('POST /agent', { conversationId: 'r', prompt: 'wait words 60000\nsay heard' })
  const running = framesOf(client, 'r')
  await running.until(({ kind }) => kind === 'init')
  const during = [tipOf(daemon), await transcript(daemon, 'r')]
  t.match(await refusal(rewind(daemon, 0)), { status: 409, message: /running/ })
  t.same([tipOf(daemon), await transcript(daemon, 'r')], during)
  await client.call('POST /agent/steer', { conversationId: 'r', text: 'go on' })
  await running.all()
  const { messages } = await transcript(daemon, 'r')
  const said = messages.findIndex(({ text }) => text === 'go on')
  t.equal(messages[said]?.checkpointId, undefined)
  t.match(await refusal(rewind(daemon, said)), { status: 409, message: /sent into a running turn/ })
})

t.test('a rewind restores the files byte for byte, removes later rows, and keeps ignored files', async t => {
  const daemon = await daemonWith(t, ['agent'], { files: { 'README.md': '# work\n', '.gitignore': '*.log\n' } })
  const { client, workspace } = daemon
  const kept = await twoTurns(daemon)
  const copy = copyOf(daemon)
  writeFileSync(join(copy, 'x.log'), 'ignored')
  writeFileSync(join(copy, 'untracked.txt'), 'left by a command')
  const { messages } = await transcript(daemon, 'r')
  t.same(
    messages.map(({ checkpointId }) => checkpointId !== undefined),
    [true, false, true, false],
  )
  t.same(await rewind(daemon, 2), { snapshot: messages[2]!.checkpointId, dropped: 2 })
  t.match(messages[2]!.checkpointId, /^branch:[0-9a-f]{40}$/)
  t.equal(readFileSync(join(copy, 'a.txt'), 'utf8'), 'one\n')
  t.equal(readFileSync(join(copy, 'README.md'), 'utf8'), '# work\n')
  t.same(
    ['new', 'untracked.txt', 'x.log'].map(name => existsSync(join(copy, name))),
    [false, false, true],
  )
  t.same(places((await transcript(daemon, 'r')).messages), ['user say first', 'assistant first'])
  t.equal(inGit(copy, 'diff', '--stat', kept, 'HEAD', '--', 'README.md'), '')
  const log = inGit(workspace, 'log', '-g', '--format=%H', 'agent/r').trim().split('\n')
  t.ok(
    log.some(commit => inGit(workspace, 'ls-tree', '-r', '--name-only', commit).includes('new/deep.txt')),
    'the discarded commits stay in the reflog of the branch',
  )
  t.match(await state(daemon, 'r'), { conversation: { session: undefined, lastRun: undefined, lastEnd: undefined } })
  t.same(await rewind(daemon, 2), { snapshot: messages[2]!.checkpointId, dropped: 0 }, 'a second rewind drops nothing')
  const frames = await runTurn(client, 'r', 'say again')
  t.match(
    frames.find(({ kind }) => kind === 'checkpoint'),
    { index: 2 },
  )
  t.match((await transcript(daemon, 'r')).messages.at(-1), { index: 3, text: 'again' })
  t.match(await rewind(daemon, 0), { dropped: 4 })
  t.notOk(existsSync(join(copy, 'a.txt')))
  t.match(await refusal(rewind(daemon, 2)), { status: 404 }, 'later checkpoints are removed')
  t.equal(inGit(workspace, 'status', '--porcelain'), '')
})

t.test(
  'in every repository created, changed, moved, removed and replaced files are as before, byte ' + 'for byte',
  async t => {
    const daemon = await daemonWith(t, ['agent'], {
      files: {
        'README.md': '# work\n',
        '.gitignore': 'nested\n*.log\n',
        'moves.txt': 'moves\n'.repeat(20),
        'goes.txt': 'goes\n',
        'deep/er/goes.txt': 'goes\n',
        'picture.bin': '\0\u0001\r\n\0',
        'ü with space.txt': 'one\r\n',
        tool: '#!/bin/sh\n',
        becomes: 'a file\n',
        'shrinks/in.txt': 'in\n',
        'nested/n.txt': 'n\n',
        'nested/.gitignore': '*.log\n',
      },
    })
    const { client, workspace, data } = daemon
    const nested = join(workspace, 'nested')
    inGit(nested, 'init', '-q', '-b', 'trunk')
    inGit(nested, 'add', '-A')
    inGit(nested, 'commit', '-qm', 'first')
    const copy = join(data, 'agent', 'checkouts', 'r')
    await runTurn(
      client,
      'r',
      'write made.txt\n| made\nrun ln -s made.txt link; chmod 755 made.txt\nwrite nested/made.txt\n| made',
      { isolated: true },
    )
    const before = treeOf(copy)
    const main = [treeOf(workspace), inGit(workspace, 'status', '--porcelain'), inGit(nested, 'status', '--porcelain')]
    await runTurn(
      client,
      'r',
      [
        'move moves.txt -> else/where.txt',
        'move made.txt -> nested-in-name.txt',
        'delete goes.txt',
        'delete deep/er/goes.txt',
        'append README.md',
        '| more',
        'write new/and/deep.txt',
        '| new',
        'move nested/n.txt -> nested/moved/n.txt',
        'append nested/made.txt',
        '| more',
        'write nested/new.txt',
        '| new',
        "run printf 'other' > picture.bin; printf 'two' > 'ü with space.txt'; chmod 755 tool; rm becomes link; "
          + 'mkdir -p becomes empty/folder; echo x > becomes/in; ln -s tool link; rm -r shrinks; ln -s deep '
          + 'shrinks; echo kept > x.log; echo kept > nested/x.log',
        'run git add -A; git mv tool renamed-tool; git commit -qm own; git rm -q --cached README.md; touch -- '
          + '-dash "new\\nline"; true',
      ].join('\n'),
    )
    t.notSame(treeOf(copy), before)
    t.match(await rewind(daemon, 2), { dropped: 2 })
    t.same(treeOf(copy), { ...before, 'x.log': 'file kept\n', 'nested/x.log': 'file kept\n' })
    for (const folder of [copy, join(copy, 'nested')])
      t.equal(inGit(folder, 'status', '--porcelain', '--', ':!nested'), '')
    t.same(
      [treeOf(workspace), inGit(workspace, 'status', '--porcelain'), inGit(nested, 'status', '--porcelain')],
      main,
      'the shared tree is unchanged',
    )
    t.match(await rewind(daemon, 0), { dropped: 2 })
    t.same(
      Object.keys(treeOf(copy)).filter(path => /made|link/.test(path)),
      [],
    )
    t.equal(readFileSync(join(copy, 'nested/n.txt'), 'utf8'), 'n\n')
    t.same((await transcript(daemon, 'r')).messages, [])
  },
)

t.test('a message without text, with only a file, has its own checkpoint', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await runTurn(client, 'r', 'say first\nwrite a.txt\n| one', { isolated: true })
  await runTurn(client, 'r', '', { attachments: ['README.md'] })
  const { messages } = await transcript(daemon, 'r')
  t.match(messages[2], { role: 'user', text: '', attachments: exactly('README.md'), checkpointId: /^branch:/ })
  await runTurn(client, 'r', 'append a.txt\n| three')
  t.match(await rewind(daemon, 2), { dropped: messages.length - 2 + 2 })
  t.same(places((await transcript(daemon, 'r')).messages), ['user say first', 'assistant first'])
  t.equal(readFileSync(join(copyOf(daemon), 'a.txt'), 'utf8'), 'one\n')
  t.match(
    (await runTurn(client, 'r', '', { attachments: ['README.md'] })).find(({ kind }) => kind === 'checkpoint'),
    { index: 2 },
  )
})

t.test('an unfinished rebase or merge, or a detached HEAD, does not prevent a rewind', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await twoTurns(daemon)
  const copy = copyOf(daemon)
  inGit(copy, 'checkout', '-q', '-f', '--detach', 'HEAD~1')
  writeFileSync(join(copy, 'README.md'), 'elsewhere')
  inGit(copy, 'add', '-A')
  await rewind(daemon, 2)
  t.equal(inGit(copy, 'branch', '--show-current').trim(), 'agent/r')
  t.equal(readFileSync(join(copy, 'README.md'), 'utf8'), '# work\n')
  t.equal(inGit(copy, 'status', '--porcelain'), '')
})

t.test('after commits to the main line the branch is still restored to its old commit', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { client, workspace } = daemon
  await runTurn(client, 'r', 'write a.txt\n| one', { isolated: true })
  const {
    repos: [first],
  } = (await state(daemon, 'r')).conversation
  writeFileSync(join(workspace, 'main.txt'), 'main')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'main moved')
  await runTurn(client, 'r', 'say rebased')
  t.not((await state(daemon, 'r')).conversation.repos[0]!.base, first!.base)
  await rewind(daemon, 0)
  t.equal((await state(daemon, 'r')).conversation.repos[0]!.base, first!.base)
  t.same((await client.call('GET /agents/{id}/diff', { id: 'r' })).repos[0]?.changes ?? [], [])
  await runTurn(client, 'r', 'write b.txt\n| b')
  t.same(
    (await client.call('GET /agents/{id}/diff', { id: 'r' })).repos[0]!.changes.map(({ path }) => path),
    ['b.txt'],
  )
  t.ok(existsSync(join(copyOf(daemon), 'main.txt')), 'the next turn follows the main line again')
})

t.test('queued messages are kept and stay paused', async t => {
  const daemon = await daemonWith(t, ['agent'])
  const { client } = daemon
  await runTurn(client, 'r', 'say x', { isolated: true })
  await client.call('POST /agent', { conversationId: 'r', prompt: 'wait 60000' })
  await client.call('POST /agent', { conversationId: 'r', prompt: 'say held', errand: 'ci-fix' })
  await client.call('POST /agent/stop', { conversationId: 'r' })
  t.match(await rewind(daemon, 0), { dropped: 3 })
  t.match(await state(daemon, 'r'), { waiting: 1, queuePaused: true })
})

t.test('a checkpoint whose commits are missing is not offered', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await twoTurns(daemon)
  const anchors = await daemon.kernel.journals.read<Anchor>('agent/anchors/r')
  const gone = anchors.map(anchor => ({
    ...anchor,
    repos: anchor.repos.map(repo => ({ ...repo, tip: 'd'.repeat(40) })),
  }))
  await daemon.kernel.journals.rewrite('agent/anchors/r', gone)
  const before = tipOf(daemon)
  t.match(await refusal(rewind(daemon, 2)), { status: 409, message: /commit dddddddddddd of root is gone/ })
  t.equal(tipOf(daemon), before)
})

t.test('if git refuses, its message is returned and no rows are removed', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await twoTurns(daemon)
  const copy = copyOf(daemon)
  const who = 'A <a@example.org> 1 +0000'
  // The repository has the commit, but not its tree.
  writeFileSync(join(copy, 'x.tmp'), `tree ${'d'.repeat(40)}\nauthor ${who}\ncommitter ${who}\n\nno tree\n`)
  const broken = inGit(daemon.workspace, 'hash-object', '-t', 'commit', '-w', join(copy, 'x.tmp')).trim()
  const anchors = await daemon.kernel.journals.read<Anchor>('agent/anchors/r')
  await daemon.kernel.journals.rewrite(
    'agent/anchors/r',
    anchors.map(anchor => ({ ...anchor, repos: anchor.repos.map(repo => ({ ...repo, tip: broken })) })),
  )
  const { messages } = await transcript(daemon, 'r')
  t.match(await refusal(rewind(daemon, 2)), { status: 424, message: /nothing was removed/ })
  t.same((await transcript(daemon, 'r')).messages, messages)
  t.equal(readFileSync(join(copy, 'a.txt'), 'utf8'), 'one\ntwo\n')
  t.same(await daemon.kernel.journals.stat('agent/rewinds/r'), undefined)
  t.match((await runTurn(daemon.client, 'r', 'say on')).at(-1), { kind: 'done', reason: 'completed' })
})

t.test('if the rows cannot be removed, the files are unchanged', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await twoTurns(daemon)
  const before = tipOf(daemon)
  const { messages } = await transcript(daemon, 'r')
  const { journals } = daemon.kernel
  const { rewrite } = journals
  journals.rewrite = async (name, entries) => {
    if (name !== 'agent/transcripts/r') return rewrite.call(journals, name, entries)
    t.equal(readFileSync(join(copyOf(daemon), 'a.txt'), 'utf8'), 'one\n', 'the files had been restored by then')
    throw new Error('the disk is broken')
  }
  t.match(await refusal(rewind(daemon, 2)), { status: 500 })
  journals.rewrite = rewrite
  t.equal(tipOf(daemon), before)
  t.equal(readFileSync(join(copyOf(daemon), 'a.txt'), 'utf8'), 'one\ntwo\n')
  t.same((await transcript(daemon, 'r')).messages, messages)
  t.match(await rewind(daemon, 2), { dropped: 2 })
})

t.test('a message during a rewind starts on the restored state', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await twoTurns(daemon)
  const { journals } = daemon.kernel
  const { rewrite } = journals
  const sent = Promise.withResolvers<{ run: string }>()
  journals.rewrite = async (name, entries) => {
    if (name === 'agent/transcripts/r') {
      sent.resolve(daemon.client.call('POST /agent', { conversationId: 'r', prompt: 'read a.txt' }))
      // A message without a wait has begun its turn by then.
      for (let calls = 0; calls < 50; calls++) await daemon.client.call('GET /agent/commands')
    }
    return rewrite.call(journals, name, entries)
  }
  t.match(await rewind(daemon, 2), { dropped: 2 })
  const { run } = await sent.promise
  const frames = await framesOf(daemon.client, 'r', { run }).all()
  t.match(
    frames.find(({ event }) => event.kind === 'checkpoint'),
    { event: { index: 2 } },
  )
  t.match(await state(daemon, 'r'), { conversation: { lastRun: run, lastEnd: 'completed' } })
  t.same(places((await transcript(daemon, 'r')).messages).slice(0, 3), [
    'user say first',
    'assistant first',
    'user read a.txt',
  ])
})

/** Two turns, a crash inside a rewind of them, and the next daemon on the same folders. */
const crashed = async (
  t: Test,
  leave: (daemon: Support, begun: Begun) => Promise<void>,
  look: (t: Test, daemon: Support) => Promise<void>,
) => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  await t.test('the crash', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    await twoTurns(daemon)
    const { journals } = daemon.kernel
    const anchor = (await journals.read<Anchor>('agent/anchors/r')).find(({ index }) => index === 2)!
    const settled = await journals.read<{ run: string }>('agent/transcripts/r')
    await leave(daemon, { index: 2, anchor, before: [{ repo: 'root', tip: tipOf(daemon) }], last: settled.at(-1)!.run })
  })
  await t.test('the next start', async t => look(t, await daemonWith(t, ['agent'], where)))
}

type Begun = { index: number; anchor: Anchor; before: { repo: string; tip: string }[]; last: string }
const begin = ({ kernel }: Support, begun: Begun) => kernel.journals.append('agent/rewinds/r', [begun])

const CRASHES: { [what: string]: (daemon: Support, begun: Begun) => Promise<void> } = {
  'before the files': async () => {},
  'among the files': async daemon => rmSync(join(copyOf(daemon), 'new'), { recursive: true }),
  'after the files': async (daemon, { anchor }) =>
    void inGit(copyOf(daemon), 'reset', '-q', '--hard', anchor.repos[0]!.tip),
  'after the record': async (daemon, { anchor }) => {
    inGit(copyOf(daemon), 'reset', '-q', '--hard', anchor.repos[0]!.tip)
    const { journals } = daemon.kernel
    await journals.rewrite('agent/transcripts/r', (await journals.read('agent/transcripts/r')).slice(0, 1))
  },
}

for (const [when, leave] of Object.entries(CRASHES)) {
  t.test(`a rewind that was killed ${when} is completed at the next start`, t =>
    crashed(
      t,
      async (daemon, begun) => {
        await begin(daemon, begun)
        await leave(daemon, begun)
      },
      async (t, daemon) => {
        t.equal(readFileSync(join(copyOf(daemon), 'a.txt'), 'utf8'), 'one\n')
        t.notOk(existsSync(join(copyOf(daemon), 'new')))
        t.same(places((await transcript(daemon, 'r')).messages), ['user say first', 'assistant first'])
        t.match(await state(daemon, 'r'), { conversation: { session: undefined, lastRun: undefined } })
        t.equal(await daemon.kernel.journals.stat('agent/rewinds/r'), undefined)
        t.match(await rewind(daemon, 2), { dropped: 0 })
      },
    ),
  )
}

t.test('work after a rewind whose end was never written is not undone', t =>
  crashed(
    t,
    (daemon, begun) => begin(daemon, { ...begun, last: 'r-older' }).then(() => {}),
    async (t, daemon) => {
      t.equal((await transcript(daemon, 'r')).total, 4)
      t.ok(existsSync(join(copyOf(daemon), 'new')))
    },
  ),
)

t.test('a queued message is newer than a rewind whose end was never written', t =>
  crashed(
    t,
    async (daemon, begun) => {
      await begin(daemon, begun)
      const at = Date.now()
      const row = { run: 'r-newer', conversationId: 'r', messageId: 'm-newer', delivery: 'started', at }
      const message = {
        run: 'r-newer',
        conversationId: 'r',
        messageId: 'm-newer',
        input: { prompt: 'read a.txt\nsay third' },
        by: 'owner@sandbox.local',
        attended: true,
        at,
      }
      await daemon.kernel.journals.append('agent/queue', [{ line: 'accept', row, message }], { flush: true })
    },
    async (t, daemon) => {
      t.match((await framesOf(daemon.client, 'r', { run: 'r-newer' }).all()).at(-1)?.event, {
        kind: 'done',
        reason: 'completed',
      })
      t.equal(readFileSync(join(copyOf(daemon), 'a.txt'), 'utf8'), 'one\ntwo\n')
      t.same(
        places((await transcript(daemon, 'r')).messages).filter(place => place.startsWith('user')),
        ['user say first', 'user say second', 'user read a.txt'],
      )
    },
  ),
)

t.test('a message that is queued behind a killed rewind is kept, and does not start automatically', t =>
  crashed(
    t,
    async (daemon, begun) => {
      await begin(daemon, begun)
      const row = { run: 'r-later', conversationId: 'r', messageId: 'm-later', delivery: 'queued', at: Date.now() }
      const message = { ...row, input: { prompt: 'say later', conversationId: 'r' }, by: 'a', attended: true }
      await daemon.kernel.journals.append('agent/queue', [
        { line: 'accept', row, message: { ...message, why: 'parked' } },
      ])
    },
    async (t, daemon) => {
      t.match(await state(daemon, 'r'), { waiting: 1, queuePaused: true })
      t.equal((await transcript(daemon, 'r')).total, 2)
    },
  ),
)
