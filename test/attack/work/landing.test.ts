import t from 'tap'
import type { Frame } from '../../../plugins/agent/contract.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { autoLands, isHeld, parked, worldOf, WRITES, type World } from './landing-world.js'

/**
 * Every way in which input of another person gets into work that lands automatically; each returns the run in which it
 * would.
 */
const WAYS: { readonly [way: string]: (world: World) => Promise<readonly Frame[]> } = {
  'a turn of theirs': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    return runTurn(other, 'c', WRITES)
  },
  'the turn of the owner after theirs': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', WRITES)
    return runTurn(owner, 'c', 'write later.txt\n| x')
  },
  'the turn of the owner after theirs, told to land': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', WRITES)
    return runTurn(owner, 'c', 'say thanks', { autoLand: true })
  },
  'the turn of the owner after one of theirs that failed': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', `${WRITES}\nfail no`)
    return runTurn(owner, 'c', 'say on')
  },
  'words said into the turn of the owner': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    const run = await parked(owner, 'c')
    await run.answer(owner)
    await other.call('POST /agent', { conversationId: 'c', prompt: 'theirs' })
    return run.all()
  },
  'words by steering': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    const run = await parked(owner, 'c')
    await other.call('POST /agent/steer', { conversationId: 'c', text: 'theirs' })
    await run.answer(owner)
    return run.all()
  },
  'a message that waited': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    const run = await parked(owner, 'c')
    const { run: next, delivery } = await other.call('POST /agent', { conversationId: 'c', prompt: WRITES })
    if (delivery !== 'queued') throw new Error(`expected it to wait, found ${delivery}`)
    await owner.call('POST /agent/steer', { conversationId: 'c', text: 'mine' })
    await owner.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: false })
    await run.answer(owner)
    await run.all()
    await owner.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
    return (await framesOf(owner, 'c', { run: next }).all()).map(({ event }) => event)
  },
  'an answer to a card': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    const run = await parked(owner, 'c')
    await run.answer(other)
    await owner.call('POST /agent/steer', { conversationId: 'c', text: 'mine' })
    return run.all()
  },
  'a conversation of theirs that the owner lets land': async ({ owner, other }) => {
    await runTurn(other, 'c', WRITES, { isolated: true })
    await owner.call('POST /agents/{id}/auto-land', { id: 'c', autoLand: true })
    return runTurn(owner, 'c', 'say on')
  },
  'a fork of it with the files of then': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', WRITES)
    await runTurn(owner, 'c', 'say on', { autoLand: false })
    const { messages } = await owner.call('GET /agents/{id}/transcript', { id: 'c' })
    const keep = messages.findLastIndex(({ role }) => role === 'user')
    return runTurn(owner, 'fork', 'say x', { forkOf: { conversationId: 'c', keep, files: 'then' }, autoLand: true })
  },
  'a fork of the fork, of its words alone': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', 'say theirs')
    await runTurn(owner, 'fork', 'say x', { forkOf: { conversationId: 'c', keep: 4, files: 'now' } })
    return runTurn(owner, 'again', 'write later.txt\n| x', {
      forkOf: { conversationId: 'fork', keep: 5, files: 'now' },
      isolated: true,
      autoLand: true,
    })
  },
  'the record of a conversation that is gone': async ({ owner, other }) => {
    await autoLands(owner, 'c')
    await runTurn(other, 'c', 'say theirs')
    await owner.call('POST /agents/{id}/discard', { id: 'c' })
    return runTurn(owner, 'c', 'write later.txt\n| x', { isolated: true, autoLand: true })
  },
  'a wake from outside, and the turn after it': async ({ owner }) => {
    await autoLands(owner, 'c')
    await runTurn(owner, 'c', WRITES, { outsideWake: 'webhook' })
    return runTurn(owner, 'c', 'say on')
  },
}

for (const [way, run] of Object.entries(WAYS)) {
  t.test(`work with input of a collaborator waits for a person: ${way}`, async t => {
    const world = await worldOf(t, 'collaborator')
    isHeld(t, world, await run(world), way)
  })
}

for (const way of ['a turn of theirs', 'the turn of the owner after theirs', 'an answer to a card']) {
  t.test(`work with input of a token without scope land waits for a person: ${way}`, async t => {
    const world = await worldOf(t, 'token')
    isHeld(t, world, await WAYS[way]!(world), way)
  })
}
