import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { Client } from '../../../sdk/client.js'
import type { Frame } from '../../../plugins/agent/contract.js'
import { daemonWith, type Support } from '../../support/daemon.js'
import { joined } from '../../support/joined.js'
import { framesOf, runTurn } from '../../support/turns.js'

const GROUPS = ['system', 'agent', 'agents']
export const WRITES = 'write theirs.txt\n| theirs'
const ASKS = 'write mine.txt\n| mine\nask Go on?\n| yes: on\nwait words 60000\nsay $words'

export interface World {
  readonly daemon: Support
  readonly owner: Client
  /** A client that may send messages but not land. */
  readonly other: Client
}

/** A conversation of the owner whose work lands automatically, and clients that may not land. */
export const worldOf = async (t: Test, who: 'collaborator' | 'token', where = {}): Promise<World> => {
  const daemon = await daemonWith(t, GROUPS, where)
  const other =
    who === 'collaborator'
      ? (await joined(daemon, 'cole', 'collaborator')).client
      : (await daemon.token('drive')).client
  return { daemon, owner: daemon.client, other }
}

export const autoLands = async (owner: Client, conversationId: string, first = 'say first') => {
  const frames = await runTurn(owner, conversationId, first, { isolated: true })
  await owner.call('POST /agents/{id}/auto-land', { id: conversationId, autoLand: true })
  return frames
}

/** A run of the owner that waits for an answer. */
export const parked = async (owner: Client, conversationId: string) => {
  await owner.call('POST /agent', { conversationId, prompt: ASKS })
  const watched = framesOf(owner, conversationId)
  const { requestId } = await watched.until(({ kind }) => kind === 'question')
  const answer = (client: Client) =>
    client.call('POST /agent/reply', { kind: 'question', requestId, answers: { 'Go on?': 'yes' } })
  return { watched, answer, all: async () => (await watched.all()).map(({ event }) => event) }
}

export const landings = (frames: readonly Frame[]) => frames.filter(({ kind }) => kind === 'landed')

export const isHeld = (t: Test, { daemon: { workspace } }: World, frames: readonly Frame[], why: string) => {
  t.match(frames.at(-1), { kind: 'done', reason: 'completed' }, why)
  t.same(landings(frames), [{ kind: 'landed', landed: false, held: true }], why)
  t.ok(
    frames.some(frame => frame.kind === 'notice' && /may not land.*POST \/agents\/\{id\}\/land/.test(frame.text)),
    `${why}: the run says so`,
  )
  for (const file of ['theirs.txt', 'mine.txt', 'later.txt'])
    t.notOk(existsSync(join(workspace, file)), `${why}: ${file} is not in the tree`)
}
