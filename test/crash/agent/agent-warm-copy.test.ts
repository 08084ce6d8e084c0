import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { onceIn } from '../../support/changes.js'
import { inGit, spawnDaemon, type RunningDaemon, type Support } from '../../support/daemon.js'
import type { Started } from '../../../plugins/agent/contract.js'
import { stuckProgram } from '../../support/stuck.js'
import { framesOf, runTurn } from '../../support/turns.js'
import { after, whereIn, type Where } from '../failpoints/failpoints.js'

const FILES = { 'a.txt': 'one\n', 'b.txt': 'one\n' }
const INPUT = { conversationId: 'c', messageId: 'm-c', isolated: true, prompt: 'append log.txt\n| once\nsay done' }

/** A workspace with a prepared commit, and a filter that blocks git forever once it is set. */
const placeIn = (t: Test) => {
  const { path, grants, reached } = stuckProgram(t)
  const where = whereIn(t, FILES, { wall: { write: [...grants.write] } })
  const { workspace } = where
  inGit(workspace, 'checkout', '-q', '-b', 'later')
  for (const name of ['a.txt', 'b.txt', 'new.txt']) writeFileSync(join(workspace, name), 'two\n')
  inGit(workspace, 'add', '-A')
  inGit(workspace, 'commit', '-qm', 'second')
  const later = inGit(workspace, 'rev-parse', 'HEAD').trim()
  inGit(workspace, 'checkout', '-q', 'main')
  mkdirSync(join(workspace, '.git/info'), { recursive: true })
  inGit(workspace, 'config', 'filter.f.smudge', path)
  return {
    where,
    later,
    // Not in the git folder itself: a change there would make the warm copy check the main line.
    stick: () => writeFileSync(join(workspace, '.git/info/attributes'), 'b.txt filter=f\n'),
    stuck: reached,
    loosen: () => void inGit(workspace, 'config', '--unset', 'filter.f.smudge'),
  }
}

const spareReady = async ({ client }: RunningDaemon, { data }: Where): Promise<void> => {
  await runTurn(client, 'w', 'say warm', { isolated: true })
  await onceIn(join(data, 'agent/made'), () => existsSync(join(data, 'agent/made/.spare.json')))
}

/** Checks that the conversation has done its message once, on the commit of the main line. */
const wholeOn = async (t: Test, { client, data, workspace }: Support, head: string) => {
  const { run } = await client.call('POST /agent', INPUT)
  const frames = (await framesOf(client, 'c', { run }).all()).map(({ event }) => event)
  t.match(
    frames.find(({ kind }) => kind === 'worktree'),
    { base: head },
  )
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' })
  const copy = join(data, 'agent/checkouts/c')
  t.same(
    ['a.txt', 'b.txt', 'new.txt', 'log.txt'].map(name => readFileSync(join(copy, name), 'utf8')),
    ['two\n', 'two\n', 'two\n', 'once\n'],
  )
  t.equal(inGit(copy, 'status', '--porcelain').trim(), '')
  t.equal(inGit(workspace, 'rev-parse', 'agent/c~1').trim(), head)
  t.equal(
    inGit(workspace, 'show', '--name-only', '--format=', 'agent/c').trim(),
    'log.txt',
    "the repository has the turn's work",
  )
}

t.test('after a kill during an update of the warm copy, the next daemon uses no incomplete copy', async t => {
  const { where, later, stick, stuck, loosen } = placeIn(t)
  const daemon = await spawnDaemon(t, where)
  await spareReady(daemon, where)
  stick()
  inGit(where.workspace, 'update-ref', 'refs/heads/main', later)
  // Changes the main checkout like a pull.
  inGit(where.workspace, 'reset', '-q')
  await stuck()
  t.notOk(existsSync(join(where.data, 'agent/made/.spare.json')), 'the update is incomplete')
  await daemon.kill9()
  loosen()
  await after(t, where, async next => {
    await wholeOn(t, next, later)
  })
})

/**
 * A message that is started while git blocks at a file of its copy. The warm copy may also update itself just
 * then: on a loaded machine it is sometimes first, and the case is tried again.
 */
const takenUp = async (
  t: Test,
  tries = 5,
): Promise<ReturnType<typeof placeIn> & { daemon: RunningDaemon; sent: Started }> => {
  const place = placeIn(t)
  const { where, later, stick, stuck, loosen } = place
  const daemon = await spawnDaemon(t, where)
  await spareReady(daemon, where)
  // The end of the turn changed the git folder: the warm copy checks the main line a quarter of a second later.
  await delay(1000)
  stick()
  // Changes only the ref, so that the warm copy has not been updated yet.
  writeFileSync(join(where.workspace, '.git/refs/heads/main'), `${later}\n`)
  const sent = await daemon.once.call('POST /agent', INPUT)
  await stuck()
  if (!existsSync(join(where.data, 'agent/checkouts/.spare')) || tries === 1) return { ...place, daemon, sent }
  await daemon.kill9()
  loosen()
  return takenUp(t, tries - 1)
}

t.test(
  'after a kill while the warm copy is updated for a message, the message is not lost and its copy is complete',
  async t => {
    const { where, later, loosen, daemon, sent } = await takenUp(t)
    t.notOk(existsSync(join(where.data, 'agent/checkouts/.spare')), 'the warm copy is used')
    t.notOk(existsSync(join(where.data, 'agent/made/c.json')), 'the new copy is not complete yet')
    await daemon.kill9()
    loosen()
    await after(t, where, async next => {
      t.same(await next.client.call('POST /agent', INPUT), sent)
      await wholeOn(t, next, later)
    })
  },
)
