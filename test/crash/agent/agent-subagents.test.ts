import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import type { Client } from '../../../sdk/client.js'
import { folderOf, makeWorkspace, spawnDaemon, type RunningDaemon } from '../../support/daemon.js'
import { exactly } from '../../support/lists.js'
import { framesOf } from '../../support/turns.js'

const LOST = 'interrupted by a restart'

/** Runs a script until a frame matches, ends the daemon there, and starts the next one on the same folders. */
const killed = async (
  t: Test,
  prompt: string,
  fits: (frame: Frame) => boolean,
  {
    goesOn = true,
    before = async (_: Client, _frames: readonly Frame[]) => {},
    end = (daemon: RunningDaemon): Promise<unknown> => daemon.kill9(),
  } = {},
) => {
  const folder = folderOf(t)
  const [workspace, data] = [join(folder, 'workspace'), join(folder, 'data')]
  makeWorkspace(workspace)
  mkdirSync(join(workspace, '.sandbox', 'config'), { recursive: true })
  writeFileSync(join(workspace, '.sandbox', 'config', 'settings.json'), JSON.stringify({ autoResumeOnRestart: goesOn }))
  const daemon = await spawnDaemon(t, { workspace, data })
  const { run } = await daemon.client.call('POST /agent', { conversationId: 'h', prompt })
  const watched = framesOf(daemon.once, 'h')
  await watched.until(fits)
  await before(
    daemon.client,
    watched.seen.map(({ event }) => event),
  )
  await end(daemon)
  await watched.all().catch(() => {})
  const next = await spawnDaemon(t, { workspace, data })
  return { next, run, frames: async () => (await framesOf(next.client, 'h', { run }).all()).map(({ event }) => event) }
}

const begun = (id: string) => (frame: Frame) =>
  frame.kind === 'tool_call_update' && frame.id === id && frame.status === 'in_progress'
const ends = (frames: readonly Frame[]) =>
  frames.flatMap(frame =>
    frame.kind === 'subagent_update' && frame.status && !['running', 'blocked'].includes(frame.status) ? [frame] : [],
  )
const textOf = (frames: readonly Frame[]) =>
  frames.flatMap(frame => (frame.kind === 'delta' && !frame.parentToolUseId ? [frame.text] : [])).join('')
const openCalls = (frames: readonly Frame[]) => {
  const open = new Set<string>()
  for (const frame of frames) {
    if (frame.kind === 'tool_call') open.add(frame.id)
    if (frame.kind === 'tool_call_update' && (frame.status === 'completed' || frame.status === 'failed'))
      open.delete(frame.id)
  }
  return [...open]
}

t.test('a subagent that ran during a kill has failed and is not repeated, and the script continues', async t => {
  const { next, frames: rest } = await killed(
    t,
    'helper works\n| run sleep 60\n| say no\nsay it said $out',
    begun('c1:c1'),
  )
  const frames = await rest()
  t.match(ends(frames), exactly({ id: 'c1', status: 'failed', error: LOST }))
  for (const id of ['c1', 'c1:c1'])
    t.match(
      frames.findLast(frame => frame.kind === 'tool_call_update' && frame.id === id),
      { status: 'failed', content: exactly({ text: LOST }) },
      id,
    )
  t.same(openCalls(frames), [])
  t.equal(textOf(frames), `it said ${LOST}`)
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  t.equal(frames.filter(({ kind }) => kind === 'subagent').length, 1)
  const { messages } = await next.client.call('GET /agents/{id}/transcript', { id: 'h' })
  t.match(
    messages[1]?.tools,
    exactly({ id: 'c1', status: 'failed', children: exactly({ id: 'c1:c1', status: 'failed' }) }),
  )
})

t.test('background subagents have failed after a restart, and join reports it', async t => {
  const { frames: rest } = await killed(
    t,
    'helper& one\n| helper two\n| | run sleep 60\nwait 1500\njoin\nsay $out',
    begun('c1:c1:c1'),
  )
  const frames = await rest()
  t.match(
    ends(frames),
    exactly({ id: 'c1:c1', status: 'failed', error: LOST }, { id: 'c1', status: 'failed', error: LOST }),
  )
  t.same(openCalls(frames), [])
  t.equal(textOf(frames), `c1 (one): failed: ${LOST}`)
})

t.test('after a clean end the next start treats a subagent as after a kill', async t => {
  const { frames: rest } = await killed(t, 'helper works\n| run sleep 60\nsay it said $out', begun('c1:c1'), {
    end: daemon => daemon.terminate(),
  })
  const frames = await rest()
  t.match(ends(frames), exactly({ id: 'c1', status: 'failed', error: LOST }))
  t.same(openCalls(frames), [])
  t.equal(textOf(frames), `it said ${LOST}`)
})

t.test('where turns do not resume, the subagent ends with its run', async t => {
  const { frames: rest } = await killed(t, 'helper works\n| wait 60000', ({ kind }) => kind === 'subagent', {
    goesOn: false,
  })
  const frames = await rest()
  t.match(ends(frames), exactly({ id: 'c1', status: 'failed', error: LOST }))
  t.same(openCalls(frames), [])
  t.match(frames.at(-1), { kind: 'done', reason: 'interrupted' })
})

/** Matches when both the turn and its subagent have asked. */
const bothAsked = () => {
  let questions = 0
  return (frame: Frame) => frame.kind === 'question' && ++questions === 2
}
const asked = (frames: readonly Frame[], question: string) =>
  frames.flatMap(frame =>
    frame.kind === 'question' && frame.questions[0]?.question === question ? [frame.requestId] : [],
  )[0]!
const answer = (client: Client, requestId: string, question: string, words: string) =>
  client.call('POST /agent/reply', { kind: 'question', requestId, answers: { [question]: words } })

t.test("a subagent's card from before the restart is withdrawn, and the turn's card is open again", async t => {
  const { next, run } = await killed(t, 'helper& asks\n| ask helper?\nask mine?\nsay $answer', bothAsked(), {
    goesOn: false,
  })
  const watched = framesOf(next.client, 'h', { run })
  await watched.until(({ kind }) => kind === 'notice')
  const before = watched.seen.map(({ event }) => event)
  t.match(await answer(next.client, asked(before, 'helper?'), 'helper?', 'late').catch(error => error), { status: 409 })
  await answer(next.client, asked(before, 'mine?'), 'mine?', 'yes')
  const frames = (await watched.all()).map(({ event }) => event)
  t.match(ends(frames), exactly({ id: 'c1', status: 'failed', error: LOST }))
  t.equal(textOf(frames), 'yes')
  for (const question of ['mine?', 'helper?']) {
    t.equal(
      frames.filter(event => event.kind === 'resolved' && event.requestId === asked(frames, question)).length,
      1,
      question,
    )
  }
})

t.test('an answer to a subagent does not count as the answer of the turn after a restart', async t => {
  const {
    next,
    run,
    frames: rest,
  } = await killed(t, 'helper& asks\n| ask same?\n| wait 60000\nask same?\nsay $answer', bothAsked(), {
    goesOn: false,
    before: async (client, frames) => {
      const theirs = frames.flatMap(frame =>
        frame.kind === 'question' && /\.h\d+$/.test(frame.requestId) ? [frame.requestId] : [],
      )[0]!
      await answer(client, theirs, 'same?', 'theirs')
    },
  })
  const watched = framesOf(next.client, 'h', { run })
  const mine = await watched.until(frame => frame.kind === 'question' && !/\.h\d+$/.test(frame.requestId))
  await answer(next.client, mine.requestId, 'same?', 'mine')
  t.equal(textOf(await rest()), 'mine')
})
