import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { createClient } from '../../../sdk/client.js'
import { folderOf, makeWorkspace, root, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { misfits, OPERATIONS } from '../../support/schema.js'
import { framesOf, runTurn } from '../../support/turns.js'

const HOUR = 3_600_000
const DAY = 24 * HOUR

interface Clocked extends RunningDaemon {
  /** Sets the offset of the daemon's wall clock. */
  readonly set: (offset: number) => void
  readonly again: () => Promise<RunningDaemon>
}

const clocked = async (t: Test, offset = 0): Promise<Clocked> => {
  const folder = folderOf(t)
  const [workspace, data, file] = [join(folder, 'workspace'), join(folder, 'data'), join(folder, 'offset')]
  const set = (to: number): void => writeFileSync(file, String(to))
  makeWorkspace(workspace)
  set(offset)
  const env = {
    SANDBOX_TEST_CLOCK: file,
    NODE_OPTIONS: `--import ${pathToFileURL(join(root, 'test', 'attack', 'machine', 'clock.js')).href}`,
  }
  const again = () => spawnDaemon(t, { workspace, data, env })
  return { ...(await again()), set, again }
}

const statusOf = async (url: string, path: string, token: string): Promise<Response> =>
  fetch(url + path, { headers: { 'x-sandbox-control': token } })

t.test(
  'a rate limit ends although the clock is set back by days, and retry-after is never more than a minute',
  async t => {
    const { url, client, set } = await clocked(t)
    const { token } = await client.call('POST /system/control/tokens', { label: 'busy', scope: 'read' })
    const busy = async () =>
      (await Promise.all(Array.from({ length: 20 }, () => statusOf(url, '/agents', token)))).at(-1)!
    let answer = await busy()
    for (let round = 0; round < 80 && answer.status === 200; round++) answer = await busy()
    t.equal(answer.status, 429)
    t.ok(Number(answer.headers.get('retry-after')) <= 60)
    set(-3 * DAY)
    t.equal((await statusOf(url, '/agents', token)).status, 200, 'the credential is accepted again')
    for (let tries = 0; tries < 30; tries++) await statusOf(url, '/agents', 'sbc_wrong')
    t.equal((await statusOf(url, '/agents', 'sbc_wrong')).status, 429)
    set(-6 * DAY)
    t.equal((await statusOf(url, '/agents', 'sbc_wrong')).status, 401, 'the address is accepted again')
    const asked = async () => (await fetch(`${url}/system/sign-in`)).status
    for (let tries = 0; tries < 200 && (await asked()) === 200; tries++) continue
    set(-9 * DAY)
    t.equal(await asked(), 200)
  },
)

t.test('a credential expires when the clock is set forward, and its stream ends soon after', async t => {
  const { url, client, set } = await clocked(t)
  const { token } = await client.call('POST /system/control/tokens', {
    label: 'short',
    scope: 'read',
    expiresAt: Date.now() + HOUR,
  })
  const lasting = createClient({
    url,
    token: (await client.call('POST /system/control/tokens', { label: 'lasting', scope: 'land' })).token,
  })
  const stream = await statusOf(url, '/events', token)
  t.equal(stream.status, 200)
  const text = stream.text()
  set(2 * HOUR)
  t.equal((await statusOf(url, '/agents', token)).status, 401)
  const began = performance.now()
  t.match(await text, /event: error\ndata: .*expired/)
  t.ok(performance.now() - began < 15_000)
  set(-2 * DAY)
  t.equal((await lasting.call('GET /agents')).agents.length, 0, 'a token without an expiry is not affected')
  t.equal((await runTurn(lasting, 'back', 'say hello')).at(-1)?.kind, 'done')
})

t.test('events and waits are unaffected by the clock, and frames match the contract', async t => {
  const { url, client, set } = await clocked(t)
  const land = createClient({
    url,
    token: (await client.call('POST /system/control/tokens', { label: 'land', scope: 'land' })).token,
  })
  const attach = OPERATIONS.find(({ call }) => call === 'POST /agent/attach')!.responses['200']!.content![
    'text/event-stream'
  ]!.schema
  for (const [to, id] of [
    [-5 * DAY, 'back'],
    [5 * DAY, 'forth'],
  ] as const) {
    set(0)
    let settled = false
    // A heartbeat comes only where nothing else does, and ports of other programs of the machine may change.
    const lives = (async () => {
      for await (const event of await land.call('GET /events', {}))
        if (settled && (event.kind === 'heartbeat' || event.kind === 'runtimeChanged')) return event
      return undefined
    })()
    await land.call('POST /agent', {
      conversationId: id,
      prompt: 'say before\nwait 1500\nretry 2 100\nask more?\n| yes: of course\nsay after $answer',
    })
    const watched = framesOf(land, id)
    await watched.until(({ kind }) => kind === 'tool_call' || kind === 'text_end' || kind === 'delta')
    set(to)
    const began = performance.now()
    const { requestId } = await watched.until(({ kind }) => kind === 'question')
    t.ok(performance.now() - began < 10_000, 'the wait did not get longer')
    await land.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'more?': 'yes' } })
    const frames = await watched.all()
    t.match(frames.at(-1)?.event, { kind: 'done', reason: 'completed' })
    t.same(
      frames.flatMap(({ seq, event }) => misfits(attach, { event: 'message', data: { kind: 'frame', seq, event } })),
      [],
    )
    settled = true
    t.ok(await lives, 'the client gets events')
  }
})

t.test('a start years later or earlier restores the question, the queue, the token and the record', async t => {
  const daemon = await clocked(t)
  const { client, set } = daemon
  const { token } = await client.call('POST /system/control/tokens', { label: 'land', scope: 'land' })
  await runTurn(client, 'old', 'write kept.txt\n| kept\nsay kept', { isolated: true })
  await client.call('POST /agent', { conversationId: 'asks', prompt: 'ask still there?\n| yes: y\nsay went on' })
  await framesOf(client, 'asks').until(({ kind }) => kind === 'question')
  const later = { conversationId: 'asks', prompt: 'say later', messageId: 'm-later' } as const
  const first = await client.call('POST /agent', later)
  await daemon.kill9()
  for (const offset of [400 * DAY, -400 * DAY]) {
    set(offset)
    const next = await daemon.again()
    const land = createClient({ url: next.url, token })
    const card = await land.call('GET /agents/{id}', { id: 'asks' })
    t.match(card, { status: 'awaiting', waiting: 1, cards: exactly({ kind: 'question' }) })
    t.equal((await land.call('GET /agents/{id}/transcript', { id: 'old' })).messages.length > 0, true)
    t.equal((await land.call('GET /agents/{id}/diff', { id: 'old' })).repos.length, 1)
    t.same((await land.call('POST /agent', later)).run, first.run, 'a message sent again is not run twice')
    await next.kill9()
  }
  set(0)
  const last = await daemon.again()
  const land = createClient({ url: last.url, token })
  const { cards } = await land.call('GET /agents/{id}', { id: 'asks' })
  await land.call('POST /agent/reply', {
    kind: 'question',
    requestId: cards![0]!.requestId,
    answers: { 'still there?': 'yes' },
  })
  t.match((await framesOf(land, 'asks', { run: first.run }).all()).at(-1)?.event, {
    kind: 'done',
    reason: 'completed',
  })
})
