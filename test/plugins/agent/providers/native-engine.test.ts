import t from 'tap'
import { nativeAdapter } from '../../../../plugins/agent/providers/native/native-adapter.js'
import { journalSessions } from '../../../../plugins/agent/providers/native/session.js'
import { tools } from '../../../../plugins/agent/tools/tools.js'
import type { Toolbox } from '../../../../plugins/agent/tools/toolbox.js'
import { journalsIn } from '../../../support/journals.js'
import { modelServer, type ScriptedReply, type SeenRequest } from '../../../support/servers/model-server.js'
import { engineOn } from '../turn/engine-support.js'
import { done } from './native-support.js'

/** The real tools as offered to a model; their calls are only counted. */
const counting = (): Toolbox & { readonly made: string[] } => {
  const made: string[] = []
  return {
    made,
    face: (name, input) => {
      const tool = tools[name]
      if (!tool) return { refused: `there is no tool ${name}` }
      return { category: tool.category, ...tool.describe(tool.check(input)) }
    },
    run: async (name, input) => {
      made.push(`${name} ${JSON.stringify(input)}`)
      return done(`did ${name}`)
    },
    stamp: async () => undefined,
    offered: async () =>
      Object.values(tools).map(tool => {
        const { name, description, input } = tool.schema()
        return { name, description, input: { ...input }, category: tool.category, readOnly: tool.category === 'read' }
      }),
    walled: () => Promise.reject(new Error('no programs')),
    shared: async () => undefined,
  }
}

const nativeEngine = async (t: Test, script: (request: SeenRequest, nth: number) => ScriptedReply) => {
  const server = await modelServer(t, 'openai', script)
  const journal = journalsIn(t)
  const toolbox = counting()
  const { run } = nativeAdapter(
    { id: 'test', label: 'Server', models: ['one'], target: async () => server.target() },
    { sessions: journalSessions(journal), again: { times: 2, firstMs: 5, mostMs: 5, longestMs: 100 } },
  )
  return { server, toolbox, ...engineOn(t, run, { journal, toolbox }) }
}
type Test = Parameters<typeof engineOn>[0]

t.test('two turns in the engine: real tools are offered, run through the gate, and remembered', async t => {
  const { send, engine, frames, server, toolbox, conversations } = await nativeEngine(t, (_, nth) =>
    nth === 0
      ? { text: ['Look.'], calls: [{ name: 'Read', input: { path: 'a.txt' } }], usage: { input: 5, output: 2 } }
      : { text: ['Done.'], usage: { input: 7, output: 3 } },
  )
  const { run } = await send({ prompt: 'first words' })
  await engine.live('c')!.ended
  const kinds = (await frames(run)).map(({ kind }) => kind)
  t.equal(kinds.at(-1), 'done')
  t.ok(kinds.includes('usage') && kinds.includes('tool_call'))
  t.strictSame(toolbox.made, ['Read {"path":"a.txt"}'])
  t.ok(server.body(0).tools!.length > 10)
  t.match(conversations.get('c'), { session: { id: 'native-c' }, lastEnd: 'completed' })
  await send({ prompt: 'second words' })
  await engine.live('c')!.ended
  t.ok(server.told(2).startsWith(server.told(1).slice(0, -1)), 'the second turn continues the session')
  t.match(server.told(2), /second words/)
})

t.test('in mode default a call waits for permission, and a refusal is sent to the model', async t => {
  const { send, engine, cards, server, toolbox } = await nativeEngine(t, (_, nth) =>
    nth === 0 ? { calls: [{ name: 'Shell', input: { command: 'rm -rf x' } }] } : { text: ['Then not.'] },
  )
  await send({ permissionMode: 'default' })
  const turn = engine.live('c')!
  while (turn.live.cards.length === 0) await new Promise(resolve => setTimeout(resolve, 5))
  const { requestId } = turn.live.cards[0]!
  await cards.reply(
    { kind: 'permission', requestId, decision: 'deny', feedback: 'too much' },
    { by: 'ada', lands: true },
  )
  await turn.ended
  t.strictSame(toolbox.made, [])
  t.match(server.told(1), /a person said no: too much/)
})

t.test('a stop in the middle of an answer ends the turn within a second, and keeps the received text', async t => {
  const { send, engine, frames } = await nativeEngine(t, () => ({
    text: Array.from({ length: 500 }, (_, n) => `w${n} `),
    everyMs: 10,
  }))
  const { run } = await send({})
  const turn = engine.live('c')!
  while (!(await frames(run)).some(frame => frame.kind === 'delta' && frame.text.includes('w3')))
    await new Promise(resolve => setTimeout(resolve, 5))
  const before = performance.now()
  await engine.stop('c')
  await turn.ended
  t.ok(performance.now() - before < 1000)
  const all = await frames(run)
  t.match(all.at(-1), { kind: 'done', reason: 'stopped' })
  t.ok(all.some(({ kind }) => kind === 'text_end'))
})
