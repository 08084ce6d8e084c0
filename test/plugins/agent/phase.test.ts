import fc from 'fast-check'
import t from 'tap'
import {
  after,
  beginning,
  isLeaving,
  isSettling,
  isWorked,
  mayAsk,
  shownAs,
  type Effect,
  type Phase,
  type TurnEvent,
  type TurnState,
} from '../../../plugins/agent/turn/phase.js'

const EVENTS: readonly TurnEvent[] = [
  'prepared',
  'card-raised',
  'card-lowered',
  'switch',
  'switched',
  'worked',
  'stop',
  'fail',
  'broken',
  'settle',
  'leave',
  'end',
  'freeze',
]
const PHASES: readonly Phase[] = [
  'preparing',
  'running',
  'parked',
  'switching',
  'worked',
  'failing',
  'stopping',
  'settling',
  'leaving',
  'done',
  'frozen',
]
const STOP: readonly Effect[] = ['show', 'note-stop', 'lower-cards', 'abort']
const FAIL: readonly Effect[] = ['lower-cards', 'abort']

const at = (phase: Phase): TurnState => ({ phase, cards: phase === 'parked' ? 1 : 0, stopAsked: phase === 'stopping' })

/** Where each event leads from each phase; what is not listed stays where it is. */
const TABLE: { readonly [event in TurnEvent]: { readonly [phase in Phase]?: Phase } } = {
  prepared: { preparing: 'running' },
  'card-raised': { running: 'parked' },
  'card-lowered': { parked: 'running' },
  switch: { running: 'switching', parked: 'switching' },
  switched: { switching: 'running' },
  worked: { preparing: 'worked', running: 'worked', parked: 'worked', switching: 'worked', failing: 'worked' },
  stop: {
    preparing: 'stopping',
    running: 'stopping',
    parked: 'stopping',
    switching: 'stopping',
    worked: 'stopping',
    failing: 'stopping',
  },
  fail: { preparing: 'failing', running: 'failing', parked: 'failing', switching: 'failing', worked: 'failing' },
  broken: { preparing: 'failing', running: 'failing', parked: 'failing', switching: 'failing', worked: 'failing' },
  settle: {
    preparing: 'settling',
    running: 'settling',
    parked: 'settling',
    switching: 'settling',
    worked: 'settling',
    failing: 'settling',
    stopping: 'settling',
  },
  leave: { settling: 'leaving' },
  end: Object.fromEntries(PHASES.filter(phase => phase !== 'frozen').map(phase => [phase, 'done'])),
  freeze: Object.fromEntries(
    PHASES.filter(phase => !['settling', 'leaving', 'done'].includes(phase)).map(phase => [phase, 'frozen']),
  ),
}

t.test('every event leads from every phase where the table says', t => {
  for (const event of EVENTS)
    for (const phase of PHASES)
      t.equal(after(at(phase), event)[0].phase, TABLE[event][phase] ?? phase, `${event} in ${phase}`)
  t.end()
})

t.test(
  'what is to be done: a stop counts once, a failure only while it works, and a broken log always ends what runs',
  t => {
    for (const phase of PHASES) {
      const free = ['leaving', 'done', 'frozen', 'stopping'].includes(phase)
      t.same(after(at(phase), 'stop')[1], free ? [] : STOP, `stop in ${phase}`)
      t.equal(after(at(phase), 'stop')[0].stopAsked, true)
      t.same(after(after(at(phase), 'stop')[0], 'stop')[1], [], `and again in ${phase}`)
      t.same(
        after(at(phase), 'fail')[1],
        ['preparing', 'running', 'parked', 'switching', 'worked'].includes(phase) ? FAIL : [],
        `fail in ${phase}`,
      )
      t.same(after(at(phase), 'broken')[1], ['abort'], `broken in ${phase}`)
    }
    t.same(
      beginning(true),
      { phase: 'stopping', cards: 0, stopAsked: true },
      'a restart finds a stop that was asked for',
    )
    t.same(beginning(false), { phase: 'preparing', cards: 0, stopAsked: false })
    t.end()
  },
)

t.test('a card that is up while a turn gets ready, or goes on elsewhere, parks it afterwards', t => {
  const run = (...events: TurnEvent[]) => events.reduce((state, event) => after(state, event)[0], beginning(false))
  t.equal(run('card-raised', 'prepared').phase, 'parked')
  t.equal(run('prepared', 'switch', 'card-raised', 'switched').phase, 'parked')
  t.equal(run('prepared', 'card-raised', 'card-raised', 'card-lowered').phase, 'parked')
  t.equal(shownAs(run('card-raised')), 'parked')
  t.equal(shownAs(run('card-raised', 'stop')), 'stopping')
  t.equal(shownAs(run('prepared', 'settle')), 'running')
  t.end()
})

t.test('whatever happens in whatever order, an end is final and nothing is asked behind it', t => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(fc.constantFrom(...EVENTS), { maxLength: 40 }), (stopAsked, events) => {
      let state = beginning(stopAsked)
      let stops = 0
      for (const event of events) {
        const [next, effects] = after(state, event)
        if (isSettling(state)) t.ok(isSettling(next) && isWorked(next), 'it goes on ending')
        if (isLeaving(state)) t.ok(isLeaving(next))
        if (state.phase === 'frozen' || state.phase === 'done') t.equal(next.phase, state.phase)
        if (state.stopAsked) t.ok(next.stopAsked && !mayAsk(next))
        if (mayAsk(next)) t.notOk(isSettling(next) || next.phase === 'failing' || next.phase === 'frozen')
        if (next.phase === 'parked') t.ok(next.cards > 0)
        if (next.phase === 'running') t.equal(next.cards, 0)
        if (effects.includes('note-stop')) stops++
        state = next
      }
      return stops <= 1
    }),
    { numRuns: 300 },
  )
  t.end()
})
