import fc from 'fast-check'
import t from 'tap'
import type { LiveFrame } from '../../../sdk/kernel.js'
import { accessTo, type ReachFolder } from '../../../sdk/reach.js'
import { bench } from './support.js'
import { exactly } from '../../support/lists.js'

const DOCS: ReachFolder[] = [{ path: 'docs', access: 'read' }]
const card = (n: number, place: string): LiveFrame => {
  const data = { kind: 'agent', n }
  return { data, limited: { forms: [{ within: [place], value: data }] }, mode: 'delta' }
}

t.test('a limited reader gets the frames whose folders they reach, and none without folders', async t => {
  const { live, watch } = bench()
  const [all, docs, none] = [
    watch({ mode: 'delta' }),
    watch({ mode: 'delta', reach: DOCS }),
    watch({ mode: 'delta', reach: [] }),
  ]
  t.same(docs.kinds(), ['hello'], 'empty snapshots are not sent to them')
  all.take()
  none.take()
  live.show([
    card(1, 'docs/a'),
    card(2, 'src'),
    { data: { kind: 'agent' }, mode: 'delta' },
    card(3, 'docs-old'),
    card(4, 'docs'),
  ])
  t.equal(all.take().length, 5)
  t.same(
    docs.take().map(({ data }) => data.n),
    [1, 4],
  )
  t.same(none.take(), [])
})

t.test('lists, numbers and forms are computed for each reach', async t => {
  const { live, watch } = bench()
  const [docs, none] = [watch({ reach: DOCS }), watch({ reach: [] })]
  docs.take()
  none.take()
  live.show([
    {
      data: { kind: 'agents', agents: [1, 2], rev: 7 } as { kind: string },
      limited: {
        list: {
          field: 'agents',
          items: [
            [
              { within: ['.'], value: { id: 1, diff: 9 } },
              { within: ['docs'], value: { id: 1 } },
            ],
            [{ within: ['src'], value: { id: 2 } }],
          ],
        },
      },
      snapshot: true,
    },
    {
      data: { kind: 'attention', cards: 3, land: 1, ci: 0 } as { kind: string },
      limited: {
        sums: {
          fields: ['cards', 'land'],
          parts: [
            { within: ['docs/x'], add: { cards: 2, land: 1 } },
            { within: ['src'], add: { cards: 1 } },
          ],
        },
      },
      snapshot: true,
    },
  ])
  t.strictSame(
    docs.take().map(({ data }) => data),
    [
      { kind: 'agents', agents: [{ id: 1 }], rev: 7 },
      { kind: 'attention', cards: 2, land: 1, ci: 0 },
    ],
  )
  t.strictSame(
    none.take().map(({ data }) => data),
    [
      { kind: 'agents', agents: [], rev: 7 },
      { kind: 'attention', cards: 0, land: 0, ci: 0 },
    ],
  )
})

t.test('a limited reader gets the changed keys inside their folders, and none if a key has no folder', async t => {
  const { live, clock, watch } = bench()
  const [all, docs] = [watch(), watch({ reach: DOCS })]
  all.take()
  docs.take()
  live.bump('fleet', 'landings', 'in', ['docs/a'])
  t.match(docs.take()[0]!.data, { kind: 'runtimeChanged', keys: exactly('in') })
  clock.pass(300)
  live.bump('fleet', 'landings', 'out', ['src'])
  t.strictSame(docs.take()[0]!.data.keys, [])
  clock.pass(300)
  live.bump('fleet', 'landings', 'half', ['docs/a', 'src'])
  t.strictSame(docs.take()[0]!.data.keys, [], 'all of its folders must be reached')
  clock.pass(300)
  live.bump('fleet', 'sessions', 'somebody')
  t.strictSame(docs.take()[0]!.data.keys, undefined)
  t.match(
    all.take().map(({ data }) => data.keys),
    exactly(exactly('in'), exactly('out'), exactly('half'), exactly('somebody')),
  )
})

t.test('waiting changes are sent together, to each reach its own', async t => {
  const { live, clock, watch } = bench()
  const slow = [watch({ reads: false }), watch({ reads: false, reach: DOCS })]
  for (const [at, place] of ['docs', 'src', 'docs'].entries()) {
    live.bump('fleet', 'landings', `k${at}`, [place])
    clock.pass(300)
  }
  const keys = slow.map(sink => {
    sink.read()
    return sink
      .take()
      .filter(({ data }) => data.kind === 'runtimeChanged')
      .map(({ data }) => data.keys)
  })
  t.same(keys, [[['k0', 'k1', 'k2']], [['k0', 'k2']]])
})

t.test('missed frames of a resumed stream are filtered too', async t => {
  const { live, watch } = bench()
  const first = watch({ mode: 'delta', reach: DOCS })
  const last = first.take().at(-1)!.id
  live.show([card(1, 'docs'), card(2, 'src'), card(3, 'docs/b')])
  t.same(
    watch({ mode: 'delta', reach: DOCS, last })
      .take()
      .slice(1)
      .map(({ data }) => data.n),
    [1, 3],
  )
  t.same(
    watch({ mode: 'delta', reach: [{ path: 'src', access: 'read' }], last })
      .take()
      .slice(1)
      .map(({ data }) => data.n),
    [2],
    'by the current reach',
  )
})

t.test('readers with the same reach share the same bytes', async t => {
  const { live, watch } = bench()
  const sinks = [
    watch({ mode: 'delta', reach: DOCS }),
    watch({ mode: 'delta', reach: [{ path: 'docs', access: 'read' }] }),
    watch({ mode: 'delta', reach: DOCS }),
  ]
  for (const sink of sinks) sink.take()
  let times = 0
  const value = { kind: 'agent', toJSON: () => ({ kind: 'agent', times: ++times }) }
  live.show([{ data: { kind: 'agent' }, limited: { forms: [{ within: ['docs'], value }] }, mode: 'delta' }])
  t.equal(times, 1)
  const [one, ...others] = sinks.map(({ chunks }) => chunks[0]!)
  for (const chunk of others) t.ok(chunk.buffer === one!.buffer && chunk.byteOffset === one!.byteOffset)
})

t.test('no reader ever gets a frame outside their reach, at any speed of reading', async t => {
  const place = fc.constantFrom('.', 'a', 'a/b', 'b', 'c')
  const reaches = fc.array(fc.record<ReachFolder>({ path: place, access: fc.constantFrom('read', 'work') }), {
    maxLength: 3,
  })
  const step = fc.oneof(
    place.map(at => ({ show: at })),
    place.map(at => ({ bump: at })),
    fc.constant({ read: true }),
    fc.constant({ pass: true }),
  )
  fc.assert(
    fc.property(reaches, fc.array(step, { maxLength: 40 }), (reach, steps) => {
      const { live, clock, watch } = bench()
      const sink = watch({ mode: 'delta', reach, reads: false })
      for (const each of steps) {
        if ('show' in each)
          live.show([
            {
              data: { kind: 'agent', at: each.show } as { kind: string },
              limited: { forms: [{ within: [each.show], value: { kind: 'agent', at: each.show } }] },
              mode: 'delta',
            },
          ])
        else if ('bump' in each) live.bump('fleet', 'landings', each.bump, [each.bump])
        else if ('pass' in each) clock.pass(300)
        else sink.read(false)
      }
      sink.read()
      const got = sink
        .take()
        .flatMap(({ data }) => [
          ...(data.at === undefined ? [] : [data.at as string]),
          ...((data.keys as string[] | undefined) ?? []),
        ])
      const wanted = steps.flatMap(each =>
        'show' in each && accessTo(reach, each.show) !== undefined ? [each.show] : [],
      )
      return got.every(at => accessTo(reach, at) !== undefined) && wanted.every(at => got.includes(at))
    }),
    { seed: 7, numRuns: 1500 },
  )
  t.pass()
})
