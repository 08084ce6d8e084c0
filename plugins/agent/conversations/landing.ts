import { once } from 'node:events'
import type { CopyRepo, HeldConversation, LandConflict } from '../contract.js'
import type { Copies } from '../copies/copies.js'
import type { Conversations } from './conversations.js'
import type { Engine } from '../turn/engine.js'
import type { LandedFrame } from '../turn/frames/frames.js'
import type { KeyedMutex } from '../../../sdk/node/concurrency/keyed-mutex.js'

/** The dependencies of the turn lock. */
export interface LockDeps {
  readonly locks: KeyedMutex
  readonly conversations: Pick<Conversations, 'get'>
  readonly copies: Pick<Copies, 'resolve'>
  readonly engine: Pick<Engine, 'state'>
}

/** Holds a conversation's turn lock until the signal is aborted; yields the conversation as read under the lock. */
export async function* locked(
  { locks, conversations, copies, engine }: LockDeps,
  id: string,
  signal: AbortSignal,
): AsyncGenerator<HeldConversation, void> {
  const release = await locks.hold(id, signal)
  try {
    const conversation = conversations.get(id)
    const repos = conversation.branch ? await copies.resolve(id, conversation.repos) : []
    yield { held: true, state: engine.state(conversations.get(id)), repos }
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    release()
  }
}

/** The result of a landing. */
export interface Landing {
  readonly id: string
  readonly repos: CopyRepo[]
  readonly conflicts?: LandConflict[]
  readonly frame?: LandedFrame
  readonly settled?: string
}

/** Records the result of a landing, and shows it in a live run. */
export const landed = async (
  deps: { engine: Engine; conversations: Conversations },
  landing: Landing,
): Promise<void> => {
  const { engine, conversations } = deps
  const { id, repos, conflicts, frame, settled } = landing
  const { repos: known, lastRun } = conversations.get(id)
  // A turn may have moved a base meanwhile: keeps that base and adds the landing's fields.
  const merged = known.map(repo => {
    const told = repos.find(other => other.repo === repo.repo)
    return told ? { ...told, base: repo.base, ...(repo.pinned && { pinned: repo.pinned }) } : repo
  })
  const turn = engine.live(id)
  // A landing does not approve the work of a turn that ran meanwhile, or skipped paths.
  const decided = frame?.landed && settled !== undefined && settled === lastRun && !turn
  const whole = decided && merged.every(({ left = [] }) => left.length === 0)
  await conversations.update(id, {
    repos: merged,
    conflicts: conflicts?.length ? conflicts : undefined,
    ...((frame || conflicts || repos.length > 0) && { updatedAt: Date.now() }),
    ...(!conflicts?.length && { landRequested: undefined }),
    ...(whole && { landsAlone: true }),
  })
  if (frame && turn && !turn.leaving) await turn.log.write(frame)
}
