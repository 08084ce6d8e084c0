import t from 'tap'
import { refusalOf } from '../../kernel/auth/memory.js'
import { daemonWith } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { modelServer } from '../../support/servers/model-server.js'
import { runTurn } from '../../support/turns.js'
import { add } from '../capabilities/support.js'
import { filesWith, openVaultOf } from '../secrets/support.js'
import { itemIn } from './support.js'
import { toolServer } from './tool-server.js'

const VALUE = 'tr0ub4dor&3-and-more'
const GROUPS = [
  'approvals',
  'agent',
  'agents',
  'secrets',
  'activity',
  'settings',
  'safety',
  'capabilities',
  'workspace',
]

t.test('connections carry out what a person approved', async t => {
  const board = await toolServer(t, ['Post.Message', 'wipe'])
  const calls: object[] = []
  const model = await modelServer(t, 'openai', ({ text }) => {
    if (!text) return { status: 200, body: '{"data":[{"id":"m"}]}' }
    const input = calls.shift()
    return input ? { calls: [{ name: 'Board__Post_Message', input }] } : { text: ['Done.'] }
  })
  const endpoint = {
    ...{ id: 'local', label: 'Local', default: 'm', ready: true },
    models: [{ id: 'm', label: 'M', efforts: [], badges: [] }],
  }
  const daemon = await daemonWith(t, GROUPS, {
    fakes: { 'endpoints.choices': () => ({ endpoints: [endpoint] }), 'endpoints.target': () => model.target() },
  })
  const { client } = daemon
  await openVaultOf(daemon)
  await client.call('POST /secrets', { key: 'HOOK', value: VALUE })
  const connected = {
    id: 'Board',
    kind: 'mcp',
    config: { transport: 'http', url: board.url, denyTools: 'wipe' },
  } as const
  t.match((await add(daemon, connected)).at(-1), { kind: 'result', status: { state: 'active' } })
  const propose = (action: object = {}) =>
    client.call('POST /approvals', {
      kind: 'action',
      action: { key: 'board.post.message', summary: 'Say hello', args: { text: 'hello' }, ...action },
    })
  const approve = ({ id, digest }: { id: string; digest: string }) =>
    client.call('POST /approvals/{id}/approve', { id, digest })

  await t.test('the tool is called once, with the values of secrets, and the answer is kept', async t => {
    const item = await propose({ args: { text: 'hello', list: [{ token: '{{secret:HOOK}}' }] } })
    t.match(item, { via: 'executor', status: 'proposed' })
    t.equal(board.received.length, 0)
    await approve(item)
    t.match(await itemIn(client, item.id, 'done'), { result: 'posted as 17' })
    t.match(
      board.received.splice(0),
      exactly({
        name: 'Post.Message',
        arguments: { text: 'hello', list: exactly({ token: VALUE }) },
        _meta: { idempotencyKey: `${item.id}-1` },
      }),
    )
    t.same(filesWith(daemon.data, VALUE), [])
  })

  await t.test('what nothing carries out is said before the yes', async t => {
    for (const [action, problem] of [
      [{ key: 'board.wipe' }, /wipe of Board is withheld/],
      [{ key: 'board.fly' }, /Board has no tool fly/],
      [{ capability: 'nobody' }, /there is no connection "nobody"/],
      [{ key: 'chat.message.send' }, /no running extension has a tool chat.message.send/],
    ] as const) {
      const item = await propose(action)
      t.match(item, { via: 'nobody', problem })
      t.match(await refusalOf(() => approve(item)), { status: 424, message: problem })
    }
    t.equal(board.received.length, 0)
  })

  await t.test('a failure is told apart from what may have gone out, and neither is repeated', async t => {
    for (const [next, outcome, error] of [
      ['fail', 'failed', /the board is full/],
      ['cut', 'unknown', /it may have gone out/],
    ] as const) {
      board.state.next = next
      const item = await propose({ args: { text: next } })
      await approve(item)
      t.match((await itemIn(client, item.id, 'failed')).attempts, exactly({ outcome, error }))
      t.equal(board.received.splice(0).length, 1, next)
      board.state.next = 'answer'
      await approve(item)
      await itemIn(client, item.id, 'done')
      t.match(board.received.splice(0), exactly({ _meta: { idempotencyKey: `${item.id}-2` } }))
    }
  })

  await t.test('a held call of a turn is filed, and made on yes', async t => {
    await client.call('POST /settings/patch', { set: { actionRules: { 'board.post.message': 'hold' } } })
    calls.push({ text: 'from a turn' })
    const more = { agent: 'endpoint/local', model: 'm', permissionMode: 'bypassPermissions' } as const
    const frames = await runTurn(client, 'sends', 'go', more)
    t.match(JSON.stringify(frames), /waits for a person's yes as the approval a-/)
    t.equal(board.received.length, 0)
    const { approvals } = await client.call('GET /approvals', { conversationId: 'sends' })
    t.match(
      approvals,
      exactly({ action: { key: 'board.post.message', capability: 'Board', args: { text: 'from a turn' } } }),
    )
    await approve(approvals[0]!)
    await itemIn(client, approvals[0]!.id, 'done')
    t.match(board.received.splice(0), exactly({ arguments: { text: 'from a turn' } }))

    await client.call('POST /settings/patch', { set: { actionRules: { 'board.post.message': 'deny' } } })
    const denied = await propose()
    await approve(denied)
    t.match((await itemIn(client, denied.id, 'failed')).attempts, exactly({ error: /the settings deny it/ }))
    t.equal(board.received.length, 0)
  })

  await t.test('a list of what waits asks no server, and approving does', async t => {
    await client.call('POST /capabilities/{id}/rename', { id: 'Board', to: 'Desk' })
    const before = board.state.asked
    const item = await propose({ key: 'desk.post.message' })
    const { approvals } = await client.call('GET /approvals', {})
    t.match(
      approvals.find(({ id }) => id === item.id),
      { via: 'executor' },
    )
    t.equal(board.state.asked, before)
    await approve(item)
    await itemIn(client, item.id, 'done')
    t.match(board.received.splice(0), exactly({ name: 'Post.Message' }))
    const wrong = await propose({ key: 'desk.fly' })
    t.match(await refusalOf(() => approve(wrong)), { status: 424, message: /Desk has no tool fly/ })
  })
})
