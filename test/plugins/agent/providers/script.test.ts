import t from 'tap'
import type { Frame } from '../../../../plugins/agent/turn/frames/frames.js'
import { scriptAdapter } from '../../../../plugins/agent/providers/script/adapter.js'
import { HELP } from '../../../../plugins/agent/providers/script/help.js'
import { play, prose, World } from './script-support.js'
import { exactly } from '../../../support/lists.js'

t.test('a turn begins with session, init and commands and ends with usage', async t => {
  const { kinds, log, prose } = await play('say one two\nthink hm')
  t.same(kinds, ['session', 'init', 'commands', 'delta', 'delta', 'text_end', 'thinking', 'usage'])
  t.equal(prose, 'one two\n')
  t.match(log.at(-1), { inputTokens: 5, outputTokens: 3, costUsd: 0 })
})

t.test('a plain prompt is repeated, cut at 200 characters, with a pointer to the help', async t => {
  t.match(await prose('Fix $out please'), /^You said: Fix \$out please\n\n.*\/help/)
  t.match(await prose('😀'.repeat(300)), new RegExp(`^You said: ${'😀'.repeat(200)}\n`))
  t.match((await play('/nope')).log.at(-1), { kind: 'error', code: 'unknown-command', message: /\/nope/ })
  t.equal(await prose('/help'), `${HELP}\n`)
})

t.test('a later line that does not parse ends the turn before anything has run', async t => {
  const { files, log } = await play('write a.txt\n| x\nnonsense')
  t.match(log.at(-1), { kind: 'error', code: 'script-syntax', message: /^line 3: / })
  t.notOk(files.has('a.txt'))
})

t.test('the demo thinks, lists, writes, runs, asks and writes text', async t => {
  const { kinds, files, shells, prose } = await play('/demo', {
    replies: [{ kind: 'question', requestId: '0', answers: {} }],
  })
  for (const kind of ['thinking', 'todos', 'tool_call', 'question', 'delta'] as const) t.ok(kinds.includes(kind), kind)
  t.match(files.get('sandbox-demo.md'), /^# Hello/)
  t.equal(shells.length, 1)
  t.match(prose, /sandbox-demo\.md/)
})

t.test('variables are replaced once, and other words with $ are unchanged', async t => {
  t.equal(
    await prose('run x\nsay $exit $out $$out $nope $name $n $run $conversation $'),
    '0 ran x $out $nope $name 1 r-1 c-1 $\n',
  )
  t.equal(await prose('run exit 3\nsay $exit'), '3\n')
  t.equal(await prose('read missing\nsay $out'), 'nothing is named missing\n')
  t.equal(await prose('repeat 3 say $n'), '1\n2\n3\n')
  t.equal(await prose('read notes.txt\nsay $out.$out_$outs'), 'one\ntwo.$out_$outs\n')
})

t.test('a text that grows beyond its limit fails the turn with the line number', async t => {
  const world = new World({ words: `read big\nsay ${'$out'.repeat(200)}` })
  world.files.set('big', 'x'.repeat(60_000))
  await world.run()
  t.match(world.log.at(-1), { kind: 'error', message: /^line 2: .*too long/ })
})

t.test(
  'a question returns its answer, several are joined, a skipped one is empty and a cancelled one ends the turn',
  async t => {
    const ask = (verb: string, answers?: { [q: string]: string | string[] }, cancelled?: boolean) =>
      prose(`${verb} Which?\n| a: x\nsay [$answer]`, {
        replies: [{ kind: 'question', requestId: '0', ...(answers && { answers }), ...(cancelled && { cancelled }) }],
      })
    t.equal(await ask('ask', { 'Which?': 'a' }), '[a]\n')
    t.equal(await ask('ask*', { 'Which?': ['a', 'b'] }), '[a, b]\n')
    t.equal(await ask('ask', {}), '[]\n')
    t.equal(await ask('ask', undefined, true), '')
  },
)

t.test('an approved plan ends plan mode, a refused one ends the turn with the feedback', async t => {
  const yes = await play('plan\n| do it\nsay on', {
    mode: 'plan',
    replies: [{ kind: 'plan', requestId: '0', approve: true }],
  })
  t.same([yes.modes, yes.prose], [['bypassPermissions'], 'on\n'])
  const narrow = await play('plan do it\nsay on', {
    mode: 'default',
    replies: [{ kind: 'plan', requestId: '0', approve: true }],
  })
  t.same(narrow.modes, ['default'], 'other modes are unchanged')
  t.equal(
    await prose('plan do it\nsay on', {
      replies: [{ kind: 'plan', requestId: '0', approve: false, feedback: 'smaller' }],
    }),
    'smaller\n',
  )
})

t.test('a permission returns the decision, and deny in an unattended turn', async t => {
  t.equal(
    await prose('permit Shell: may I\nsay $answer', {
      replies: [{ kind: 'permission', requestId: '0', decision: 'always' }],
    }),
    'always\n',
  )
  t.equal(await prose('permit Shell: may I\nsay $answer'), 'deny\n')
})

t.test('an unattended turn raises no card and continues', async t => {
  const { kinds, prose } = await play('ask Q\nplan P\npermit T: s\nsay on', { attended: false })
  t.notOk(kinds.some(kind => ['question', 'plan', 'permission'].includes(kind)))
  t.equal(prose, 'on\n')
})

t.test('an unsupported command is a failed tool call with a reason, and the script continues', async t => {
  const { log, prose } = await play('verdict done x\nneed key h\n| say no\nsay on')
  const calls = log.filter(frame => frame.kind === 'tool_call')
  const updates = log.filter(frame => frame.kind === 'tool_call_update')
  t.match(calls, exactly({ id: 'c1', name: 'Verdict', target: 'x' }, { id: 'c2', name: 'Need' }))
  t.match(
    updates,
    exactly(
      { id: 'c1', status: 'failed', content: exactly({ text: /^nobody asked this turn for a document/ }) },
      { id: 'c2' },
    ),
  )
  t.equal(prose, 'on\n')
})

t.test('messages steered into the turn arrive between commands and in wait words', async t => {
  t.equal(await prose('say first\nsay $words', { said: ['hello'] }), 'first\nhello\n')
  t.equal(await prose('say a\nwait words\nsay $words', { said: ['one', 'two'] }), 'a\none\ntwo\n')
  t.equal(await prose('wait words 0\nsay [$words]'), '[]\n')
})

t.test('expect, fail, refuse, outage and stop end the turn accordingly', async t => {
  t.match((await play('run x\nexpect ran\nexpect nope\nsay no')).log.at(-1), {
    kind: 'error',
    message: /expected "nope".*found "ran x"/,
  })
  t.match((await play('fail it broke\nsay no')).log.at(-1), { kind: 'error', message: 'it broke' })
  t.match((await play('refuse rate_limit enough')).log.at(-1), { kind: 'error', code: 'rate_limit', message: 'enough' })
  t.match((await play('outage')).log.at(-1), { kind: 'error', code: 'provider-outage' })
  t.match((await play('usage 7 8 0.5\nstop\nsay no')).log.at(-1), {
    kind: 'usage',
    inputTokens: 7,
    outputTokens: 8,
    costUsd: 0.5,
  })
})

t.test('call ids are unique in the run and name their command', async t => {
  const ids = (await play('read a\nrepeat 3 read b\nrun x')).find('tool_call').map(({ id }) => id)
  t.same(ids, ['c1', 'c2.1', 'c2.2', 'c2.3', 'c3'])
})

t.test('the time of ten thousand repeats grows linearly', async t => {
  const time = async (n: number) => {
    const before = performance.now()
    const world = await play(`repeat ${n} say a b c`)
    t.equal(world.find('text_end').length, n)
    return performance.now() - before
  }
  await time(500)
  const [short, long] = [await time(1000), await time(10_000)]
  t.ok(long < Math.max(short, 20) * 40, `${Math.round(short)} ms for 1000, ${Math.round(long)} ms for 10000`)
})

t.test('a very long word is cut into frames of limited size, never within a character', async t => {
  const { log, prose } = await play(`say ${'😀'.repeat(5000)}`)
  const texts = log.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : []))
  t.ok(texts.every(text => text.isWellFormed() && Buffer.byteLength(text) <= 8192))
  t.equal(prose, `${'😀'.repeat(5000)}\n`)
})

t.test('a stop ends every command of a script', async t => {
  for (const words of ['wait 60000', 'wait words', 'run x', 'ask Q', 'repeat 10000 say a', 'say a\nrun x']) {
    const world = new World({ words })
    const never = () => new Promise<never>(() => {})
    const io = { ...world.io(), waitWords: never, tool: never, raise: never }
    setTimeout(() => world.stop.abort(), 5)
    let last: Frame | undefined
    for await (const frame of scriptAdapter.run(world.request(1), io)) {
      last = frame
      if (words.startsWith('repeat')) await new Promise(resolve => setImmediate(resolve))
    }
    t.equal(last?.kind, 'usage', words)
  }
})
