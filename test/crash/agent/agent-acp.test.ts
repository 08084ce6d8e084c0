import { readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { folderOf, makeWorkspace, spawnDaemon } from '../../support/daemon.js'
import { framesOf, runTurn } from '../../support/turns.js'

/** The processes with a home folder in this data folder. */
const within = (data: string): string[] =>
  readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .filter(pid => {
      try {
        return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOME=${data}/`)
      } catch {
        return false
      }
    })

t.test('a killed daemon leaves no agent program behind, and the conversation continues with the next one', async t => {
  const folder = folderOf(t)
  const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
  makeWorkspace(where.workspace)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', {
    conversationId: 'k',
    prompt: 'run sleep 619',
    harness: 'vendor-code',
  })
  await framesOf(daemon.once, 'k').until(frame => frame.kind === 'tool_call_update' && frame.status === 'in_progress')
  await runTurn(daemon.client, 'waits', 'say x', { harness: 'vendor-code' })
  const copies = { harness: 'vendor-code', isolated: true } as const
  await runTurn(daemon.client, 'one', 'say x', copies)
  await daemon.client.call('POST /agent', { conversationId: 'two', prompt: 'say x\nwait 600000', ...copies })
  await framesOf(daemon.once, 'two').until(({ kind }) => kind === 'delta')
  t.ok(within(where.data).length >= 3)
  await daemon.kill9()
  for (let tries = 0; within(where.data).length > 0 && tries < 100; tries++) await delay(50)
  t.same(within(where.data), [])

  const next = await spawnDaemon(t, where)
  t.match((await framesOf(next.client, 'k', { run }).all()).at(-1)?.event, { kind: 'done', reason: 'interrupted' })
  for (const id of ['one', 'two'])
    t.match((await runTurn(next.client, id, 'say next')).at(-1), { kind: 'done', reason: 'completed' })
  const frames = await runTurn(next.client, 'k', 'say next')
  t.match(
    frames.find(({ kind }) => kind === 'init'),
    { harness: 'vendor-code' },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
})

t.test(
  'a card that a program waited for still exists after a kill, and the program is notified of the restart',
  async t => {
    const folder = folderOf(t)
    const where = { workspace: join(folder, 'workspace'), data: join(folder, 'data') }
    makeWorkspace(where.workspace)
    const daemon = await spawnDaemon(t, where)
    await daemon.client.call('POST /agent', {
      conversationId: 'p',
      prompt: 'run echo x',
      harness: 'vendor-code',
      permissionMode: 'default',
    })
    const { requestId } = await framesOf(daemon.once, 'p').until(({ kind }) => kind === 'permission')
    await daemon.kill9()
    const next = await spawnDaemon(t, where)
    const watched = framesOf(next.client, 'p')
    await next.client.call('POST /agent/reply', { kind: 'permission', requestId, decision: 'once' })
    const frames = (await watched.all()).map(({ event }) => event)
    t.match(frames.map(frame => (frame.kind === 'delta' ? frame.text : '')).join(''), 'The rest of the script was lost')
    t.match(frames.at(-1), { kind: 'done' })
  },
)
