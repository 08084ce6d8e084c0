import { setImmediate as nextTurn } from 'node:timers/promises'
import t from 'tap'
import type { Definition } from '../../../plugins/automations/definitions/definitions.js'
import type { Fire, StoredWake } from '../../../plugins/automations/fires/fire.js'
import { LiveFire } from '../../../plugins/automations/fires/live-fire.js'
import type { FireClock } from '../../../plugins/automations/schedule/clock.js'
import { VisitAnswers } from '../../../plugins/automations/webchat/answers.js'
import { VisitorBudgets } from '../../../plugins/automations/webchat/budgets.js'
import { Challenges } from '../../../plugins/automations/webchat/challenges.js'
import { ChatSites } from '../../../plugins/automations/webchat/sites.js'
import { isAnswered, VisitorThreads, type ThreadsDeps } from '../../../plugins/automations/webchat/threads.js'
import { Visits } from '../../../plugins/automations/webchat/visits.js'
import type { Host } from '../../../sdk/index.js'
import { chat } from '../../support/webchat.js'

const MINUTE = 60_000
const ID = 'thread-of-a-visitor'
const ASKED = { from: 'visitor', text: 'Hello', at: 1, messageId: 'one', payload: '{}', by: 'Eve', page: 'x' } as const
const ANSWER = { from: 'agent', text: 'We ship.', at: 5, answers: 1 } as const

/** A store and journals in memory; `gate` holds up what is appended, `fault` is met by what is removed. */
const memory = () => {
  const [documents, journals] = [new Map<string, unknown>(), new Map<string, unknown[]>()]
  const world: { gate: Promise<void>; fault?: Error } = { gate: Promise.resolve() }
  const store = {
    set: async (key: string, value: unknown) => void documents.set(key, structuredClone(value)),
    delete: async (key: string) => void documents.delete(key),
  }
  const journal: ThreadsDeps['journal'] = {
    append: async (name, entries) => {
      await world.gate
      journals.set(name, [...(journals.get(name) ?? []), ...entries])
      return journals.get(name)!.length
    },
    read: async <T>(name: string, after = 0) => (journals.get(name) ?? []).slice(after) as T[],
    remove: async name => {
      if (world.fault) throw world.fault
      journals.delete(name)
    },
  }
  return { documents, journals, world, store, journal }
}

/** A clock that a test sets, with what is to be called. */
const testClock = () => {
  let now = 1_000_000_000_000
  const due = new Map<() => void, number>()
  const clock: FireClock = {
    now: () => now,
    at: (when, work) => {
      due.set(work, when)
      return () => void due.delete(work)
    },
  }
  const pass = async (ms: number) => {
    now += ms
    for (const [work, when] of [...due]) if (when <= now && due.delete(work)) work()
    for (let turns = 0; turns < 5; turns++) await nextTurn()
  }
  return { clock, due, pass }
}

const silent = {
  call: async () => ({}),
  serves: async () => false,
  log: { info: () => {}, warn: () => {}, error: () => {} },
  signal: new AbortController().signal,
} as unknown as Pick<Host, 'call' | 'serves' | 'log' | 'signal'>

const opened = async (threads: VisitorThreads, id = ID) => {
  const { thread, token } = await threads.open({ automationId: 'shop', id, first: 'one' })
  await threads.add(thread, ASKED)
  return { thread, token }
}

t.test('what is changed while an answer is written stays changed, and what is closed stays closed', async t => {
  const { documents, world, store, journal } = memory()
  const threads = new VisitorThreads({ now: () => 1, store, journal })
  const { thread } = await opened(threads)
  const adding = async (meanwhile: () => Promise<unknown>) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    world.gate = promise
    const added = threads.add(thread, ANSWER)
    await meanwhile()
    resolve()
    await added
  }
  let token = ''
  await adding(async () => ({ token } = await threads.renew(thread)))
  t.ok(threads.holds(threads.get('shop', ID), token), 'the token that was given last')
  t.match(documents.get(`visit/shop/${ID}`), { token: threads.get('shop', ID)!.token, lastAt: 5 })
  await adding(() => threads.close(thread))
  t.equal(threads.get('shop', ID), undefined)
  t.equal(documents.size, 0)
})

t.test('a thread whose words were not removed is found again, and closed', async t => {
  const { documents, journals, world, store, journal } = memory()
  const threads = new VisitorThreads({ now: () => 1, store, journal })
  const { thread } = await opened(threads)
  world.fault = new Error('the disk is gone')
  await t.rejects(threads.close(thread), { message: 'the disk is gone' })
  delete world.fault
  const again = new VisitorThreads({ now: () => 1, store, journal })
  again.load([...documents])
  await again.forget('shop')
  t.same([documents.size, journals.size], [0, 0])
})

t.test('threads are closed while the daemon runs, by what a maintainer saved alone', async t => {
  const { store, journal } = memory()
  const { clock, due, pass } = testClock()
  const threads = new VisitorThreads({ now: clock.now, store, journal })
  const { thread } = await opened(threads)
  await threads.add(thread, { ...ANSWER, at: clock.now() })
  let found: Definition | undefined
  const definition = async () => found
  const fires = { queued: () => 0, once: () => undefined, accept: async () => undefined }
  const held = { once: () => undefined, get: () => undefined }
  const answers = new VisitAnswers({ host: silent, now: clock.now, definition, threads, fires, held })
  const visits = new Visits({
    ...{ host: silent, clock, definition, fires, threads, answers },
    sites: new ChatSites({ now: clock.now, store, seen: () => {} }),
    budgets: new VisitorBudgets(store, clock.now),
    challenges: new Challenges(clock.now),
  })
  await visits.start()
  t.ok(threads.get('shop', ID), 'a file that has no such automation now closes nothing')
  found = { automation: chat('shop', { webchat: { sessionTtlMinutes: 30 } }), accepted: false }
  await pass(61 * MINUTE)
  t.ok(threads.get('shop', ID), 'nor does an edit that nobody saved')
  found = { ...found, accepted: true }
  await pass(61 * MINUTE)
  t.equal(threads.get('shop', ID), undefined)
  t.equal(due.size, 1)
  visits.end()
  t.equal(due.size, 0)
})

t.test('what a person allowed and could not begin waits for a person again, and nothing is said', async t => {
  const { store, journal } = memory()
  const threads = new VisitorThreads({ now: () => 1, store, journal })
  const { thread } = await opened(threads)
  const wakes = new Map<string, StoredWake>([['h-1', {} as StoredWake]])
  const answers = new VisitAnswers({
    ...{ host: silent, now: () => 1, threads },
    definition: async () => undefined,
    fires: { once: () => undefined, accept: async () => undefined },
    held: { once: () => undefined, get: id => wakes.get(id) },
  })
  const ended = async (): Promise<boolean> => {
    const live = new LiveFire({
      ...{ id: 'f-1', automationId: 'shop', at: 1, conversationId: 'a', run: 'r', messageId: 'm' },
      ...{ cause: 'approved', phase: 'starting', held: 'h-1', visit: { thread: ID, seq: 1 } },
    } satisfies Fire)
    answers.follow(live)
    live.outcome.reject(new Error('no account'))
    live.settle({ end: 'failed', failure: 'no account', costUsd: 0 })
    await live.told
    return isAnswered(await threads.lines(thread), 1)
  }
  t.equal(await ended(), false)
  wakes.clear()
  t.equal(await ended(), true, 'once nothing waits, the visitor is told')
})
