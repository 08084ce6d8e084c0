import t from 'tap'
import { wallKind } from '../../../../sdk/node/wall/wall.js'
import { daemonWith } from '../../../support/daemon.js'
import { STARTER } from '../starter-program.js'
import { framesOf } from '../../../support/turns.js'

const skip = (await wallKind()) === 'none' ? 'this machine has no wall' : false

t.test('a program that starts its tool servers itself reaches the tools of the sandbox', { skip }, async t => {
  const { client } = await daemonWith(t, ['agent', 'agents'], {
    files: { 'agent.mjs': STARTER },
    fakes: {
      'capabilities.records': () => ({
        capabilities: [{ id: 'starter', kind: 'agent', label: 'Starter', config: {}, secrets: [] }],
      }),
      'capabilities.runtime': ({ id }) => ({ id, label: 'Starter', command: [process.execPath, 'agent.mjs'], env: {} }),
    },
  })
  await client.call('POST /agent', { conversationId: 'c', agent: 'agent/starter', isolated: true, prompt: 'go' })
  const frames = (await framesOf(client, 'c').all()).map(({ event }) => event)
  const prose = frames.flatMap(frame => (frame.kind === 'delta' ? [frame.text] : [])).join('')
  t.equal(prose, 'Ask Delegate Fetch Join Todo; false text')
  t.match(
    frames.find(({ kind }) => kind === 'tool_call'),
    { name: 'Todo' },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
})
