import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import type { Frame } from '../../plugins/agent/contract.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../support/daemon.js'
import { framesOf } from '../support/turns.js'
import { spread } from '../support/lists.js'

const LINES = 12

/** Texts, waits and changes in turn, so that a kill can hit each of them. */
const SCRIPT = Array.from(
  { length: LINES },
  (_, line) => `append log.txt\n| line ${line}\nsay part ${line} of the work is done\nwait 15\n`,
).join('')

/** Writes the setting that resumes turns after a restart. */
const workspaceThatGoesOn = (workspace: string): void => {
  makeWorkspace(workspace)
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), '{"autoResumeOnRestart":true}\n')
}

/** The moments of kills, in milliseconds after the first message was acknowledged. */
const MOMENTS = [0, 5, 20, 45, 80, 120, 160, 210, 260, 320]

/** The frames that a watcher received until its stream was interrupted. */
const watch = (
  daemon: RunningDaemon,
  conversationId: string,
  run: string,
): { seen: { seq: number; event: Frame }[]; over: Promise<unknown> } => {
  const watched = framesOf(daemon.once, conversationId, { run })
  return { seen: watched.seen, over: watched.all().catch(() => {}) }
}

t.test('a kill at any moment of a turn neither loses nor duplicates anything acknowledged', async t => {
  const folder = folderOf(t)
  const workspace = join(folder, 'workspace')
  const data = join(folder, 'data')
  workspaceThatGoesOn(workspace)
  let daemon = await spawnDaemon(t, { workspace, data })
  for (const moment of spread(MOMENTS, 5)) {
    const conversationId = `killed-${moment}`
    const said = { conversationId, isolated: true, messageId: `first-${moment}`, prompt: SCRIPT }
    const first = await daemon.client.call('POST /agent', said)
    const before = watch(daemon, conversationId, first.run)
    const second = await daemon.client.call('POST /agent', {
      conversationId,
      messageId: `second-${moment}`,
      errand: 'verify-nudge',
      prompt: 'append log.txt\n| last\nsay all done',
    })
    await delay(moment)
    await daemon.kill9()
    await before.over
    daemon = await spawnDaemon(t, { workspace, data })

    t.same(
      await daemon.client.call('POST /agent', said),
      first,
      `${moment} ms: the repeated message gets its first answer`,
    )
    const after = await framesOf(daemon.client, conversationId, { run: second.run }).all()
    t.match(after.at(-1)?.event, { kind: 'done', reason: 'completed' }, `${moment} ms: the waiting message ran too`)
    const rows = (await daemon.client.call('GET /agents/{id}/transcript', { id: conversationId })).messages
    t.same(
      rows.filter(({ role }) => role === 'user').map(({ messageId }) => messageId),
      [`first-${moment}`, `second-${moment}`],
      `${moment} ms: each message exists once`,
    )
    const { repos } = await daemon.client.call('GET /agents/{id}/diff', { id: conversationId })
    t.same(
      repos[0]?.changes.map(({ path, additions }) => ({ path, additions })),
      [{ path: 'log.txt', additions: LINES + 1 }],
      `${moment} ms: every line is written once`,
    )
    const words = rows
      .filter(({ role, run }) => role === 'assistant' && run === first.run)
      .map(({ text }) => text.trim())
    t.same(
      words.filter(Boolean),
      Array.from({ length: LINES }, (_, line) => `part ${line} of the work is done`),
      `${moment} ms: every sentence appears once`,
    )
  }
  t.notMatch(readFileSync(join(workspace, 'README.md'), 'utf8'), 'line', 'the shared tree is unchanged')
  await daemon.terminate()
})

t.test('the frames that a watcher received before a kill are the same after it', async t => {
  const folder = folderOf(t)
  const workspace = join(folder, 'workspace')
  const data = join(folder, 'data')
  workspaceThatGoesOn(workspace)
  let daemon = await spawnDaemon(t, { workspace, data })
  for (const count of [1, 6, 14, 25]) {
    const conversationId = `seen-${count}`
    const { run } = await daemon.client.call('POST /agent', { conversationId, isolated: true, prompt: SCRIPT })
    const before = framesOf(daemon.once, conversationId, { run })
    await before.until(() => before.seen.length === count)
    await daemon.kill9()
    await before.all().catch(() => {})
    daemon = await spawnDaemon(t, { workspace, data })
    const after = await framesOf(daemon.client, conversationId, { run }).all()
    t.same(after.slice(0, before.seen.length), before.seen, `${before.seen.length} frames unchanged`)
    t.same(
      after.map(({ seq }) => seq),
      after.map((_, index) => index + 1),
      'positions have no gap',
    )
    t.ok(
      after.some(({ event }) => event.kind === 'resumed') || before.seen.at(-1)?.event.kind === 'done',
      'the same run continued',
    )
    t.equal(after.filter(({ event }) => event.kind === 'done').length, 1)
  }
  await daemon.terminate()
})
