import type { Test } from 'tap'
import type { Loop, LoopStart } from '../../../plugins/loops/contract.js'
import { daemonWith, type Support, type SupportOptions } from '../../support/daemon.js'
import { readUntil } from '../../support/changes.js'

/** A daemon with loops and what they use. */
export const loopsDaemon = (t: Test, options: SupportOptions = {}, more: readonly string[] = []): Promise<Support> =>
  daemonWith(t, ['loops', 'agent', 'agents', 'activity', 'settings', 'system', 'usage', ...more], options)

/** A loop in the shared tree with a check that never holds, unless a test says more about it. */
export const loopOf = (conversationId: string, more: Partial<LoopStart> = {}): LoopStart => ({
  conversationId,
  goal: 'The check holds.',
  prompt: 'say working',
  isolated: false,
  agent: 'script',
  context: 'continue',
  output: { kind: 'none' },
  checks: [{ kind: 'command', command: 'false' }],
  maxIterations: 5,
  stallLimit: 20,
  ...more,
})

/** The loop as it stands once something holds of it; looks again at every event of loops. */
export const loopUntil = (
  { client }: Pick<Support, 'client'>,
  conversationId: string,
  holds: (loop: Loop) => boolean,
): Promise<Loop> =>
  readUntil(client, 'loops', () => client.call('GET /loops/{conversationId}', { conversationId }), holds)

/** Waits until a loop has ended. */
export const loopEnd = (daemon: Pick<Support, 'client'>, conversationId: string): Promise<Loop> =>
  loopUntil(daemon, conversationId, ({ state }) => state !== 'running')

/** Runs a loop to its end. */
export const runLoop = async (
  daemon: Pick<Support, 'client'>,
  conversationId: string,
  more: Partial<LoopStart> = {},
): Promise<Loop> => {
  await daemon.client.call('POST /loops', loopOf(conversationId, more))
  return loopEnd(daemon, conversationId)
}
