import fc from 'fast-check'
import t, { type Test } from 'tap'
import { OpenCards } from '../../../../plugins/agent/cards/cards.js'
import type { TurnIo } from '../../../../plugins/agent/providers/adapter.js'
import type { CardReply, Frame } from '../../../../plugins/agent/contract.js'
import type { Journals, Refusal } from '../../../../sdk/index.js'
import { journalsIn } from '../../../support/journals.js'
import { engineOn } from '../turn/engine-support.js'

const HOUR = 3_600_000
const NEVER = { delays: [HOUR], mostMs: 3 * HOUR, probeMs: HOUR, random: () => 0.5 }
const ticks = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise(setImmediate)
}

/** Journals without flushes, so that only the order of the event loop matters. */
const quickIn = (t: Test): Journals => {
  const whole = journalsIn(t)
  return { ...whole, append: (name, entries, options) => whole.append(name, entries, { ...options, flush: false }) }
}

const act = fc.record({
  does: fc.oneof(
    { weight: 5, arbitrary: fc.constant('send' as const) },
    { weight: 1, arbitrary: fc.constant('stop' as const) },
    { weight: 1, arbitrary: fc.constant('erase' as const) },
  ),
  after: fc.nat({ max: 40 }),
})

t.test(
  'under concurrent calls a conversation has one turn at a time, each message has its turn once, and none is '
    + 'left lying',
  { timeout: 60_000 },
  async t => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(act, { minLength: 2, maxLength: 14 }),
        fc.array(fc.nat({ max: 4 }), { minLength: 8, maxLength: 8 }),
        async (acts, pauses) => {
          const faults: string[] = []
          const ran: string[] = []
          let turns = 0
          let at = 0
          const whole = quickIn(t)
          // Writes take random times.
          const journal: Journals = {
            ...whole,
            append: async (name, entries, options) => {
              await ticks(pauses[at++ % pauses.length]!)
              return whole.append(name, entries, options)
            },
          }
          const { engine, queue, send } = engineOn(
            t,
            async function* ({ run }): AsyncIterable<Frame> {
              if (++turns > 1) faults.push('two turns at once')
              ran.push(run)
              try {
                await ticks(pauses[at++ % pauses.length]!)
                yield { kind: 'delta', text: 'x' }
              } finally {
                turns -= 1
              }
            },
            { words: false, journal },
          )
          const started: string[] = []
          const gone = async () => {
            if (engine.live('c')) faults.push('erased under a turn')
            await ticks(10)
            if (engine.live('c')) faults.push('a turn began while it was erased')
          }
          await Promise.all(
            acts.map(async ({ does, after }) => {
              await ticks(after)
              if (does === 'send') started.push((await send({})).run)
              else await (does === 'stop' ? engine.stop('c') : engine.discard('c', gone))
            }),
          )
          for (let turn = engine.live('c'); turn; turn = engine.live('c')) await turn.ended
          const left = queue.waiting('c').map(({ run }) => run)
          if (left.length > 0 && !queue.paused('c')) faults.push('left lying')
          if (new Set(ran).size !== ran.length) faults.push('run twice')
          // A turn that was stopped before its adapter began has ended as well.
          const known = new Set([...ran, ...left])
          if (!acts.some(({ does }) => does !== 'send') && started.some(run => !known.has(run))) faults.push('lost')
          if (queue.current('c')) faults.push('not over')
          if (faults.length > 0) throw new Error(faults.join(', '))
        },
      ),
      { seed: 15, numRuns: 200, endOnFailure: true },
    )
    t.pass()
  },
)

for (const [moment, isAt] of Object.entries({
  'its end is decided': (name: string, line: string) =>
    name.startsWith('entries') || line.includes('"ending":"failed"'),
  'it is written down': (name: string) => name.startsWith('transcripts'),
  'it leaves its conversation': (_: string, line: string) => line.includes('"line":"ended"'),
})) {
  t.test(
    `a stop of a turn that an outage ends, sent when ${moment}, leaves no planned resume`,
    { timeout: 60_000 },
    async t => {
      const whole = journalsIn(t)
      let stopped: Promise<unknown> | undefined
      const { engine, queue, resumes, send } = engineOn(
        t,
        async function* (): AsyncIterable<Frame> {
          yield { kind: 'error', code: 'provider-outage', message: 'it is out' }
        },
        {
          outages: NEVER,
          journal: {
            ...whole,
            append: (name, entries, options) => {
              if (isAt(name, JSON.stringify(entries))) stopped ??= resumes!.stop('c')
              return whole.append(name, entries, options)
            },
          },
        },
      )
      await send({})
      await engine.live('c')?.ended
      t.ok(stopped)
      await stopped
      t.same([engine.live('c'), queue.resumable('c')?.at], [undefined, undefined])
    },
  )
}

const lineOf = (entries: readonly unknown[]): string => JSON.stringify(entries)
const untilStopped = (io: TurnIo) => new Promise(resolve => io.signal.addEventListener('abort', resolve))

t.test('a stop during the start of a planned resume stops the resumed turn', { timeout: 60_000 }, async t => {
  const whole = journalsIn(t)
  let stopped: Promise<unknown> | undefined
  const { engine, queue, resumes, conversations, send } = engineOn(
    t,
    async function* ({ attempt }, io): AsyncIterable<Frame> {
      if (attempt > 1) await untilStopped(io)
      else yield { kind: 'error', code: 'provider-outage', message: 'it is out' }
    },
    {
      outages: { delays: [0, 0, 0, 0, 0, 0], mostMs: HOUR, probeMs: HOUR, random: () => 0.5 },
      journal: {
        ...whole,
        append: (name, entries, options) => {
          const line = lineOf(entries)
          if (line.includes('"line":"accept"') && line.includes('"resumed"')) stopped ??= resumes!.stop('c')
          return whole.append(name, entries, options)
        },
      },
    },
  )
  await send({})
  await engine.live('c')?.ended
  while (!stopped) await ticks(1)
  await stopped
  t.same([engine.live('c'), queue.resumable('c')?.at], [undefined, undefined])
  t.equal(conversations.get('c').lastEnd, 'stopped')
})

t.test('a turn that starts while a stop cancels a resume is not marked as stopped', { timeout: 60_000 }, async t => {
  const whole = journalsIn(t)
  let stopped: Promise<unknown> | undefined
  let sent: ReturnType<typeof send> | undefined
  let ran = 0
  const { engine, resumes, conversations, send } = engineOn(
    t,
    async function* (_, io): AsyncIterable<Frame> {
      ran += 1
      if (ran > 1) await untilStopped(io)
      else yield { kind: 'error', code: 'provider-outage', message: 'it is out' }
    },
    {
      outages: NEVER,
      journal: {
        ...whole,
        append: (name, entries, options) => {
          if (lineOf(entries).includes('"line":"ended"')) {
            stopped ??= resumes!.stop('c')
            sent ??= send({})
          }
          return whole.append(name, entries, options)
        },
      },
    },
  )
  await send({})
  await engine.live('c')?.ended
  t.match(await sent, { delivery: 'started' })
  await stopped
  t.ok(engine.live('c'))
  t.equal(conversations.get('c').lastEnd, undefined)
  await engine.stop('c')
})

t.test(
  'a stop of a turn whose end is being written returns after the end, and the queue is paused',
  { timeout: 60_000 },
  async t => {
    const whole = journalsIn(t)
    const gate = Promise.withResolvers<void>()
    let stopped: Promise<unknown> | undefined
    const { engine, queue, resumes, send } = engineOn(
      t,
      async function* (): AsyncIterable<Frame> {
        await gate.promise
        yield { kind: 'delta', text: 'x' }
      },
      {
        words: false,
        outages: NEVER,
        journal: {
          ...whole,
          append: (name, entries, options) => {
            if (name.startsWith('transcripts')) stopped ??= resumes!.stop('c')
            return whole.append(name, entries, options)
          },
        },
      },
    )
    await send({})
    await send({ prompt: 'later' })
    gate.resolve()
    await engine.live('c')?.ended
    await stopped
    t.same([engine.live('c'), queue.waiting('c').length, queue.paused('c')], [undefined, 1, true])
  },
)

t.test('a message that arrives when a turn frees its conversation gets its turn', { timeout: 60_000 }, async t => {
  const whole = journalsIn(t)
  let sent: ReturnType<typeof send> | undefined
  let ran = 0
  const { engine, queue, send } = engineOn(
    t,
    async function* (): AsyncIterable<Frame> {
      ran += 1
      yield { kind: 'delta', text: 'x' }
    },
    {
      words: false,
      journal: {
        ...whole,
        append: async (name, entries, options) => {
          const line = JSON.stringify(entries)
          if (line.includes('"line":"ended"')) sent ??= send({})
          // A message that is queued now must not be overlooked.
          if (line.includes('"delivery":"queued"')) while (engine.live('c')) await ticks(1)
          return whole.append(name, entries, options)
        },
      },
    },
  )
  await send({})
  await engine.live('c')?.ended
  t.match(await sent, { delivery: 'started' })
  await engine.live('c')?.ended
  t.same([ran, queue.waiting('c')], [2, []])
})

t.test('a simultaneous message and resume make one turn, and the message is not lost', { timeout: 60_000 }, async t => {
  for (let moment = 0; moment < 12; moment++) {
    let [turns, out] = [0, true]
    const { engine, queue, send } = engineOn(
      t,
      async function* (): AsyncIterable<Frame> {
        t.equal(++turns, 1, `one turn at a time, after ${moment}`)
        await ticks(3)
        if (out) yield { kind: 'error', code: 'provider-outage', message: 'it is out' }
        out = false
        turns -= 1
      },
      {
        words: false,
        outages: { delays: [0, 0, 0, 0, 0, 0], mostMs: HOUR, probeMs: HOUR, random: () => 0.5 },
        journal: quickIn(t),
      },
    )
    await send({})
    await engine.live('c')?.ended
    await ticks(moment)
    const { run } = await send({})
    await ticks(40)
    for (let turn = engine.live('c'); turn; turn = engine.live('c')) await turn.ended
    t.same([queue.waiting('c'), queue.current('c'), queue.message(run)], [[], undefined, undefined])
  }
})

const ids = ['r-1.1', 'r-1.2']
const answers = [true, false]
const cardStep = fc.oneof(
  { weight: 2, arbitrary: fc.record({ does: fc.constant('raise' as const), id: fc.constantFrom(...ids) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      does: fc.constant('reply' as const),
      id: fc.constantFrom(...ids),
      approve: fc.constantFrom(...answers),
      kind: fc.constantFrom('plan' as const, 'permission' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant('carried' as const), id: fc.constantFrom(...ids), fails: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      does: fc.constant('settle' as const),
      id: fc.constantFrom(...ids),
      approve: fc.option(fc.constantFrom(...answers), { nil: undefined }),
    }),
  },
)

t.test('the first answer to a card that is written counts and reaches its turn once', { timeout: 60_000 }, async t => {
  await fc.assert(
    fc.asyncProperty(fc.array(cardStep, { maxLength: 20 }), async steps => {
      const cards = new OpenCards()
      const model = new Map<string, { up: boolean; answer?: boolean | undefined; over: boolean; carried: number }>()
      const under = new Map<string, { resolve: () => void; reject: (error: Error) => void }>()
      const pending: Promise<unknown>[] = []
      const replyOf = (requestId: string, approve: boolean, kind: 'plan' | 'permission' = 'plan') =>
        (kind === 'plan' ? { kind, requestId, approve } : { kind, requestId, decision: 'once' }) as CardReply
      let faults = 0
      for (const each of steps) {
        const { id } = each
        const card = model.get(id)
        if (each.does === 'raise') {
          // A turn raises a card once, and again after a restart if it was not answered.
          if (card) continue
          model.set(id, { up: true, over: false, carried: 0 })
          cards.raise({
            card: { kind: 'plan', requestId: id, text: 'x' },
            conversationId: 'c',
            answer: () => {
              model.get(id)!.carried += 1
              return new Promise<void>((resolve, reject) => under.set(id, { resolve, reject }))
            },
          })
        } else if (each.does === 'settle') {
          if (!card?.up) continue
          cards.settle(id, 'c', each.approve === undefined ? undefined : replyOf(id, each.approve))
          Object.assign(card, { up: false, over: true, answer: each.approve })
        } else if (each.does === 'carried') {
          const waits = under.get(id)
          if (!waits || !card) continue
          under.delete(id)
          if (each.fails) Object.assign(card, { up: true, answer: undefined })
          else card.over = true
          if (each.fails) waits.reject(new Error('not written'))
          else waits.resolve()
          await ticks(1)
        } else {
          const expected = !card
            ? 404
            : card.up
              ? each.kind === 'plan'
                ? 'carries'
                : 422
              : card.answer === undefined || each.kind !== 'plan' || card.answer !== each.approve
                ? 409
                : 'same'
          const before = card?.carried ?? 0
          const answered = cards.reply(replyOf(id, each.approve, each.kind), { by: 'a', lands: true })
          pending.push(answered.catch(() => {}))
          if (typeof expected === 'number') {
            const status = await answered.then(
              () => 200,
              error => (error as Refusal).status,
            )
            if (status !== expected || (card?.carried ?? 0) !== before) faults += 1
          } else if (card && card.carried !== before + (expected === 'carries' ? 1 : 0)) faults += 1
          if (expected === 'carries') Object.assign(card!, { up: false, answer: each.approve })
        }
      }
      for (const { resolve } of under.values()) resolve()
      await Promise.all(pending)
      return faults === 0
    }),
    { seed: 15, numRuns: 500 },
  )
  t.pass()
})

t.test('an answer that could not be written leaves its card open for another one', async t => {
  const cards = new OpenCards()
  const heard: boolean[] = []
  let broken = true
  cards.raise({
    card: { kind: 'plan', requestId: 'r-1.1', text: 'x' },
    conversationId: 'c',
    answer: async reply => {
      if (broken) throw new Error('the disk is broken')
      heard.push(reply.kind === 'plan' && reply.approve)
    },
  })
  const answer = (approve: boolean) =>
    cards.reply({ kind: 'plan', requestId: 'r-1.1', approve }, { by: 'a', lands: true })
  await t.rejects(answer(true), /broken/)
  broken = false
  await answer(false)
  t.same(heard, [false])
})
