import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import t from 'tap'
import { daemonWith } from './support/daemon.js'
import { spread } from './support/lists.js'
import { framesOf } from './support/turns.js'

const groups = globSync('manifests/*.json')
  .map(file => basename(file, '.json'))
  .filter(name => name !== 'schema')
  .sort()

const TOGETHER = 5

const count = Math.ceil(groups.length / TOGETHER)
/** Sets of groups: a daemon of this test has those of one set in processes of their own, and the others in its own. */
const sets = Array.from({ length: count }, (_, at) => groups.filter((_name, position) => position % count === at))

/** The main job, through every group: nothing in it may depend on which process a group runs in. */
for (const apart of [...spread(sets, 3), groups]) {
  const named = apart === groups ? 'each group' : apart.join(', ')
  t.test(`the main job runs with ${named} in a process of its own`, async t => {
    const daemon = await daemonWith(t, [], { apart })
    const info = await daemon.client.call('GET /info')
    t.ok(info.routes.includes('agents.land'))
    t.match(
      new Set(info.programs.map(({ name }) => name)),
      new Set(['bwrap', 'chromium', 'git', 'tmux']),
      'groups tell what programs they need',
    )
    const conversationId = 'apart'
    const started = await daemon.client.call('POST /agent', {
      conversationId,
      isolated: true,
      prompt: 'write made.txt\n| by an agent\nask Go on?\n| yes: go on\n| no: stop\nsay done',
    })
    const frames = framesOf(daemon.client, conversationId)
    const card = await frames.until(frame => frame.kind === 'question')
    await daemon.client.call('POST /agent/reply', {
      kind: 'question',
      requestId: card.requestId,
      answers: { 'Go on?': 'yes' },
    })
    const done = await frames.until(frame => frame.kind === 'done')
    t.match(done, { reason: 'completed' })
    t.equal((await daemon.client.call('GET /agents/{id}', { id: conversationId })).status, 'ready')
    t.match(await daemon.client.call('POST /agents/{id}/land', { id: conversationId }), { landed: true })
    t.equal(readFileSync(join(daemon.workspace, 'made.txt'), 'utf8'), 'by an agent\n')
    await t.rejects(daemon.client.call('POST /agent/reply', { kind: 'plan', requestId: 'none', approve: true }), {
      name: 'Refusal',
      reason: 'not-found',
    })
    await t.rejects(daemon.client.call('POST /agent', { prompt: '', conversationId }), {
      name: 'Refusal',
      reason: 'invalid',
    })
    const { client } = await daemon.token('drive')
    await t.rejects(client.call('POST /agents/{id}/land', { id: conversationId }), {
      reason: 'forbidden',
      message: /land/,
    })
    await t.rejects(client.call('POST /agent', { prompt: 'say x', agent: 'none' }), {
      name: 'Refusal',
      reason: 'unprocessable',
    })
    t.equal(started.delivery, 'started')
  })
}
