import { Refusal } from '../../../../sdk/index.js'
import { unlessAborted } from '../../../../sdk/node/concurrency/unless-aborted.js'
import type { Turn } from '../turn.js'
import type { TurnEnvironmentDeps } from './environment-deps.js'

/** How long a turn waits for its workspace to be saved. */
const MOST_MS = 20_000

/** Saves the state of the shared tree before a turn in it, so that its message can be rewound to. */
export const saveSharedState = async (
  { host, anchors, log }: Pick<TurnEnvironmentDeps, 'host' | 'anchors' | 'log'>,
  {
    conversationId,
    run,
    index,
    signal,
    log: frames,
  }: Pick<Turn, 'conversationId' | 'run' | 'index' | 'signal' | 'log'>,
  mostMs = MOST_MS,
): Promise<void> => {
  if (!(await host.serves('history.snapshot'))) return
  const order = { trigger: 'turn' as const, by: `conversation:${conversationId}`, conversationId }
  try {
    const late = AbortSignal.any([signal, AbortSignal.timeout(mostMs)])
    const { id, partial } = await unlessAborted(late, host.call('history.snapshot', order))
    // A point without the present files of a repository would take these back to an earlier state.
    if (id === undefined || partial) return
    await anchors.keep(conversationId, { id, run, index, repos: [], shared: true })
    frames.push({ kind: 'checkpoint', id, index })
  } catch (error) {
    signal.throwIfAborted()
    // The turn goes on: its message has no saved state, which a rewind says.
    log.warn('saving the shared tree before a turn failed', {
      conversation: conversationId,
      error: Refusal.from(error).message,
    })
  }
}
