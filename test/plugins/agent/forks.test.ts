import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import type { TurnInput } from '../../../plugins/agent/contract.js'
import { daemonWith, folderOf, inGit, makeWorkspace, type Support } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { inner, refusal, state, transcript } from './support.js'

const copyOf = ({ data }: Support, id: string) => join(data, 'agent/checkouts', id)

/** Commits a file on the main line and returns the commit. */
const commit = (workspace: string, name: string): string => {
  writeFileSync(join(workspace, name), name)
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', name)
  return inGit(workspace, 'rev-parse', 'HEAD').trim()
}

const send = ({ client }: Support, input: Partial<TurnInput>) =>
  client.call('POST /agent', { conversationId: 'f', prompt: 'say x', ...input } as TurnInput)

t.test(
  'a pin to an unknown repository or commit, or to a branch, is refused, and no conversation is opened',
  async t => {
    const daemon = await daemonWith(t, ['agent'])
    inGit(daemon.workspace, 'branch', 'abcdef12')
    const head = inGit(daemon.workspace, 'rev-parse', 'HEAD').trim()
    const cases: [status: number, worktreeBase: unknown, message: RegExp][] = [
      [400, [], /worktreeBase/],
      [400, [{ repo: 'root' }], /base/],
      [400, [{ repo: 'root', base: '' }], /base/],
      [422, [{ repo: 'elsewhere', base: head }], /no repository "elsewhere": expected root/],
      [422, [{ repo: 'root', base: 'd'.repeat(40) }], /id of a commit of root/],
      [422, [{ repo: 'root', base: 'HEAD' }], /id of a commit/],
      [422, [{ repo: 'root', base: '--all' }], /id of a commit/],
      [422, [{ repo: 'root', base: 'abcdef12' }], /id of a commit/],
      [
        422,
        [
          { repo: 'root', base: head },
          { repo: 'root', base: head },
        ],
        /found several/,
      ],
    ]
    for (const [status, worktreeBase, message] of cases)
      t.match(
        await refusal(send(daemon, { worktreeBase } as Partial<TurnInput>)),
        { status, message },
        JSON.stringify(worktreeBase),
      )
    t.match(await refusal(state(daemon, 'f')), { status: 404 })
  },
)

t.test('a pinned conversation gets a private copy at its commits, which never follows the main line', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { workspace, client } = daemon
  const first = inGit(workspace, 'rev-parse', 'HEAD').trim()
  commit(workspace, 'second.txt')
  await runTurn(client, 'f', 'write a.txt\n| a', { worktreeBase: [{ repo: 'root', base: first.slice(0, 12) }] })
  const copy = copyOf(daemon, 'f')
  t.same(
    ['README.md', 'a.txt', 'second.txt'].map(name => existsSync(join(copy, name))),
    [true, true, false],
  )
  t.match(await state(daemon, 'f'), {
    conversation: {
      branch: 'agent/f',
      starts: undefined,
      repos: exactly({ repo: 'root', base: first, pinned: true }),
    },
  })
  commit(workspace, 'third.txt')
  const frames = await runTurn(client, 'f', 'say on', { worktreeBase: [{ repo: 'root', base: 'ignored later' }] })
  t.match(frames[0], { kind: 'worktree', base: first, sync: { commits: 0, blocked: { length: 0 } } })
  t.notOk(existsSync(join(copy, 'third.txt')))
  t.match(await client.call('POST /agents/{id}/land', { id: 'f' }), { landed: true })
  t.ok(existsSync(join(workspace, 'a.txt')))
  t.match(
    (await state(daemon, 'f')).conversation.repos,
    exactly({ pinned: true, base: first }),
    'a landing keeps the pin',
  )
})

t.test('pins are kept when the daemon is killed before the copy is made', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const first = inGit(where.workspace, 'rev-parse', 'HEAD').trim()
  commit(where.workspace, 'second.txt')
  await t.test('the first daemon', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    const { run } = await send(daemon, { worktreeBase: [{ repo: 'root', base: first }] })
    await daemon.stop()
    t.ok(run)
  })
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    await runTurn(daemon.client, 'f', 'say again')
    t.match((await state(daemon, 'f')).conversation.repos, exactly({ base: first, pinned: true }))
    t.notOk(existsSync(join(copyOf(daemon, 'f'), 'second.txt')))
  })
})

/** A conversation of two turns in a private copy: rows 0 and 1, then 2 and 3. */
const source = async ({ client }: Support) => {
  await runTurn(client, 'src', 'say first\nwrite a.txt\n| one', { isolated: true })
  await runTurn(client, 'src', 'say second\nappend a.txt\n| two')
}

t.test('a fork that cannot be made is refused, and leaves nothing', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await source(daemon)
  await runTurn(daemon.client, 'shared', 'say x')
  const fork = (forkOf: unknown, more = {}) => send(daemon, { forkOf, ...more } as Partial<TurnInput>)
  const cases: [status: number, forkOf: unknown, more?: object][] = [
    [400, { conversationId: 'src', keep: -1, files: 'now' }],
    [400, { conversationId: 'src', keep: 0 }],
    [400, { conversationId: 'src', keep: 0, files: 'later' }],
    [404, { conversationId: 'nobody', keep: 0, files: 'now' }],
    [404, { conversationId: 'src', keep: 5, files: 'now' }],
    [409, { conversationId: 'src', keep: 1, files: 'then' }],
    [409, { conversationId: 'src', keep: 4, files: 'then' }],
    [409, { conversationId: 'shared', keep: 0, files: 'then' }],
    [409, { conversationId: 'src', keep: 0, files: 'now' }, { conversationId: 'shared' }],
  ]
  for (const [status, forkOf, more] of cases)
    t.match(await refusal(fork(forkOf, more)), { status, message: /\w/ }, JSON.stringify([forkOf, more]))
  t.match(await refusal(state(daemon, 'f')), { status: 404 })
  t.same(await daemon.kernel.journals.list('agent/forks/'), [])
})

t.test('an editor token forks only what it opened', async t => {
  const daemon = await daemonWith(t, ['agent'])
  await source(daemon)
  const { client } = await daemon.token('editor')
  await runTurn(client, 'mine', 'say x')
  const of = (conversationId: string) =>
    client.call('POST /agent', {
      conversationId: `of-${conversationId}`,
      prompt: 'say y',
      forkOf: { conversationId, keep: 0, files: 'now' },
    })
  t.match(await refusal(of('src')), { status: 404 })
  t.match(await of('mine'), { delivery: 'started' })
})

t.test('a fork begins with the kept rows and the current files of the source', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { client } = daemon
  await source(daemon)
  await runTurn(client, 'f', 'say mine', { forkOf: { conversationId: 'src', keep: 2, files: 'now' } })
  t.same((await client.call('GET /agents/{id}', { id: 'f' })).forkedFrom, {
    conversationId: 'src',
    index: 2,
    files: 'now',
  })
  t.notOk('forkedFrom' in (await client.call('GET /agents/{id}', { id: 'src' })))
  const [theirs, mine] = [await transcript(daemon, 'src'), await transcript(daemon, 'f')]
  t.same(
    mine.messages.map(({ index, text }) => `${index} ${text.split('\n', 1)[0]}`),
    ['0 say first', '1 first', '2 say mine', '3 mine'],
  )
  const bare = ({ checkpointId: _id, ...row }: (typeof theirs.messages)[number]) => row
  t.same(
    mine.messages.slice(0, 2),
    theirs.messages.slice(0, 2).map(bare),
    'a row of the source has no checkpoint in the fork',
  )
  const { conversation } = await state(daemon, 'f')
  t.match(conversation, { forkedFrom: { conversationId: 'src', index: 2, files: 'now' }, branch: 'agent/f' })
  t.equal(readFileSync(join(copyOf(daemon, 'f'), 'a.txt'), 'utf8'), 'one\ntwo\n')
  t.equal(theirs.total, 4)
  t.same(await daemon.kernel.journals.list('agent/forks/'), [])
  await inner(daemon, 'agent.discard', { id: 'src' })
  await runTurn(client, 'g', 'say late', { forkOf: { conversationId: 'src', keep: 4, files: 'now' } })
  t.equal((await transcript(daemon, 'g')).total, 6, 'a discarded conversation can still be forked')
})

t.test('a fork with the files of a message begins at its commits, and can land its work', async t => {
  const daemon = await daemonWith(t, ['agent', 'agents'])
  const { client, workspace } = daemon
  await source(daemon)
  commit(workspace, 'main.txt')
  const frames = await runTurn(client, 'f', 'say mine\nappend b.txt\n| b', {
    forkOf: { conversationId: 'src', keep: 2, files: 'then' },
  })
  t.match(
    frames.find(({ kind }) => kind === 'checkpoint'),
    { index: 2 },
  )
  const copy = copyOf(daemon, 'f')
  t.equal(readFileSync(join(copy, 'a.txt'), 'utf8'), 'one\n')
  t.notOk(existsSync(join(copy, 'main.txt')))
  const {
    repos: [change],
  } = await client.call('GET /agents/{id}/diff', { id: 'f' })
  t.same(
    change!.changes.map(({ path }) => path),
    ['a.txt', 'b.txt'],
  )
  await runTurn(client, 'f', 'say on')
  t.ok(existsSync(join(copy, 'main.txt')), 'it follows the main line from its second turn on')
  t.match(await client.call('POST /agent/rewind', { conversationId: 'f', index: 2 }), { dropped: 4 })
  t.equal(readFileSync(join(copyOf(daemon, 'src'), 'a.txt'), 'utf8'), 'one\ntwo\n', 'the source is untouched')
})

t.test('after a kill an accepted fork begins with its rows, and one that was not accepted does not exist', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  await t.test('the crash', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    const { journals } = daemon.kernel
    await source(daemon)
    const { run } = await send(daemon, {
      prompt: 'wait 60000',
      forkOf: { conversationId: 'src', keep: 2, files: 'now' },
    })
    await framesOf(daemon.client, 'f', { run }).until(({ kind }) => kind === 'init')
    const rows = (await transcript(daemon, 'src')).messages.slice(0, 2)
    // The state after a kill between the acceptance and the record.
    await journals.remove('agent/transcripts/f')
    await journals.rewrite('agent/forks/f', rows)
    await journals.rewrite('agent/forks/never', rows)
  })
  await t.test('the next start', async t => {
    const daemon = await daemonWith(t, ['agent'], where)
    await framesOf(daemon.client, 'f').all()
    t.same(
      (await transcript(daemon, 'f')).messages.map(({ role }) => role),
      ['user', 'assistant', 'user'],
    )
    t.same(await daemon.kernel.journals.list('agent/forks/'), [])
    t.equal((await runTurn(daemon.client, 'never', 'say x')).at(-1)?.kind, 'done')
    t.equal((await transcript(daemon, 'never')).total, 2)
  })
})
