import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import type { ProviderAdapter, TurnIo, TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import type { Conversation, ErrorFrame, Frame, TurnInput } from '../../../../plugins/agent/contract.js'
import { Conversations } from '../../../../plugins/agent/conversations/conversations.js'
import { Engine } from '../../../../plugins/agent/turn/engine.js'
import { framesOf } from '../../../../plugins/agent/turn/frames/frame-log.js'
import { KeyedMutex } from '../../../../sdk/node/concurrency/keyed-mutex.js'
import {
  OUTAGE_TIMES,
  mayResume,
  outageNotice,
  waitAfter,
  type OutageTimes,
} from '../../../../plugins/agent/turn/recovery/outage.js'
import { PlannedResumes } from '../../../../plugins/agent/turn/recovery/planned-resumes.js'
import { Providers } from '../../../../plugins/agent/providers/providers.js'
import { Queue } from '../../../../plugins/agent/queue/queue.js'
import type { AfterOutage, RunMessage } from '../../../../plugins/agent/turn/run-entry.js'
import { Transcripts } from '../../../../plugins/agent/conversations/transcripts.js'
import type { TurnEnvironment } from '../../../../plugins/agent/turn/environment/environment.js'
import { turnIo } from '../../../../plugins/agent/turn/io.js'
import { journalsIn, memoryStore } from '../../../support/journals.js'

const OUT: ErrorFrame = { kind: 'error', code: 'provider-outage', message: 'out of service' }
const HOUR = 3_600_000

const message = (conversationId: string, resumed?: AfterOutage): RunMessage => ({
  run: `r-${conversationId}`,
  conversationId,
  messageId: `m-${conversationId}`,
  input: { prompt: 'go' } as TurnInput,
  by: 'ada@example.org',
  attended: true,
  at: Date.now(),
  ...(resumed && { resumed }),
})

// Arithmetic ---------------------------------------------------------------------------------------------------------

t.test('waits are half to one and a half of 30 s, 1, 2, 5, 10 and 20 min, and together less than an hour', async t => {
  const waits = (random: number) =>
    OUTAGE_TIMES.delays.map((_, tries) => waitAfter(tries, { ...OUTAGE_TIMES, random: () => random }))
  t.same(
    waits(0),
    [15, 30, 60, 150, 300, 600].map(seconds => seconds * 1000),
  )
  t.same(
    waits(0.5),
    [30, 60, 120, 300, 600, 1200].map(seconds => seconds * 1000),
  )
  const longest = waits(1 - Number.EPSILON)
  t.same(
    longest,
    [45, 90, 180, 450, 900, 1800].map(seconds => seconds * 1000),
  )
  t.ok(longest.reduce((sum, wait) => sum + wait) < HOUR)
  const drawn = Array.from({ length: 200 }, () => waitAfter(0, OUTAGE_TIMES))
  t.ok(drawn.every(wait => wait >= 15_000 && wait <= 45_000) && new Set(drawn).size > 100)
})

t.test('six tries within an hour of the first outage, and not one more', async t => {
  t.same(
    [0, 5, 6].map(tries => mayResume(tries, 0, 0, OUTAGE_TIMES)),
    [true, true, false],
  )
  t.same(
    [HOUR - 1, HOUR].map(moment => mayResume(0, 0, moment, OUTAGE_TIMES)),
    [true, false],
  )
})

t.test('the error of an outage says whether and when the turn resumes', async t => {
  const times = { ...OUTAGE_TIMES, random: () => 0.5 }
  const now = 10 * HOUR
  const told = (armed: boolean, tries?: number, since = now) =>
    outageNotice(
      OUT,
      message('c', tries === undefined ? undefined : { from: 'r', attempt: tries + 1, tries, since }),
      armed,
      times,
      now,
    )
  t.same(told(false), { ...OUT, autoResume: 'available' })
  t.same(told(true), { ...OUT, autoResume: 'scheduled', outage: { retryAt: now + 30_000, attempt: 1, maxAttempts: 6 } })
  t.same(told(true, 5), {
    ...OUT,
    autoResume: 'scheduled',
    outage: { retryAt: now + 1_200_000, attempt: 6, maxAttempts: 6 },
  })
  t.same(told(true, 6), OUT, 'no attempts are left')
  t.same(told(false, 1, now - HOUR), OUT, 'no time is left')
  t.same(told(true, 5, now - HOUR + 1_200_000), OUT, 'the next attempt would be too late')
})

// The breaker --------------------------------------------------------------------------------------------------------

/** Resolves when an event has come `count` more times. */
const counted = (heard: EventEmitter, event: string, count: number) =>
  new Promise<void>(resolve => {
    let left = count
    heard.on(event, () => --left === 0 && resolve())
  })

/** An engine whose provider is one function, with waits after outages of test length. */
const breaker = (
  t: Test,
  run: (request: TurnRequest, io: TurnIo) => AsyncIterable<Frame>,
  {
    journal = journalsIn(t),
    armed = true,
    ...times
  }: Partial<OutageTimes> & { journal?: ReturnType<typeof journalsIn>; armed?: boolean } = {},
) => {
  const adapter: ProviderAdapter = {
    id: 'test',
    label: 'Test',
    harnesses: ['native'],
    ownHarness: 'native',
    models: ['one'],
    commands: [],
    run,
    abilities: () => ({
      words: true,
      permissions: 'modes',
      questions: true,
      commands: false,
      terminals: false,
      state: true,
      offline: true,
    }),
  }
  const log = { info: () => {}, warn: () => {}, error: (text: string, fields: unknown) => t.fail(text, { fields }) }
  const [decisions, locks, heard, end] = [new KeyedMutex(), new KeyedMutex(), new EventEmitter(), new AbortController()]
  const conversations = new Conversations(memoryStore(), log)
  const queue = new Queue(journal, () => conversations.stored())
  const providers = new Providers(memoryStore(), log, [adapter])
  const environment: TurnEnvironment = {
    prepare: async () => ({ root: '/', cwd: '/', preamble: '', attachments: [], mentions: [] }),
    refresh: async () => {},
    settle: async () => {},
    io: (turn, prepared, adapterRun) =>
      turnIo(turn, prepared, adapterRun, {
        remembered: { names: () => new Set(), add: () => {} },
        subagentDeps: { providers, log },
        expose: () => Promise.reject(new Error('no programs here')),
        toolbox: {
          face: () => ({ refused: 'none' }),
          run: () => Promise.reject(new Error('none')),
          stamp: async () => undefined,
          offered: async () => [],
          walled: () => Promise.reject(new Error('none')),
          shared: async () => undefined,
        },
      }),
  }
  const changed = (id: string) => void heard.emit('changed', id)
  const resumes = new PlannedResumes(
    {
      engine: () => engine,
      conversations,
      queue,
      decisions,
      log,
      changed,
      setting: async () => armed,
      signal: end.signal,
    },
    { delays: [1, 1, 1, 1, 1, 1], mostMs: HOUR, probeMs: HOUR, random: () => 0.5, ...times },
  )
  const engine: Engine = new Engine({
    host: {
      journal,
      log,
      cards: new OpenCards(),
      changed,
      helped: () => {},
      emit: (event: string, data: unknown) => void heard.emit(event, data),
      signal: end.signal,
    },
    conversations,
    queue,
    transcripts: new Transcripts(journal),
    providers,
    environment,
    decisions,
    locks,
    resumes,
  })
  t.teardown(async () => {
    end.abort()
    await engine.close()
  })
  const open = (id: string) =>
    conversations.open({
      id,
      titleBy: 'prompt',
      createdAt: 1,
      updatedAt: 1,
      openedBy: 'a',
      lastBy: 'a',
      provider: 'test',
      harness: 'native',
      repos: [],
      totals: { turns: 0, toolUses: 0, helpers: 0, costUsd: 0, inputTokens: 0, outputTokens: 0 },
    } satisfies Conversation)
  return {
    engine,
    conversations,
    queue,
    resumes,
    heard,
    journal,
    open,
    start: async (id: string) => {
      open(id)
      const first = message(id)
      await queue.accept({
        row: { run: first.run, messageId: first.messageId, conversationId: id, delivery: 'started', at: first.at },
        message: first,
      })
      engine.start(first)
    },
    /** Resolves when `count` more turns have ended. */
    ended: (count: number) => counted(heard, 'turn.settled', count),
    frames: async (runId: string) => (await journal.read<{ event: Frame }>(framesOf(runId))).map(({ event }) => event),
  }
}

t.test('during a long outage a turn makes seven attempts in all, each from where the last one stopped', async t => {
  const requests: TurnRequest[] = []
  const { start, ended, queue, conversations, frames, engine } = breaker(t, async function* (request, io) {
    requests.push(request)
    await io.state({ asked: requests.length })
    yield OUT
  })
  const over = ended(7)
  await start('c')
  await over
  t.same(
    requests.map(({ attempt }) => attempt),
    [1, 2, 3, 4, 5, 6, 7],
  )
  t.same(
    requests.map(({ state }) => state),
    [undefined, ...[1, 2, 3, 4, 5, 6].map(asked => ({ asked }))],
  )
  t.same(
    requests.map(({ resume }) => resume?.reason),
    [undefined, ...Array(6).fill('outage')],
  )
  t.equal(queue.resumable('c'), undefined)
  t.same(engine.state(conversations.get('c')).resumesAt, undefined)
  t.match(conversations.get('c'), { lastEnd: 'failed', lastRun: requests[6]!.run })
  const seen = await Promise.all(requests.map(({ run }) => frames(run)))
  t.same(
    seen.flat().filter(({ kind }) => kind === 'resumed'),
    requests
      .slice(1)
      .map(({ attempt }, n) => ({ kind: 'resumed', reason: 'outage', attempt, resumedFrom: requests[n]!.run })),
  )
  const errors = seen.flat().filter(frame => frame.kind === 'error')
  t.same(
    errors.map(({ outage }) => outage?.attempt),
    [1, 2, 3, 4, 5, 6, undefined],
  )
  t.same(errors.at(-1), OUT)
})

t.test('one attempt at a time tests the provider; once it is back, all waiting turns resume at once', async t => {
  let answers = false
  const asked: { id: string; open: () => void }[] = []
  const { start, ended, heard } = breaker(
    t,
    async function* ({ attempt, conversationId }) {
      if (conversationId.startsWith('other')) return yield { kind: 'error', message: 'no' }
      if (attempt === 1) return yield OUT
      const { promise, resolve } = Promise.withResolvers<void>()
      asked.push({ id: conversationId, open: resolve })
      heard.emit('asked')
      await promise
      if (!answers) yield OUT
    },
    { delays: [1, HOUR / 4] },
  )
  /** Runs another turn from its start to its end. */
  const meanwhile = async (id: string) => {
    const over = ended(1)
    await start(id)
    await over
  }
  const waiting = Promise.all([counted(heard, 'asked', 1), ended(3)])
  for (const id of ['a', 'b', 'c']) await start(id)
  await waiting
  await meanwhile('other-1')
  t.equal(asked.length, 1, 'all three are due, and one is tried')
  const next = Promise.all([counted(heard, 'asked', 1), ended(1)])
  asked[0]!.open()
  await next
  await meanwhile('other-2')
  t.equal(asked.length, 2, 'the outage continues, so only the next one is tried')
  answers = true
  const [rest, over] = [counted(heard, 'asked', 2), ended(3)]
  asked[1]!.open()
  await rest
  t.equal(asked.filter(({ id }) => id === asked[0]!.id).length, 2, 'also the one that was not due yet')
  for (const { open } of asked) open()
  await over
  t.same(new Set(asked.map(({ id }) => id)), new Set(['a', 'b', 'c']))
})

t.test('an attempt that is parked on a question does not delay others', async t => {
  const asked = new EventEmitter()
  const { start, ended, engine } = breaker(
    t,
    async function* ({ attempt, conversationId }, io) {
      if (attempt === 1) return yield OUT
      asked.emit('asked', conversationId)
      await io.raise({ kind: 'plan', text: 'do it' })
    },
    { probeMs: 40 },
  )
  const first = once(asked, 'asked')
  let over = ended(1)
  await start('a')
  await Promise.all([first, over])
  const second = once(asked, 'asked')
  over = ended(1)
  await start('b')
  await over
  t.same(await second, ['b'])
  await Promise.all(['a', 'b'].map(id => engine.stop(id)))
})

t.test('any answer of the provider ends the wait, only for waiting turns', async t => {
  const { start, ended, queue, conversations } = breaker(
    t,
    async function* ({ attempt, conversationId }) {
      if (conversationId !== 'well' && attempt === 1)
        yield { ...OUT, ...(conversationId === 'limit' && { code: 'rate_limit' as const }) }
    },
    { delays: [HOUR / 4] },
  )
  let over = ended(3)
  for (const id of ['a', 'off', 'limit']) {
    await start(id)
    if (id === 'off') await conversations.update(id, { resumeAfterOutage: false })
  }
  await over
  t.ok(queue.resumable('a')?.at)
  t.equal(queue.resumable('limit'), undefined, 'a turn that a usage limit ended is never resumed automatically')
  over = ended(2)
  await start('well')
  await over
  t.same(
    ['a', 'off', 'limit'].map(id => conversations.get(id).lastEnd),
    ['completed', 'failed', 'failed'],
  )
})

t.test('a start restores planned resumes, and drops those that are too old or have no conversation', async t => {
  const journal = journalsIn(t)
  const since = Date.now()
  const left = (id: string, age: number) => ({
    failedAt: since - age,
    at: since - age + 1,
    message: {
      ...message(id),
      run: `r-${id}-2`,
      resumed: { from: `r-${id}`, attempt: 2, tries: 1, since: since - age },
    },
  })
  const before = new Queue(journal, async () => {})
  for (const [id, age] of [
    ['due', 60_000],
    ['old', HOUR],
    ['gone', 60_000],
  ] as const)
    await before.ended(id, `r-${id}`, { paused: false, resumable: left(id, age) })
  const ran: string[] = []
  const { queue, resumes, ended, open, heard } = breaker(
    t,
    async function* ({ run }) {
      ran.push(run)
    },
    { journal },
  )
  await queue.load()
  for (const id of ['due', 'old']) open(id)
  t.equal(queue.resumables.length, 3)
  const over = ended(1)
  const forgotten = Promise.all(
    ['old', 'gone'].map(id => new Promise<void>(resolve => heard.on('changed', each => each === id && resolve()))),
  )
  resumes.begin()
  await Promise.all([over, forgotten])
  t.same(ran, ['r-due-2'])
  t.same(queue.resumables, [])
})

t.test('messages that no adapter took before the outage are passed to the next run', async t => {
  const taken: string[] = []
  const { start, ended, engine } = breaker(t, async function* ({ attempt, conversationId }, io) {
    if (attempt > 1) return void taken.push(...io.takeWords().map(({ text }) => text))
    await io.state({})
    await engine.live(conversationId)!.say({ messageId: 'w', text: 'and this', attachments: [], by: 'a', at: 1 })
    yield OUT
  })
  const over = ended(2)
  await start('c')
  await over
  t.same(taken, ['and this'])
})
