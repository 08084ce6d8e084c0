import t from 'tap'
import type { Conversation, ConversationState } from '../../../plugins/agent/contract.js'
import { RosterBook } from '../../../plugins/agents/roster/roster.js'
import { Refusal } from '../../../sdk/index.js'
import { memoryFiles } from './support.js'
import { exactly } from '../../support/lists.js'

/** Conversations that a test changes, and their board. */
const board = (files = memoryFiles()) => {
  const talks = new Map<string, Conversation>()
  const put = (id: string, more: Partial<Conversation> = {}): void =>
    void talks.set(id, {
      id,
      titleBy: 'prompt',
      createdAt: 0,
      updatedAt: 0,
      openedBy: 'ada@example.org',
      lastBy: 'ada@example.org',
      provider: 'script',
      harness: 'native',
      repos: [],
      totals: { turns: 1, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
      ...more,
    })
  const stateOf = (conversation: Conversation): ConversationState => ({ conversation, waiting: 0, queuePaused: false })
  const held: (() => void)[] = []
  const asked: string[] = []
  const make = (hold = false) =>
    new RosterBook({
      files,
      notes: { commit: async () => {}, landed: () => undefined },
      statuses: { round: () => ({}), of: async () => ({ work: 'none' }) } as never,
      conversations: async () => {
        const states = [...talks.values()].map(stateOf)
        if (hold) await new Promise<void>(resolve => held.push(resolve))
        return states
      },
      conversation: async id => {
        asked.push(id)
        const found = talks.get(id)
        if (found) return stateOf(found)
        throw new Refusal(id === 'broken' ? 'failed' : 'not-found', `no ${id}`)
      },
      shown: async () => ({ loops: {}, workflows: {} }),
    })
  return { make, put, talks, held, asked }
}

t.test(
  'the revision increases with every changed card, read alone or with all others, also across a restart',
  async t => {
    const { asked, make, put, talks } = board()
    const book = make()
    await book.open()
    put('a')
    put('b', { updatedAt: 1 })
    put('away', { archivedAt: 1 })
    const { agents, rev } = await book.read()
    t.same(
      agents.map(({ id }) => id),
      ['b', 'a'],
    )
    t.same(
      await book.some(['a', 'away', 'nobody']),
      { agents: [agents[1]], gone: ['away', 'nobody'], rev },
      'nothing changed',
    )
    t.same(asked, ['a', 'away', 'nobody'], 'only those are read')
    t.equal((await book.read()).rev, rev)
    put('a', { title: 'other' })
    t.match(await book.some(['a']), { agents: exactly({ title: 'other' }), gone: { length: 0 }, rev: rev + 1 })
    t.equal((await book.read()).rev, rev + 1, 'a card that was sent alone is not sent again with all')
    talks.delete('b')
    t.match(await book.some(['b']), { agents: { length: 0 }, gone: exactly('b'), rev: rev + 2 })
    t.equal((await book.some(['b'])).rev, rev + 2)
    put('c')
    t.equal((await book.read()).rev, rev + 3)
    await t.rejects(book.some(['broken']), { message: 'no broken' })
    const again = make()
    await again.open()
    t.ok((await again.read()).rev > rev + 3)
  },
)

t.test('an empty board too has another revision after a restart', async t => {
  const { make } = board()
  const revs: number[] = []
  for (let start = 0; start < 3; start++) {
    const book = make()
    await book.open()
    revs.push((await book.read()).rev)
  }
  t.same(
    revs,
    [...revs].sort((one, other) => one - other),
  )
  t.equal(new Set(revs).size, 3)
})

t.test('a card that was read alone is never sent before an older read of all', async t => {
  const { held, make, put } = board()
  put('a')
  const book = make(true)
  await book.open()
  const whole = book.read()
  while (held.length === 0) await new Promise(setImmediate)
  put('a', { title: 'newer' })
  const one = book.some(['a'])
  held.splice(0).forEach(release => release())
  const [older, newer] = await Promise.all([whole, one])
  t.equal(older.agents[0]?.title, undefined)
  t.match(newer, { agents: exactly({ title: 'newer' }) })
  t.ok(newer.rev > older.rev)
})
