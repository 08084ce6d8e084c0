import t from 'tap'
import type { Context } from '../../../../sdk/contract.js'
import { refuse } from '../../../../sdk/refusal.js'
import { recordingLimits } from '../../../../sdk/node/record/limited.js'
import { refusalOf } from '../../../kernel/auth/memory.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'

const MINUTE = 60_000

t.test('an address that is refused is recorded once in ten minutes for each route, whatever the answer is', async t => {
  const told: object[] = []
  let now = 0
  const host = {
    serves: async () => true,
    call: async (_: string, entry: object) => void told.push(entry),
    log: { error: () => {} },
  }
  const full = () => refuse('too-many', 'too many')
  const calls = recordingLimits(
    host as never,
    ['plain', 'stream', 'other'],
    {
      plain: async (_: object, _context: Context) => full(),
      stream: async function* (_: object, _context: Context) {
        yield full()
      },
      other: async (_: object, _context: Context) => refuse('not-found', 'nothing'),
      closed: async (_: object, _context: Context) => full(),
    },
    () => now,
  )
  const from = (address: string) => ({ http: { address } }) as Context
  const streamed = async (address: string) => {
    for await (const _ of await calls.stream({}, from(address))) continue
  }
  for (const ask of [
    () => calls.plain({}, from('one')),
    () => calls.plain({}, from('one')),
    () => calls.plain({}, from('two')),
    () => streamed('one'),
    () => streamed('one'),
    () => calls.closed({}, from('one')),
  ])
    t.match(await refusalOf(ask), { status: 429 })
  t.match(await refusalOf(() => calls.other({}, from('one'))), { status: 404 })
  const shown = () => told.map(entry => (entry as { extra: object }).extra)
  const first = [
    { route: 'plain', address: 'one' },
    { route: 'plain', address: 'two' },
    { route: 'stream', address: 'one' },
  ]
  t.same(shown(), first)
  now = 10 * MINUTE
  await refusalOf(() => calls.plain({}, from('one')))
  t.same(shown(), [...first, first[0]])
  now = 5 * MINUTE
  await refusalOf(() => calls.plain({}, from('one')))
  t.equal(told.length, 5, 'a clock that was set back begins a period')
})

t.test('an address that asks for too many shared pages is in the activity record once', async t => {
  const daemon = await daemonWith(t, [])
  const ask = async () => (await fetch(`${daemon.url}/s/abc/`)).status
  let last = 0
  for (let sent = 0; sent < 2000 && last !== 429; sent++) last = await ask()
  t.same([last, await ask()], [429, 429])
  const { events } = await daemon.client.call('GET /activity', { type: 'rate.limited' })
  t.match(
    events,
    exactly({
      actor: 'stranger',
      direction: 'in',
      outcome: 'error',
      extra: { route: 'GET /s/{id}/{path}', address: '127.0.0.1' },
    }),
  )
})
