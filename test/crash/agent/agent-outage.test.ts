import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly, spread } from '../../support/lists.js'
import { framesOf, runTurn } from '../../support/turns.js'

const WORK = 'append log.txt\n| once\noutage\nappend log.txt\n| after\nsay done'
/** The moments of kills, in milliseconds after the beginning of the step. */
const MOMENTS = [0, 4, 9, 15, 25, 40]

const folders = (t: Test) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(
    join(workspace, '.sandbox', 'config', 'settings.json'),
    '{"resumeAfterOutage":true,"autoResumeOnRestart":true}\n',
  )
  return { workspace, data }
}

/** Runs two other turns: the resumes that the first one triggers have begun when the second one has ended. */
const answered = async ({ client }: RunningDaemon): Promise<void> => {
  for (const words of ['say here', 'say here again']) await runTurn(client, 'other', words)
}

const events = (frames: readonly { event: Frame }[]): Frame[] => frames.map(({ event }) => event)

t.test('a planned resume survives a kill, and happens once', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'c', messageId: 'm', prompt: WORK })
  await framesOf(daemon.client, 'c').all()
  t.equal((await daemon.client.call('GET /agents/{id}', { id: 'c' })).status, 'resuming')
  await daemon.kill9()
  const second = await spawnDaemon(t, where)
  t.equal((await second.client.call('GET /agents/{id}', { id: 'c' })).status, 'resuming')
  await second.kill9()
  const third = await spawnDaemon(t, where)
  t.equal(
    (await third.client.call('POST /agent', { conversationId: 'c', messageId: 'm', prompt: WORK })).run,
    run,
    'the repeated message is recognised and cancels no resume',
  )
  await answered(third)
  const frames = events(await framesOf(third.client, 'c').all())
  t.match(
    [frames[0], frames.at(-1)],
    exactly({ kind: 'resumed', reason: 'outage', attempt: 2, resumedFrom: run }, { kind: 'done', reason: 'completed' }),
  )
  await third.kill9()
  const fourth = await spawnDaemon(t, where)
  await answered(fourth)
  t.equal(readFileSync(join(where.workspace, 'log.txt'), 'utf8'), 'once\nafter\n')
  const { messages } = await fourth.client.call('GET /agents/{id}/transcript', { id: 'c' })
  t.same(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'notice', 'notice', 'assistant', 'assistant'],
  )
  await fourth.terminate()
})

t.test('a cancelled resume stays cancelled after a kill', async t => {
  const where = folders(t)
  const daemon = await spawnDaemon(t, where)
  for (const id of ['stopped', 'message']) await runTurn(daemon.client, id, WORK)
  await daemon.client.call('POST /agent/stop', { conversationId: 'stopped' })
  await daemon.client.call('POST /agent', { conversationId: 'message', prompt: 'wait words 60000' })
  await daemon.kill9()
  const next = await spawnDaemon(t, where)
  await answered(next)
  const cards = await Promise.all(['stopped', 'message'].map(id => next.client.call('GET /agents/{id}', { id })))
  t.match(cards, exactly({ status: 'stopped' }, { status: 'running' }))
  t.equal(readFileSync(join(where.workspace, 'log.txt'), 'utf8'), 'once\nonce\n')
  await next.client.call('POST /agent/stop', { conversationId: 'message' })
  await next.terminate()
})

t.test(
  'a kill at any moment of the failing run, or of the start of the next, neither loses nor duplicates anything',
  async t => {
    const where = folders(t)
    let daemon = await spawnDaemon(t, where)
    const log = (id: string) => readFileSync(join(where.workspace, `${id}.txt`), 'utf8')
    for (const moment of spread(MOMENTS, 3)) {
      const ids = [`fails-${moment}`, `goes-on-${moment}`] as const
      const prompt = (id: string) => WORK.replaceAll('log.txt', `${id}.txt`)
      await runTurn(daemon.client, ids[1], prompt(ids[1]))
      await daemon.client.call('POST /agent', { conversationId: ids[0], prompt: prompt(ids[0]) })
      await delay(moment)
      const answers = runTurn(daemon.once, 'other', 'say here').catch(() => {})
      await delay(moment)
      await daemon.kill9()
      await answers
      daemon = await spawnDaemon(t, where)
      for (const id of ids) {
        // Until the provider answers, a failed turn waits, and a started one continues.
        await framesOf(daemon.client, id).all()
        await answered(daemon)
        const frames = events(await framesOf(daemon.client, id).all())
        t.match(frames.at(-1), { kind: 'done', reason: 'completed' }, `${id} ended well`)
        t.equal(log(id), 'once\nafter\n', `${id} did everything once`)
        const { messages } = await daemon.client.call('GET /agents/{id}/transcript', { id })
        t.equal(messages.filter(({ role }) => role === 'user').length, 1, `${id} has its words once`)
        t.equal(messages.filter(({ text }) => text.trim() === 'done').length, 1, `${id} said it once`)
      }
    }
    await daemon.terminate()
  },
)
