import { existsSync, globSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Started } from '../../../plugins/agent/contract.js'
import { treeOf } from '../../plugins/agents/support.js'
import { refusal, state } from '../../plugins/agent/support.js'
import { folderOf, inGit, makeWorkspace, spawnDaemon, type RunningDaemon, type Support } from '../../support/daemon.js'
import { makeEarlier } from '../../support/repositories/earlier-copy.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { packing, restoring } from '../bundles.js'
import {
  ACCESS_POINTS,
  ACCOUNTS_POINTS,
  APPROVALS_POINTS,
  AUTOMATIONS_POINTS,
  CAPABILITIES_POINTS,
  CHORES_POINTS,
  DISKS_POINTS,
  EXTENSIONS_POINTS,
  LATE_MS,
  LOOPS_POINTS,
  EXIT_POINTS,
  VPN_POINTS,
  WORKFLOWS_POINTS,
  ISSUES_POINTS,
  NEEDS_POINTS,
  OUTBOX_POINTS,
  PANELS_POINTS,
  PERSONAS_POINTS,
  PIPELINES_POINTS,
  PUSH_POINTS,
  SECRETS_POINTS,
  SHARE_POINTS,
  SHIELD_POINTS,
  SKILLS_POINTS,
  WORKSPACE_POINTS,
  GIT_POINTS,
  type Where,
  after,
  dies,
  kept,
  whereIn,
} from './failpoints.js'
import { exactly, spread } from '../../support/lists.js'

/** The test files that share the cases: tap runs several at once. */
export const FILES = ['failpoints', 'failpoints-second', 'failpoints-third'] as const

/** Every failpoint at which a case ends a daemon. */
export const reached = new Set<string>([
  ...ACCESS_POINTS,
  ...ACCOUNTS_POINTS,
  ...APPROVALS_POINTS,
  ...AUTOMATIONS_POINTS,
  ...CAPABILITIES_POINTS,
  ...CHORES_POINTS.map(point => point.split(':')[0]!),
  ...DISKS_POINTS,
  ...EXTENSIONS_POINTS,
  ...GIT_POINTS,
  ...LOOPS_POINTS,
  ...EXIT_POINTS,
  ...VPN_POINTS,
  ...WORKFLOWS_POINTS,
  ...ISSUES_POINTS,
  ...NEEDS_POINTS,
  ...OUTBOX_POINTS,
  ...PANELS_POINTS,
  ...PERSONAS_POINTS,
  ...PIPELINES_POINTS,
  ...PUSH_POINTS,
  ...SECRETS_POINTS,
  ...SHARE_POINTS,
  ...SHIELD_POINTS,
  ...SKILLS_POINTS,
  ...WORKSPACE_POINTS,
])
const all: { readonly name: string; readonly run: (t: Test) => Promise<void> }[] = []

/** A case for each point. */
const cases = (what: string, points: readonly string[], run: (t: Test, point: string) => Promise<void>): void => {
  for (const point of points) {
    reached.add(point.split(':')[0]!)
    all.push({ name: `${what}, killed at ${point}`, run: t => run(t, point) })
  }
}

/** Runs the cases of one of the files: a fifth of them, half in a whole run, and all with `npm run crash`. */
export const runCases = (t: Test, file: (typeof FILES)[number]): void => {
  t.jobs = 2
  t.setTimeout(480_000)
  spread(all, all.length / 5, all.length / 2).forEach(({ name, run }, at) => {
    if (FILES[at % FILES.length] === file) void t.test(name, { buffered: true }, run)
  })
}

const texts = (rows: readonly { role: string; text: string }[]) =>
  rows.filter(({ role }) => role === 'assistant').map(({ text }) => text)
const userRows = (rows: readonly { role: string; messageId?: string }[]) =>
  rows.filter(({ role }) => role === 'user').map(({ messageId }) => messageId)
const copyOf = ({ data }: Where, id: string) => join(data, 'agent', 'checkouts', id)
const rowsOf = async ({ client }: Support, id: string) =>
  (await client.call('GET /agents/{id}/transcript', { id })).messages
const gone = (error: { status?: number }) => (error.status === 404 ? undefined : Promise.reject(error))

// Turns and their queue -----------------------------------------------------------------------------------------------

const FIRST = {
  conversationId: 'c',
  messageId: 'm-1',
  isolated: true,
  prompt: 'append log.txt\n| one\nsay first\nask Which?\n| a\n| b\nappend log.txt\n| two\nsay after $answer',
}
const SECOND = {
  conversationId: 'c',
  messageId: 'm-2',
  errand: 'ci-fix',
  prompt: 'append log.txt\n| three\nsay second',
} as const
const answer = (run: string) => ({ kind: 'question', requestId: `${run}.1`, answers: { 'Which?': 'b' } }) as const

const IMPORT = ['checked', 'taken', 'noted', 'logged', 'moved'].map(name => `agent.import.${name}`)

/** A turn with a question, and a queued message: each step happens once, wherever the daemon is killed. */
const turns = (warm: boolean) => async (t: Test, point: string) => {
  const where = whereIn(t)
  const acknowledged: Started[] = []
  let [seen, answered]: [{ seq: number; event: object }[], boolean] = [[], false]
  await dies(t, where, point, async ({ once: client }) => {
    if (warm) {
      await runTurn(client, 'w', 'say warm', { isolated: true })
      while (!existsSync(join(where.data, 'agent/made/.spare.json')))
        await new Promise(resolve => setTimeout(resolve, 5))
    }
    acknowledged.push(await client.call('POST /agent', FIRST))
    const { run } = acknowledged[0]!
    const watched = framesOf(client, 'c', { run })
    seen = watched.seen
    acknowledged.push(await client.call('POST /agent', SECOND))
    await watched.until(({ kind }) => kind === 'question')
    await client.call('POST /agent/reply', answer(run))
    answered = true
    await watched.all()
    await framesOf(client, 'c', { run: acknowledged[1]!.run }).all()
  })
  await after(t, where, async daemon => {
    const { client } = daemon
    const again = [await client.call('POST /agent', FIRST), await client.call('POST /agent', SECOND)] as const
    t.same(again.slice(0, acknowledged.length), acknowledged, 'acknowledged requests get the same answers again')
    const [{ run }, second] = again
    const newest = framesOf(client, 'c', { run: second.run }).all()
    if (!answered) {
      await framesOf(client, 'c', { run })
        .until(({ kind }) => kind === 'question')
        .catch(() => {})
      await client.call('POST /agent/reply', answer(run)).catch(gone)
    }
    await newest
    const rows = await rowsOf(daemon, 'c')
    t.same(userRows(rows), ['m-1', 'm-2'], 'each message exists once')
    t.same(
      texts(rows)
        .map(text => text.trim())
        .filter(Boolean),
      ['first', 'after b', 'second'],
      'each sentence appears once',
    )
    t.same(
      rows.flatMap(({ cards = [] }) => cards.map(({ reply }) => reply)),
      [answer(run)],
      'the card was answered once',
    )
    t.equal(
      readFileSync(join(copyOf(where, 'c'), 'log.txt'), 'utf8'),
      'one\ntwo\nthree\n',
      'each line was written once',
    )
    await kept(t, daemon, run, seen)
    await kept(t, daemon, second.run)
    t.equal(inGit(where.workspace, 'status', '--porcelain'), '', 'the shared tree is unchanged')
    t.equal(inGit(where.workspace, 'show', 'agent/c:log.txt'), 'one\ntwo\nthree\n', 'the repository has the work')
    t.equal(inGit(where.workspace, 'rev-parse', 'agent/c'), inGit(copyOf(where, 'c'), 'rev-parse', 'agent/c'))
    t.equal(inGit(where.workspace, 'fsck', '--strict', '--no-dangling'), '')
  })
}

cases(
  'a turn and a queued message',
  [
    'agent.queue.accepted',
    'agent.queue.accepted:2',
    'agent.turn.entered',
    'agent.turn.saved:3',
    'agent.card.parked',
    'agent.card.resolved',
    'agent.card.answered',
    'agent.turn.ending',
    'agent.turn.taken',
    'agent.turn.recorded',
    'agent.turn.billed',
    'agent.turn.counted',
    'agent.turn.done',
    'agent.queue.ended',
    'agent.turn.removed',
    'agent.turn.entered:2',
    'agent.turn.done:2',
    'agent.copy.registered',
    'agent.copy.added',
    'agent.copy.filled',
    'agent.copy.made',
    'journal.append:2',
    'journal.append:9',
    'journal.append.torn',
    'journal.append.torn:4',
    'journal.append.torn:15',
    'journal.append.written',
    'journal.append.written:5',
    'journal.append.written:18',
    'journal.flushed',
    'journal.flushed:3',
  ],
  turns(false),
)

cases('a turn whose work is imported', [...IMPORT, ...IMPORT.map(point => `${point}:2`)], turns(false))

cases(
  'a turn that gets the warm copy',
  ['agent.warm.claimed', 'agent.warm.moved', 'agent.warm.pointed', 'agent.branch.locked:2', 'agent.warm.attached'],
  turns(true),
)

cases(
  'a copy of an earlier version that gets its own folders',
  ['agent.copy.renewing', 'agent.copy.made'],
  async (t, point) => {
    const where = whereIn(t)
    const input = { conversationId: 'e', messageId: 'm-e', prompt: 'append log.txt\n| two' }
    const first = await spawnDaemon(t, where)
    await runTurn(first.client, 'e', 'append log.txt\n| one', { isolated: true })
    await first.terminate()
    makeEarlier(join(where.data, 'agent'), 'e')
    t.match(inGit(where.workspace, 'worktree', 'list'), copyOf(where, 'e'))
    await dies(t, where, point, async ({ once: client }) => {
      await client.call('POST /agent', input)
      await framesOf(client, 'e').all()
    })
    await after(t, where, async daemon => {
      const { run } = await daemon.client.call('POST /agent', input)
      await framesOf(daemon.client, 'e', { run }).all()
      t.equal(readFileSync(join(copyOf(where, 'e'), 'log.txt'), 'utf8'), 'one\ntwo\n')
      t.equal(inGit(where.workspace, 'show', 'agent/e:log.txt'), 'one\ntwo\n')
      t.equal(inGit(where.workspace, 'fsck', '--strict', '--no-dangling'), '')
    })
  },
)

cases(
  'a turn that asks twice',
  ['agent.card.parked', 'agent.card.parked:2', 'agent.card.answered'],
  async (t, point) => {
    const where = whereIn(t)
    const input = {
      conversationId: 'q',
      messageId: 'm-q',
      prompt: 'ask First?\n| a\n| b\nask Second?\n| c\n| d\nsay $answer',
    }
    const answers: [question: string, answer: string][] = [
      ['First?', 'a'],
      ['Second?', 'd'],
    ]
    const answer = async (client: RunningDaemon['client'], run: string) => {
      for (const [at, [question, text]] of answers.entries()) {
        const requestId = `${run}.${at + 1}`
        await framesOf(client, 'q', { run }).until(frame => frame.kind === 'question' && frame.requestId === requestId)
        await client.call('POST /agent/reply', { kind: 'question', requestId, answers: { [question]: text } })
      }
      return framesOf(client, 'q', { run }).all()
    }
    await dies(
      t,
      where,
      point,
      async ({ once: client }) => void (await answer(client, (await client.call('POST /agent', input)).run)),
    )
    await after(t, where, async daemon => {
      await answer(daemon.client, (await daemon.client.call('POST /agent', input)).run)
      t.same(
        texts(await rowsOf(daemon, 'q'))
          .map(text => text.trim())
          .filter(Boolean),
        ['d'],
        'each card has its own answer',
      )
    })
  },
)

cases('a turn that is stopped', ['agent.turn.stopping'], async (t, point) => {
  const where = whereIn(t)
  await dies(t, where, point, async ({ once: client }) => {
    await client.call('POST /agent', { conversationId: 's', prompt: 'say begun\nwait 60000' })
    await framesOf(client, 's').until(({ kind }) => kind === 'text_end')
    await client.call('POST /agent/stop', { conversationId: 's' })
  })
  await after(t, where, async daemon =>
    t.match(await state(daemon, 's'), { live: undefined, conversation: { lastEnd: 'stopped' } }),
  )
})

cases('an entry of the activity record', ['activity.recorded:2'], async (t, point) => {
  const where = whereIn(t)
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'w', 'say done', { isolated: true })
    await client.call('POST /agents/{id}/auto-land', { id: 'w', autoLand: true })
  })
  await after(t, where, async ({ client }) => {
    t.match(
      (await client.call('GET /activity')).events.filter(({ type }) => type === 'agent.autoland'),
      exactly({ conversationId: 'w', extra: { autoLand: true } }),
    )
    t.equal((await client.call('GET /activity/status')).chain.intact, true)
  })
})

cases('a queue that is reordered', ['agent.queue.ordered'], async (t, point) => {
  const where = whereIn(t)
  const wait = (client: RunningDaemon['client'], prompt: string) =>
    client.call('POST /agent', {
      conversationId: 'o',
      messageId: prompt,
      prompt: `append log.txt\n| ${prompt}`,
      errand: 'ci-fix',
    })
  await dies(t, where, point, async ({ once: client }) => {
    await client.call('POST /agent', { conversationId: 'o', messageId: 'first', prompt: 'ask On?\n| yes' })
    const { requestId } = await framesOf(client, 'o').until(({ kind }) => kind === 'question')
    writeFileSync(join(where.data, 'card'), requestId)
    await wait(client, 'one')
    await wait(client, 'two')
    await client.call('POST /agents/{id}/queue/order', { id: 'o', messageIds: ['two', 'one'] })
  })
  await after(t, where, async daemon => {
    const last = framesOf(daemon.client, 'o', { run: (await wait(daemon.client, 'one')).run })
    await daemon.client.call('POST /agent/reply', {
      kind: 'question',
      requestId: readFileSync(join(where.data, 'card'), 'utf8'),
      answers: { 'On?': 'yes' },
    })
    await last.all()
    t.same(userRows(await rowsOf(daemon, 'o')), ['first', 'two', 'one'])
    t.equal(readFileSync(join(where.workspace, 'log.txt'), 'utf8'), 'two\none\n')
  })
})

cases(
  'a turn that moves to another model',
  ['agent.move.told', 'agent.move.shown', 'agent.move.seated'],
  async (t, point) => {
    const where = whereIn(t)
    let [run, seen]: [string, { seq: number; event: object }[]] = ['', []]
    await dies(t, where, point, async ({ once: client }) => {
      run = (
        await client.call('POST /agent', { conversationId: 'c', prompt: 'say begun\nwait words 60000\nsay $words' })
      ).run
      const watched = framesOf(client, 'c', { run })
      seen = watched.seen
      await watched.until(({ kind }) => kind === 'text_end')
      await client.call('POST /agent/switch-account', { conversationId: 'c', model: 'script-fast' })
      await watched.all()
    })
    await after(t, where, async daemon => {
      await framesOf(daemon.client, 'c', { run }).until(({ kind }) => kind === 'switched')
      await daemon.client.call('POST /agent/steer', { conversationId: 'c', text: 'on' })
      await framesOf(daemon.client, 'c', { run }).all()
      const frames = await kept(t, daemon, run, seen)
      t.match(
        frames.filter(({ kind }) => kind === 'switched'),
        exactly({ model: 'script-fast', kept: 'session' }),
      )
      t.same(texts(await rowsOf(daemon, 'c')), ['begun', 'on'])
      t.match(await state(daemon, 'c'), { conversation: { model: 'script-fast' } })
    })
  },
)

cases('a branch that follows the main line', ['agent.copy.marked', 'agent.copy.rebased'], async (t, point) => {
  const where = whereIn(t)
  const input = { conversationId: 'b', messageId: 'm-b', prompt: 'append log.txt\n| two' }
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'b', 'append log.txt\n| one', { isolated: true })
    writeFileSync(join(where.workspace, 'main.txt'), 'main')
    inGit(where.workspace, 'add', '-A')
    inGit(where.workspace, 'commit', '-qm', 'the main line moves')
    await runTurn(client, 'b', input.prompt, { messageId: 'm-b' })
  })
  await after(t, where, async daemon => {
    const { run } = await daemon.client.call('POST /agent', input)
    await framesOf(daemon.client, 'b', { run }).all()
    t.equal(readFileSync(join(copyOf(where, 'b'), 'log.txt'), 'utf8'), 'one\ntwo\n')
    t.ok(existsSync(join(copyOf(where, 'b'), 'main.txt')))
  })
})

cases(
  'a branch that follows the main line, of a conversation that is discarded then',
  ['agent.copy.marked', 'agent.copy.rebased'],
  async (t, point) => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'b', 'append log.txt\n| one', { isolated: true })
      writeFileSync(join(where.workspace, 'main.txt'), 'main')
      inGit(where.workspace, 'add', '-A')
      inGit(where.workspace, 'commit', '-qm', 'the main line moves')
      await client.call('POST /agents/{id}/sync', { id: 'b' })
    })
    await after(t, where, async ({ client }) => {
      await client.call('POST /agents/{id}/discard', { id: 'b' })
      t.same(
        globSync('agent/rebasing/*', { cwd: where.data }),
        [],
        'no files are left that would affect a new copy of the same name',
      )
    })
  },
)

cases(
  'a file that is being written',
  ['file.temporary', 'file.temporary:2', 'file.temporary:3', 'file.temporary:4', 'file.temporary:5'],
  async (t, point) => {
    const where = whereIn(t)
    const left = (): string[] => {
      try {
        return [where.workspace, where.data]
          .flatMap(folder => readdirSync(folder, { recursive: true }) as string[])
          .filter(name => name.includes('.sandbox-write-'))
      } catch (error) {
        // The next daemon removed a folder meanwhile.
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return left()
        throw error
      }
    }
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 's', 'write new/s.txt\n| s')
      await runTurn(client, 'i', 'write new/i.txt\n| i', { isolated: true })
    })
    const half = left()
    t.ok(half.length > 0)
    // A file that is shown inside walls can be written at the same moment.
    t.ok(half.filter(name => !name.startsWith('wall/')).length < 2)
    const next = await spawnDaemon(t, where)
    // The daemon removes it after its start; its own temporary files have other names.
    const still = () => left().filter(name => half.includes(name))
    for (const end = Date.now() + LATE_MS; still().length > 0 && Date.now() < end;)
      await next.client.call('GET /agents')
    t.same(still(), [], 'what is incomplete is removed')
    await next.terminate()
  },
)

// Forks, and rewinds --------------------------------------------------------------------------------------------------

cases(
  'a fork',
  ['agent.fork.prepared', 'journal.rewrite', 'agent.queue.accepted:3', 'agent.fork.begun'],
  async (t, point) => {
    const where = whereIn(t)
    const input = {
      conversationId: 'f',
      messageId: 'm-f',
      forkOf: { conversationId: 'r', keep: 2, files: 'then' },
      prompt: 'append a.txt\n| forked',
    } as const
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'r', 'say first\nwrite a.txt\n| one', { isolated: true })
      await runTurn(client, 'r', 'say second\nappend a.txt\n| two')
      await client.call('POST /agent', input)
      await framesOf(client, 'f').all()
    })
    await after(t, where, async daemon => {
      const { run } = await daemon.client.call('POST /agent', input)
      await framesOf(daemon.client, 'f', { run }).all()
      t.equal(userRows(await rowsOf(daemon, 'f')).at(-1), 'm-f')
      t.match(
        (await rowsOf(daemon, 'f')).map(({ role }) => role),
        exactly('user', 'assistant', 'user', 'assistant'),
        'it begins with the rows it kept',
      )
      t.equal(readFileSync(join(copyOf(where, 'f'), 'a.txt'), 'utf8'), 'one\nforked\n')
      t.equal((await rowsOf(daemon, 'r')).length, 4)
    })
  },
)

const rewinds =
  (...next: string[]) =>
  async (t: Test, point: string) => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'r', 'say first\nwrite a.txt\n| one', { isolated: true })
      await runTurn(client, 'r', 'say second\nappend a.txt\n| two\nwrite new/deep.txt\n| new\ndelete README.md')
      await client.call('POST /agent/rewind', { conversationId: 'r', index: 2 })
    })
    for (const again of next) await dies(t, where, again, () => Promise.resolve())
    await after(t, where, async daemon => {
      t.match(await rowsOf(daemon, 'r'), { length: 2 }, 'the interrupted rewind is complete')
      t.equal(await daemon.kernel.journals.stat('agent/rewinds/r'), undefined)
      const files = treeOf(copyOf(where, 'r'))
      t.same([files['a.txt'], files['README.md'], files['new/deep.txt']], ['file one\n', 'file # work\n', undefined])
      t.match(await state(daemon, 'r'), { conversation: { session: undefined, lastRun: undefined } })
      t.match(await daemon.client.call('POST /agent/rewind', { conversationId: 'r', index: 2 }), { dropped: 0 })
      t.same(texts(await rowsOf(daemon, 'r')).filter(Boolean), ['first'])
      await runTurn(daemon.client, 'r', 'append a.txt\n| again')
      t.equal(readFileSync(join(copyOf(where, 'r'), 'a.txt'), 'utf8'), 'one\nagain\n')
    })
  }

const REWIND = ['begun', 'restored', 'cut', 'forgotten', 'paused', 'told', 'over'].map(name => `agent.rewind.${name}`)
cases('going back', [...REWIND, 'journal.rewrite', 'journal.rewrite:2'], rewinds())
cases(
  'a rewind, with a second kill while it is completed',
  ['agent.rewind.begun'],
  rewinds('agent.rewind.restored', 'agent.rewind.cut', 'agent.rewind.told'),
)

// Landing, and discarding --------------------------------------------------------------------------------------------

const LANDING = [
  'waiting',
  'waiting:3',
  'staging',
  'staged',
  'moving',
  'unlinked',
  'cleared',
  'renamed',
  'renamed:2',
  'placed',
  'applied',
  'told',
  'over',
]

cases(
  'a landing',
  LANDING.map(name => `agents.landing.${name}`),
  async (t, point) => {
    const where = whereIn(t, { 'gone.txt': 'gone\n', 'mine.txt': 'committed\n', 'old/deep.txt': 'old\n' })
    const { workspace } = where
    const git = () =>
      readFileSync(join(workspace, '.git/index')).toString('hex') + inGit(workspace, 'rev-parse', 'HEAD')
    writeFileSync(join(workspace, 'staged.txt'), 'staged\n')
    inGit(workspace, 'add', 'staged.txt')
    writeFileSync(join(workspace, 'mine.txt'), 'not committed\n')
    const [before, index] = [treeOf(workspace), git()]
    const { 'gone.txt': _gone, 'old/': _old, 'old/deep.txt': _deep, ...stays } = before
    const landed = {
      ...stays,
      'README.md': 'file # work\nmore\n',
      'a.txt': 'file a\n',
      'new/': 'folder',
      'new/deep/': 'folder',
      'new/deep/b.txt': 'file b\n',
    }
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(
        client,
        'l',
        'append README.md\n| more\ndelete gone.txt\ndelete old/deep.txt\nwrite a.txt\n| a\nwrite new/deep/b.txt\n| b',
        { isolated: true },
      )
      await client.call('POST /agents/{id}/land', { id: 'l' })
    })
    await after(t, where, async ({ client }) => {
      // Every call waits until the start has completed interrupted work.
      await client.call('GET /agents/{id}', { id: 'l' })
      const now = treeOf(workspace)
      t.same(now, existsSync(join(workspace, 'a.txt')) ? landed : before, 'all of it has landed, or nothing')
      t.equal(git(), index, 'index and HEAD are unchanged')
      t.match(await client.call('POST /agents/{id}/land', { id: 'l' }), { landed: true })
      t.same(treeOf(workspace), landed)
      t.equal(git(), index)
      t.match(await client.call('GET /agents/{id}', { id: 'l' }), { status: 'landed' })
    })
  },
)

cases(
  'a landing of a commit in a submodule',
  ['placed', 'indexed', 'applied'].map(name => `agents.landing.${name}`),
  async (t, point) => {
    const where = whereIn(t)
    const [{ workspace }, source] = [where, join(folderOf(t), 'lib')]
    const lib = join(workspace, 'lib')
    makeWorkspace(source, { 'lib.txt': 'lib\n', '.gitignore': '*.log\n' })
    inGit(workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', source, 'lib')
    inGit(workspace, 'commit', '-qm', 'lib')
    await dies(t, where, point, async ({ once: client }) => {
      const commit = 'git add -f built.log && git -c user.name=a -c user.email=a@b.c commit -qam agent'
      const work = `cd lib && echo agent >> lib.txt && echo ignored > built.log && ${commit}`
      await runTurn(client, 's', `run ${work}`, { isolated: true })
      await client.call('POST /agents/{id}/land', { id: 's' })
    })
    await after(t, where, async ({ client }) => {
      await client.call('GET /agents/{id}', { id: 's' })
      t.match(await client.call('POST /agents/{id}/land', { id: 's' }), { landed: true })
      t.equal(inGit(lib, 'log', '-1', '--format=%s'), 'agent\n')
      t.equal(inGit(lib, 'status', '--porcelain'), '', 'files, index and HEAD are those of the commit')
      t.same(inGit(workspace, 'status', '--porcelain'), ' M lib\n')
    })
  },
)

const nothingOf = (t: Test, { workspace, data }: Where, id: string) => {
  t.equal(inGit(workspace, 'for-each-ref', `refs/heads/agent/${id}`, `refs/sandbox/parked/${id}`), '')
  t.same(globSync(`agent/{checkouts,made,branches}/${id}*`, { cwd: data }), [])
}

cases(
  'a discard',
  [
    'agent.erase.meant',
    'agent.copy.trashed',
    'agent.branch.locked:3',
    'agent.copy.dropped',
    'agent.copy.forgotten',
    'agent.erase.cleared',
    'agent.erase.removed',
    'agent.queue.dropped',
    'agent.erase.noted',
    'agent.erase.over',
    'agents.discard.told',
  ],
  async (t, point) => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'd', 'write a.txt\n| x', { isolated: true })
      await client.call('POST /agents/{id}/discard', { id: 'd' })
    })
    await after(t, where, async daemon => {
      t.match(await refusal(daemon.client.call('GET /agents/{id}', { id: 'd' })), { status: 404 })
      nothingOf(t, where, 'd')
      t.match(await daemon.kernel.journals.stat('agent/transcripts/d'), { entries: 1 }, 'the transcript is kept')
      t.same(globSync('journals/agent/frames/*', { cwd: where.data }), [], 'no frames are kept')
    })
  },
)

cases('a message that opens a discarded conversation anew', ['agent.queue.accepted:2'], async (t, point) => {
  const where = whereIn(t)
  const message = { messageId: 'anew', isolated: true }
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'd', 'write a.txt\n| x', { isolated: true })
    await client.call('POST /agents/{id}/discard', { id: 'd' })
    await runTurn(client, 'd', 'write b.txt\n| y', message)
  })
  await after(t, where, async ({ client }) => {
    await framesOf(client, 'd').until(({ kind }) => kind === 'done')
    t.equal(readFileSync(join(copyOf(where, 'd'), 'b.txt'), 'utf8'), 'y\n')
  })
})

cases(
  'an archived conversation',
  ['agent.copy.retiring', 'agent.copy.away', 'agent.copy.detached', 'agent.archive.retired'],
  async (t, point) => {
    const where = whereIn(t)
    await dies(t, where, point, async ({ once: client }) => {
      await runTurn(client, 'a', 'append log.txt\n| one', { isolated: true })
      await client.call('POST /agents/archive', { ids: ['a'] })
    })
    await after(t, where, async ({ client }) => {
      t.match(await client.call('POST /agents/archive', { ids: ['a'] }), { moved: exactly({ id: 'a' }) })
      await runTurn(client, 'a', 'append log.txt\n| two')
      t.equal(readFileSync(join(copyOf(where, 'a'), 'log.txt'), 'utf8'), 'one\ntwo\n')
    })
  },
)

cases('a purge', ['agent.erase.meant', 'agent.erase.removed'], async (t, point) => {
  const where = whereIn(t)
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'p', 'write a.txt\n| x', { isolated: true })
    await client.call('POST /agents/archive', { ids: ['p'] })
    await client.call('POST /agents/purge', { ids: ['p'] })
  })
  await after(t, where, async daemon => {
    t.same((await daemon.client.call('GET /agents/archived', {})).agents, [])
    nothingOf(t, where, 'p')
    t.equal(await daemon.kernel.journals.stat('agent/transcripts/p'), undefined)
  })
})

cases('the record of a discarded conversation', ['agent.forget.meant', 'agent.forget.removed'], async (t, point) => {
  const where = whereIn(t)
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'f', 'say zebrafish', { isolated: true })
    await client.call('POST /agents/{id}/discard', { id: 'f' })
    await client.call('DELETE /sessions/{id}', { id: 'f' })
  })
  await after(t, where, async daemon => {
    t.match(await refusal(daemon.client.call('GET /sessions/{id}', { id: 'f' })), { status: 404 })
    t.equal(await daemon.kernel.journals.stat('agent/transcripts/f'), undefined)
    t.same((await daemon.client.call('GET /sessions', { query: 'zebrafish' })).sessions, [])
  })
})

// Backups ------------------------------------------------------------------------------------------------------------

cases('a backup', ['bundle.parts', 'bundle.written', 'bundle.named'], packing)
cases('a restore before it is committed', ['bundle.staged'], restoring(false))
cases(
  'a restore',
  [
    'bundle.planned',
    'moves.away',
    'moves.away:3',
    'moves.in',
    'moves.in:3',
    'moves.over',
    'agent.returned.cleared',
    'returned.taken',
  ],
  restoring(true),
)
cases(
  'a restore, with a second kill while it is completed',
  ['moves.away:2'],
  restoring(true, 'moves.in:2', 'agent.returned.cleared'),
)

// Areas ---------------------------------------------------------------------------------------------------------------

cases('an area that is overwritten', ['areas.kept:2'], async (t, point) => {
  const where = whereIn(t, { 'docs/a.md': 'a\n', 'src/b.ts': 'b\n' })
  const [one, other] = [
    { id: 'a', label: 'one', folders: ['docs'], access: 'read' },
    { id: 'a', label: 'other', folders: ['src'], access: 'work' },
  ] as const
  await dies(t, where, point, async ({ once: client }) => {
    await runTurn(client, 'c', 'say x')
    await client.call('POST /areas', { ...one, folders: [...one.folders] })
    await client.call('POST /areas', { ...other, folders: [...other.folders] })
  })
  await after(t, where, async ({ client }) => {
    const {
      areas: [area],
    } = await client.call('GET /areas')
    t.match(area, other, 'the change was on the disk')
    t.match(await client.call('POST /areas', { ...one, folders: [...one.folders] }), { created: false, area: one })
  })
})
