import t from 'tap'
import { CONTINUE, CUT_CALL, NOTHING_SAID } from '../../../../plugins/agent/providers/native/endings.js'
import { nativeSessionOf } from '../../../../plugins/agent/providers/native/session.js'
import { exactly } from '../../../support/lists.js'
import { modelServer } from '../../../support/servers/model-server.js'
import { nativeRun, NativeWorld } from './native-support.js'

const PROTOCOLS = ['openai', 'anthropic', 'ollama'] as const

for (const protocol of PROTOCOLS) {
  void t.test(`${protocol}: a text at the limit of tokens goes on in the next answer, as one text`, async t => {
    const server = await modelServer(t, protocol, [
      { text: ['The first ha'], finish: 'length' },
      { text: ['lf, and the se'], finish: 'length' },
      { text: ['cond.'] },
    ])
    const world = await nativeRun(server.target())
    t.equal(world.prose, 'The first half, and the second.\n')
    t.same(world.find('notice'), [])
    t.equal(server.requests.length, 3)
    t.match(JSON.stringify(server.body(1).messages?.at(-1)), CONTINUE)
    t.match(server.told(2), /The first ha.*Your answer was cut off.*lf, and the se.*Your answer was cut off/)
  })

  void t.test(`${protocol}: a text without end is given up after eight times, and people are told`, async t => {
    const server = await modelServer(t, protocol, [{ text: ['and so on '], finish: 'length' }])
    const world = await nativeRun(server.target())
    t.equal(server.requests.length, 9)
    t.match(world.find('notice'), exactly({ level: 'warning', text: /limit of tokens/ }))
    t.equal(world.prose, `${'and so on '.repeat(9)}\n`)
  })

  void t.test(`${protocol}: thoughts that fill an answer are continued once, and people are told`, async t => {
    const server = await modelServer(t, protocol, [{ thoughts: ['hm, and then '], finish: 'length' }])
    const world = await nativeRun(server.target())
    t.equal(server.requests.length, 2)
    t.match(world.find('notice'), exactly({ level: 'warning', text: /limit of tokens/ }))
    const twice = await modelServer(t, protocol, [
      { thoughts: ['hm'], finish: 'length' },
      { text: ['so it '], finish: 'length' },
      { text: ['is'], finish: 'length' },
      { text: ['.'] },
    ])
    t.equal((await nativeRun(twice.target())).prose, 'so it is.\n')
  })

  void t.test(`${protocol}: an empty answer is asked for once more`, async t => {
    const silent = await modelServer(t, protocol, [{}])
    t.match((await nativeRun(silent.target())).find('notice'), exactly({ text: 'the model sent an empty answer' }))
    t.equal(silent.requests.length, 2)
    const late = await modelServer(t, protocol, [{}, { text: ['done'] }])
    const world = await nativeRun(late.target())
    t.same([world.prose, world.find('notice')], ['done\n', []])
    t.match(JSON.stringify(late.body(1).messages?.at(-1)), NOTHING_SAID)
    const twice = await modelServer(t, protocol, [
      {},
      { calls: [{ name: 'Read', input: { path: 'a' } }] },
      {},
      { text: ['done'] },
    ])
    t.equal((await nativeRun(twice.target())).prose, 'done\n', 'once each time')
  })
}

for (const protocol of ['openai', 'anthropic'] as const)
  void t.test(`${protocol}: a call that the limit cut off is not made, and the model is told why`, async t => {
    for (const raw of ['{"path":"a","content":"lo', '{"path":"a"', '{', '']) {
      const calls = [
        { name: 'Read', input: { path: 'b' } },
        { name: 'Write', raw },
      ]
      const server = await modelServer(t, protocol, [{ calls, finish: 'length' }, { text: ['in parts then'] }])
      const world = await nativeRun(server.target())
      t.same(
        world.calls.map(({ name }) => name),
        ['Read'],
        JSON.stringify(raw),
      )
      t.ok(server.told(1).includes(CUT_CALL.slice(0, 60)))
      t.equal(world.prose, 'in parts then\n')
    }
    const whole = await modelServer(t, protocol, [
      { calls: [{ name: 'Write', input: { path: 'a', content: 'x' } }], finish: 'length' },
      { text: ['ok'] },
    ])
    t.equal((await nativeRun(whole.target())).calls.length, 1, 'a whole one is')
  })

void t.test('wherever a turn is killed, a text goes on once', async t => {
  const server = await modelServer(t, 'openai', ({ text }) =>
    text.includes('Your answer was cut off') ? { text: ['lf.'] } : { text: ['The first ha'], finish: 'length' },
  )
  const count = (await nativeRun(server.target())).steps
  t.ok(count > 6)
  for (let dieAt = 1; dieAt <= count; dieAt++) {
    const world = new NativeWorld({ target: server.target() })
    world.dieAt = dieAt
    await world.run()
    world.dieAt = Infinity
    await world.run(2)
    t.equal(world.prose.replaceAll('\n', ''), 'The first half.', `killed at step ${dieAt}`)
    const entries = (await world.sessions.read(nativeSessionOf('c-1'))) ?? []
    t.equal(entries.filter(entry => entry.kind === 'words' && entry.text === CONTINUE).length, 1)
  }
})
