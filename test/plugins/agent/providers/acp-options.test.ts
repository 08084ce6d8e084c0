import type { SessionConfigOption } from '@agentclientprotocol/sdk'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { modeNamesOf } from '../../../../plugins/agent/providers/acp/known-programs.js'
import { settingPlan } from '../../../../plugins/agent/providers/acp/session-options.js'
import type { TurnRequest } from '../../../../plugins/agent/providers/adapter.js'
import { exactly } from '../../../support/lists.js'
import { noPeer, peerPath } from '../../../support/peers.js'
import { prose, world } from './acp-support.js'

const option = (id: string, category: string | undefined, currentValue: string, ...values: string[]) =>
  ({
    id,
    name: id,
    type: 'select',
    ...(category !== undefined && { category }),
    currentValue,
    options: values.map(value => ({ value, name: value })),
  }) as SessionConfigOption
const modes = (currentModeId: string, ...ids: string[]) => ({
  modes: { currentModeId, availableModes: ids.map(id => ({ id, name: id })) },
})

t.test('the settings of a session are those of its options, where it has them, and else its modes', t => {
  const turn = { mode: 'default', model: 'large', effort: 'high' } as const
  const options = [
    option('m', 'model', 'small', 'small', 'large'),
    option('mode', undefined, 'plan', 'plan', 'ask', 'yolo'),
    option('e', 'thought_level', 'low', 'low', 'high'),
    { id: 'x', name: 'x', type: 'boolean', category: 'mode', currentValue: true } as SessionConfigOption,
  ]
  t.same(settingPlan({ options, ...modes('now', 'now', 'plan', 'build') }, turn), {
    set: [
      { what: 'mode', option: 'mode', value: 'ask' },
      { what: 'model', option: 'm', value: 'large' },
      { what: 'effort', option: 'e', value: 'high' },
    ],
    missing: [],
  })
  t.same(settingPlan({ options: [], ...modes('a', 'a', 'plan', 'build') }, { mode: 'plan' }), {
    set: [{ what: 'mode', value: 'plan' }],
    missing: [],
  })
  t.same(settingPlan({ options: [], ...modes('plan', 'plan', 'own') }, { mode: 'default' }).set, [
    { what: 'mode', value: 'own' },
  ])
  t.end()
})

t.test("a program's own name of a mode is used where the program has it", t => {
  const codex = modeNamesOf('/opt/bin/codex-acp')
  const at = modes('agent', 'read-only', 'agent', 'agent-full-access')
  for (const mode of ['plan', 'default', 'acceptEdits', 'bypassPermissions'] as const)
    t.same(
      settingPlan({ options: [], ...at }, { mode, modeName: codex[mode]! }),
      { set: [{ what: 'mode', value: mode === 'bypassPermissions' ? 'agent-full-access' : 'read-only' }], missing: [] },
      mode,
    )
  t.same(settingPlan({ options: [], ...modes('a', 'a', 'build') }, { mode: 'plan', modeName: 'read-only' }).missing, [
    'mode',
  ])
  t.same(modeNamesOf('/opt/bin/other'), {})
  t.end()
})

t.test('what a session has already is not set, and what it lacks is named with its models', t => {
  const options = [option('m', 'model', 'large', 'small', 'large'), option('mode', 'mode', 'build', 'build')]
  t.same(settingPlan({ options }, { mode: 'default', model: 'large' }), { set: [], missing: [] })
  t.same(settingPlan({ options }, { mode: 'plan', model: 'huge', effort: 'high' }), {
    set: [],
    missing: ['mode', 'model', 'effort'],
    models: ['small', 'large'],
  })
  t.same(settingPlan({ options: [] }, { mode: 'acceptEdits' }), { set: [], missing: [] })
  t.end()
})

/** An agent program on a published version of the protocol's library; it keeps what is set in `set.txt`. */
const programOn = (library: string): string => `
import { appendFileSync } from 'node:fs'
import { Readable, Writable } from 'node:stream'
import { AgentSideConnection, ndJsonStream, PROTOCOL_VERSION } from ${JSON.stringify(library)}

const values = { model: ['small', 'large'], mode: ['plan', 'build'], thought_level: ['low', 'high'] }
const now = { model: 'small', mode: 'plan', thought_level: 'low' }
const kept = line => appendFileSync('set.txt', line + '\\n')
const modes = { currentModeId: 'plan', availableModes: values.mode.map(id => ({ id, name: id })) }
const configOptions = () => Object.entries(values).map(([id, own]) => ({
  id: 'the-' + id, category: id, name: id, type: 'select', currentValue: now[id],
  options: own.map(value => ({ value, name: value })),
}))

new AgentSideConnection(
  client => ({
    initialize: async () => ({ protocolVersion: PROTOCOL_VERSION, agentCapabilities: {} }),
    authenticate: async () => ({}),
    newSession: async () =>
      OPTIONS ? { sessionId: 's', configOptions: configOptions() } : { sessionId: 's', modes },
    setSessionMode: async ({ modeId }) => (kept('mode ' + modeId), {}),
    setSessionConfigOption: async ({ configId, value }) => {
      kept(configId + ' ' + value)
      now[configId.slice(4)] = value
      return { configOptions: configOptions() }
    },
    cancel: async () => {},
    prompt: async ({ sessionId }) => {
      const toolCall = { toolCallId: 't', title: 'Delete it', kind: 'delete', rawInput: { path: 'a.txt' } }
      await client.sessionUpdate({ sessionId, update: { sessionUpdate: 'tool_call', status: 'pending', ...toolCall } })
      const own = [
        { optionId: 'yes-please', name: 'Yes', kind: 'allow_once' },
        { optionId: 'not-now', name: 'No', kind: 'reject_once' },
      ]
      const { outcome } = await client.requestPermission({ sessionId, toolCall, options: own })
      const { content } = await client.readTextFile({ sessionId, path: process.cwd() + '/set.txt' })
      const text = outcome.optionId + ': ' + content.trim().replaceAll('\\n', ', ')
      await client.sessionUpdate({
        sessionId, update: { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } },
      })
      return { stopReason: 'end_turn' }
    },
  }),
  ndJsonStream(Writable.toWeb(process.stdout), Readable.toWeb(process.stdin)),
)
`

const VERSIONS: [library: string, hasOptions: boolean, set: readonly string[], unenforced: readonly string[]][] = [
  ['acp-sdk-0', false, ['mode build'], ['effort', 'mode']],
  ['acp-sdk-1', true, ['the-mode build', 'the-model large', 'the-thought_level high'], ['mode']],
]
for (const [library, hasOptions, set, unenforced] of VERSIONS) {
  const file = `${library}/dist/acp.js`
  t.test(
    `a program on ${library} is set as its turn wants, and asks with its own options`,
    { skip: noPeer(file) },
    async t => {
      const source = programOn(peerPath(file)).replace('OPTIONS', String(hasOptions))
      const { turn, root, gated } = world(t, source)
      const wanted: Partial<TurnRequest> = { model: hasOptions ? 'large' : 'test', effort: 'high' }
      const frames = await turn(wanted)
      t.equal(prose(frames), `yes-please: ${set.join(', ')}|`)
      t.same(readFileSync(join(root, 'set.txt'), 'utf8').trim().split('\n'), set)
      t.match(gated, exactly({ name: 'Delete', title: 'Delete it', path: 'a.txt' }, { name: 'Read', path: 'set.txt' }))
      const init = frames.find(frame => frame.kind === 'init')
      t.match(init, { model: wanted.model })
      t.same(init?.kind === 'init' && init.unenforced, unenforced)
    },
  )
}
