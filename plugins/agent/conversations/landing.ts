import { once } from 'node:events'
import type { CopyRepo, LandConflict } from '../contract.js'
import type { Conversations } from './conversations.js'
import type { Engine } from '../turn/engine.js'
import type { LandedFrame } from '../turn/frames.js'
import type { KeyedMutex } from '../../../sdk/node/keyed-mutex.js'

/** Holds a conversation's turn lock until whoever asked for it goes. */
export async function* locked(
  locks: KeyedMutex,
  conversationId: string,
  signal: AbortSignal,
): AsyncGenerator<{ held: true }, void> {
  const release = await locks.hold(conversationId, signal)
  try {
    yield { held: true }
    if (!signal.aborted) await once(signal, 'abort')
  } finally {
    release()
  }
}

/** What a landing did, as its group tells it. */
export interface Landing {
  readonly id: string
  readonly repos: CopyRepo[]
  readonly conflicts?: LandConflict[]
  readonly frame?: LandedFrame
  readonly settled?: string
}

/** Writes down what a landing did, and shows it in a live run. */
export const landed = async (
  deps: { engine: Engine; conversations: Conversations },
  landing: Landing,
): Promise<void> => {
  const { engine, conversations } = deps
  const { id, repos, conflicts, frame, settled } = landing
  const { repos: known, lastRun } = conversations.get(id)
  // A turn may have moved a base meanwhile: what it wrote about a repository stays, what the landing wrote is added.
  const merged = known.map(repo => {
    const told = repos.find(other => other.repo === repo.repo)
    return told ? { ...told, base: repo.base, ...(repo.pinned && { pinned: repo.pinned }) } : repo
  })
  const turn = engine.live(id)
  // Of what a turn did meanwhile, and of paths that were left behind, nobody has decided.
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
