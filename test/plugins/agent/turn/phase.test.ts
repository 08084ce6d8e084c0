import fc from 'fast-check'
import t from 'tap'
import {
  after,
  NEW_TURN,
  endOf,
  foundAs,
  isLeaving,
  isSettling,
  isWorked,
  mayAsk,
  shownAs,
  type Effect,
  type TurnOutcome,
  type Phase,
  type TurnEvent,
  type TurnState,
} from '../../../../plugins/agent/turn/phase.js'

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
  'error',
  'outage',
  'restart',
  'give-up',
  'supersede',
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
  'found',
  'cut-off',
]
const STOP: readonly Effect[] = ['show', 'note-stop', 'lower-cards', 'abort']
const FAIL: readonly Effect[] = ['lower-cards', 'abort']

const at = (phase: Phase): TurnState => ({
  phase,
  cards: phase === 'parked' ? 1 : 0,
  outcome: 'completed',
  stopAsked: phase === 'stopping',
})
const SURE: readonly Phase[] = ['settling', 'leaving', 'done', 'frozen']
const UNSURE = PHASES.filter(phase => !SURE.includes(phase))

/** The next phase for each event and phase; pairs that are not listed do not change the phase. */
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
    found: 'stopping',
    'cut-off': 'stopping',
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
    found: 'settling',
    'cut-off': 'settling',
  },
  leave: { settling: 'leaving' },
  end: Object.fromEntries(PHASES.filter(phase => phase !== 'frozen').map(phase => [phase, 'done'])),
  freeze: Object.fromEntries(
    PHASES.filter(phase => !['settling', 'leaving', 'done'].includes(phase)).map(phase => [phase, 'frozen']),
  ),
  error: {},
  outage: {},
  restart: { found: 'preparing', 'cut-off': 'worked' },
  'give-up': { found: 'worked', 'cut-off': 'worked' },
  supersede: { found: 'worked', 'cut-off': 'worked' },
}

t.test('every event in every phase leads to the phase in the table', t => {
  for (const event of EVENTS)
    for (const phase of PHASES)
      t.equal(after(at(phase), event)[0].phase, TABLE[event][phase] ?? phase, `${event} in ${phase}`)
  t.end()
})

t.test('effects: a stop counts once, a failure only during work, and a broken log always aborts the turn', t => {
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
  t.end()
})

t.test('a card that is open while a turn prepares or switches parks it afterwards', t => {
  const run = (...events: TurnEvent[]) => events.reduce((state, event) => after(state, event)[0], NEW_TURN)
  t.equal(run('card-raised', 'prepared').phase, 'parked')
  t.equal(run('prepared', 'switch', 'card-raised', 'switched').phase, 'parked')
  t.equal(run('prepared', 'card-raised', 'card-raised', 'card-lowered').phase, 'parked')
  t.equal(shownAs(run('card-raised')), 'parked')
  t.equal(shownAs(run('card-raised', 'stop')), 'stopping')
  t.equal(shownAs(run('prepared', 'settle')), 'running')
  t.end()
})

t.test('a restart resumes the turns that can resume, and ends the others', t => {
  const ending = false
  const left = ['fail-subagents', 'cancel-offers'] as const
  const table: [found: TurnState, event: TurnEvent, phase: Phase, end: string, effects: readonly Effect[]][] = [
    [foundAs(0, { stopAsked: false, ending }), 'restart', 'preparing', 'completed', [...left, 'resume']],
    [foundAs(0, { stopAsked: false, ending }), 'give-up', 'worked', 'interrupted', [...left, 'finish']],
    [foundAs(2, { stopAsked: false, ending }), 'restart', 'preparing', 'completed', [...left, 'restore-cards']],
    [foundAs(2, { stopAsked: false, ending }), 'give-up', 'preparing', 'completed', [...left, 'restore-cards']],
    [foundAs(2, { stopAsked: true, ending }), 'restart', 'stopping', 'stopped', ['finish']],
    [foundAs(2, { stopAsked: true, ending }), 'supersede', 'worked', 'interrupted', ['finish']],
    [foundAs(2, { stopAsked: false, ending }), 'supersede', 'worked', 'interrupted', ['finish']],
  ]
  for (const [found, event, phase, end, effects] of table) {
    const [state, done] = after(found, event)
    t.same([state.phase, state.cards, endOf(state), done], [phase, 0, end, effects], `${event} ${found.cards} cards`)
  }
  for (const event of ['restart', 'give-up', 'supersede'] as const) {
    t.same(after(foundAs(1, { stopAsked: false, ending: true }), event)[1], ['finish'], 'the end is written again')
    t.same(after(after(foundAs(0, { stopAsked: false, ending }), 'freeze')[0], event)[1], [], 'frozen again')
    for (const phase of SURE) t.same(after(at(phase), event), [at(phase), []], `${event} in ${phase}`)
    for (const phase of UNSURE)
      t.ok(
        after(at(phase), event)[1].some(effect => effect === 'finish' || effect === 'resume'),
        `${event} in ${phase}`,
      )
  }
  t.end()
})

t.test('the first error decides the end of a turn, and only an outage plans a resume', t => {
  const run = (...events: TurnEvent[]) => events.reduce((state, event) => after(state, event)[0], NEW_TURN)
  const table: [events: TurnEvent[], outcome: TurnOutcome, end: string][] = [
    [['prepared', 'worked'], 'completed', 'completed'],
    [['prepared', 'error', 'outage'], 'failed', 'failed'],
    [['prepared', 'outage', 'error', 'broken'], 'outage', 'failed'],
    [['prepared', 'broken'], 'failed', 'failed'],
    [['prepared', 'outage', 'stop'], 'outage', 'stopped'],
  ]
  for (const [events, outcome, end] of table) {
    const state = run(...events, 'settle')
    t.same([state.outcome, endOf(state)], [outcome, end], events.join(' '))
    const plans = outcome === 'outage' ? ['plan-resume'] : []
    t.same(after(state, 'leave')[1], plans)
    t.same(after(after(state, 'leave')[0], 'leave')[1], plans, 'and again, when its end is written again')
  }
  t.end()
})

t.test('after any order of events an end is final and has no further effects', t => {
  const starts = [false, true].flatMap(stopAsked => [
    NEW_TURN,
    ...[0, 2].flatMap(cards => [true, false].map(ending => foundAs(cards, { stopAsked, ending }))),
  ])
  fc.assert(
    fc.property(
      fc.constantFrom(...starts),
      fc.array(fc.constantFrom(...EVENTS), { maxLength: 40 }),
      (start, events) => {
        let state = start
        let stops = 0
        for (const event of events) {
          const [next, effects] = after(state, event)
          if (isSettling(state)) t.ok(isSettling(next) && isWorked(next), 'it keeps ending')
          if (isLeaving(state)) t.ok(isLeaving(next))
          if (state.phase === 'frozen' || state.phase === 'done') t.equal(next.phase, state.phase)
          if (state.stopAsked) t.ok(next.stopAsked && !mayAsk(next))
          if (state.outcome !== 'completed')
            t.ok(next.outcome === state.outcome || next.outcome === 'interrupted', 'the first error decides')
          if (state.phase !== 'found') t.not(next.phase, 'found')
          if (next.phase === 'found' || next.phase === 'cut-off') t.notOk(mayAsk(next))
          if (effects.includes('resume')) t.ok(state.phase === 'found' && !next.stopAsked && next.phase === 'preparing')
          if (effects.includes('plan-resume')) t.ok(next.outcome === 'outage' && isLeaving(next))
          if (mayAsk(next)) t.notOk(isSettling(next) || next.phase === 'failing' || next.phase === 'frozen')
          if (next.phase === 'parked') t.ok(next.cards > 0)
          if (next.phase === 'running') t.equal(next.cards, 0)
          if (effects.includes('note-stop')) stops++
          state = next
        }
        return stops <= 1
      },
    ),
    { numRuns: 300 },
  )
  t.end()
})
