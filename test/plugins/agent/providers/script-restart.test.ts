import t from 'tap'
import type { CardReply } from '../../../../plugins/agent/turn/frames/frames.js'
import { play, World } from './script-support.js'

const LONG = `think start
say alpha beta gamma
todo [~] one | [ ] two
write a.txt
| first
repeat 3 append a.txt
| line $n
edit a.txt
| - line 2
| + line 2 line 2
move a.txt -> b.txt
append notes.txt
| three
delete notes.txt
ask Which?
| x: y
permit Shell: may I
plan go
repeat 5 say n $n
mode acceptEdits
fetch http://x
offer service translate 3
offer capability forge
offer payment https://x 1
context 5 9
compact
limit 50
fast on
retry 3 1
wait 1
read b.txt
say $out $answer end`

const REPLIES: CardReply[] = [
  { kind: 'question', requestId: '0', answers: { 'Which?': 'x' } },
  { kind: 'permission', requestId: '1', decision: 'once' },
  { kind: 'plan', requestId: '2', approve: true },
  { kind: 'service_offer', requestId: '3', approve: true },
  { kind: 'capability_offer', requestId: '4', connect: true },
  { kind: 'payment_offer', requestId: '5', approve: true },
]

/** The kinds of frames that a run of the script has once. */
const ONCE = [
  'thinking',
  'todos',
  'usage',
  'session',
  'question',
  'plan',
  'permission',
  'service_offer',
  'service_receipt',
  'capability_offer',
  'capability_outcome',
  'payment_offer',
  'payment_receipt',
  'context_usage',
  'compact',
  'rate_limit_info',
  'account_usage',
  'fast_mode',
]

t.test('a turn killed at any moment and resumed does everything exactly once', async t => {
  const whole = await play(LONG, { replies: REPLIES })
  t.equal(whole.files.get('b.txt'), 'first\nline 1\nline 2 line 2\nline 3\n')
  let wrong = 0
  for (let dieAt = 1; dieAt <= whole.steps; dieAt++) {
    const world = new World({ words: LONG, replies: REPLIES })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    const same =
      world.prose === whole.prose
      && JSON.stringify([...world.files]) === JSON.stringify([...whole.files])
      && ONCE.every(kind => world.kinds.filter(k => k === kind).length === 1)
      && world.find('service_event').length === 2
      && world
        .find('provider_retry')
        .map(({ attempt }) => attempt)
        .join() === '1,2,3'
    if (!same) {
      wrong++
      t.same(
        { prose: world.prose, files: [...world.files], kinds: world.kinds },
        { prose: whole.prose, files: [...whole.files], kinds: whole.kinds },
        `killed at step ${dieAt}`,
      )
    }
  }
  t.equal(wrong, 0, `killed at each of ${whole.steps} steps`)
})

t.test('a command that may have run is never run again, and says so', async t => {
  const words = 'say a\nrun deploy\nsay $exit: $out'
  const { steps } = await play(words)
  const ends = new Set<string>()
  for (let dieAt = 1; dieAt <= steps; dieAt++) {
    const world = new World({ words })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    t.ok(world.shells.length <= 1, `killed at step ${dieAt}`)
    const closed = world.find('tool_call_update')
    t.equal(closed.length, 1, 'its call is closed once')
    ends.add(world.prose)
  }
  t.same([...ends].sort(), ['a\n0: ran deploy\n', 'a\n1: interrupted by a restart\n'])
})

t.test('two restarts in a row neither lose nor duplicate anything', async t => {
  const words = 'say one two three four\nappend notes.txt\n| x\nsay five'
  const { steps } = await play(words)
  for (let first = 1; first <= steps; first++)
    for (let second = 1; second <= steps; second += 2) {
      const world = new World({ words })
      world.dieAt = first
      await world.run()
      world.dieAt = world.steps + second
      await world.run(2)
      world.dieAt = Infinity
      await world.run(3)
      if (world.prose !== 'one two three four\nfive\n' || world.files.get('notes.txt') !== 'one\ntwo\nx\n')
        t.fail(`killed at ${first} and ${second}: ${world.prose}`)
    }
})

t.test('a text whose log has a masked secret continues after it', async t => {
  const world = new World({ words: 'say the key is s3cret and more' })
  world.log = [
    { kind: 'session', sessionId: 's' },
    { kind: 'delta', text: 'the key is {{secret:KEY}} ' },
  ]
  await world.run(2)
  t.equal(world.prose, 'the key is {{secret:KEY}} and more\n')
})

t.test('messages from before the restart that were not used yet are still delivered', async t => {
  const world = new World({ words: 'wait words\nsay $words', said: ['hello'] })
  world.log = [{ kind: 'steer', text: 'hello', sentAt: 1, messageId: 'm-hello' }]
  await world.run(2)
  t.equal(world.prose, 'hello\n')
})

t.test('a wait killed in the middle waits only for the remaining time', async t => {
  const world = new World({ words: 'wait 3600000\nsay done' })
  world.dieAt = 6
  const first = world.run()
  await new Promise(resolve => setImmediate(resolve))
  t.match(world.state, { until: Number })
  world.stop.abort()
  await first
  const later = new World(world.setup)
  later.state = { ...(world.state as object), until: Date.now() - 1 }
  t.equal((await later.run(2)).prose, 'done\n')
})

t.test('a call that waited for permission at a kill is made again once it is allowed', async t => {
  const world = new World({
    words: 'run deploy\nsay $exit',
    replies: [{ kind: 'permission', requestId: '0', decision: 'once' }],
  })
  world.dieAt = 5
  await world.run()
  world.dieAt = Infinity
  world.log.push(
    { kind: 'tool_call', id: 'c1', name: 'Shell', category: 'execute', status: 'pending' },
    { kind: 'permission', requestId: '0', toolName: 'Shell' },
  )
  await world.run(2)
  t.same([world.shells, world.prose], [['deploy'], '0\n'])
})

t.test('a saved state from elsewhere is refused and nothing runs', async t => {
  const world = new World({ words: 'run x' })
  world.state = { version: 99 }
  await world.run(2)
  t.match(world.log.at(-1), { kind: 'error', message: /cannot be read/ })
  t.same(world.shells, [])
})
