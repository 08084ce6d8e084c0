import t from 'tap'
import type { Frame } from '../../../../plugins/agent/contract.js'
import { daemonWith } from '../../../support/daemon.js'
import { exactly } from '../../../support/lists.js'
import { framesOf, runTurn } from '../../../support/turns.js'
import { add, vaultFake } from '../../capabilities/support.js'

const GROUPS = ['agent', 'agents', 'capabilities', 'settings']
const forge = (id: string) => ({ id, kind: 'cli', config: { provider: 'github', token: 'ghp-value-of-it' } }) as const
const said = (frames: readonly Frame[]): string =>
  frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join('')
const PROMPT = 'connect github To open the pull request.\nsay $out'

t.test('an agent has something connected: the person agrees, fills in the form, and the turn goes on', async t => {
  const daemon = await daemonWith(t, GROUPS, { fakes: vaultFake().fakes })
  const { client } = daemon
  await add(daemon, forge('older'))
  const { run } = await client.call('POST /agent', { conversationId: 'c', prompt: PROMPT, permissionMode: 'default' })
  const watched = framesOf(client, 'c', { run })
  const card = await watched.until(frame => frame.kind === 'capability_offer')
  t.match(card, { offer: { card: 'github', name: 'GitHub', why: 'To open the pull request.' } })
  await client.call('POST /agent/reply', { kind: 'capability_offer', requestId: card.requestId, connect: true })
  await add(daemon, { id: 'other', kind: 'cli', config: { provider: 'gitlab', token: 'glpat-value-of-it' } })
  await add(daemon, forge('mine'))
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(said(frames), /^GitHub is connected as mine/)
  t.match(
    frames.filter(({ kind }) => kind === 'capability_outcome'),
    exactly({ requestId: card.requestId, outcome: 'connected', id: 'mine' }),
  )
  t.notOk(
    frames.some(({ kind }) => kind === 'permission'),
    'the offer is the question: nobody is asked twice',
  )
})

t.test('what is not agreed to, not in the catalogue or seen by nobody is not waited for', async t => {
  const { client } = await daemonWith(t, GROUPS, { fakes: vaultFake().fakes })
  const { run } = await client.call('POST /agent', { conversationId: 'no', prompt: PROMPT })
  const watched = framesOf(client, 'no', { run })
  const { requestId } = await watched.until(frame => frame.kind === 'capability_offer')
  await client.call('POST /agent/reply', { kind: 'capability_offer', requestId, connect: false })
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(said(frames), /^the person does not want GitHub to be connected/)
  t.notOk(frames.some(({ kind }) => kind === 'capability_outcome'))
  const unknown = await runTurn(client, 'unknown', 'connect nothing Why not?\nsay $out')
  t.match(said(unknown), /there is no card nothing; expected one of .*github.*mcp/)
  const alone = await runTurn(client, 'alone', PROMPT, { unattended: true })
  t.match(said(alone), /nobody watches this turn/)
  t.notOk([...unknown, ...alone].some(({ kind }) => kind === 'capability_offer'))
})
