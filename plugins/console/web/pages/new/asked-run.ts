import type { TurnInput } from '../../../../agent/contract.js'

/** What an agent is asked by a press of a button, in a conversation of its own or in a known one. */
export type AskedRun = Pick<
  TurnInput,
  'prompt' | 'title' | 'runRole' | 'errand' | 'outsideWake' | 'worktreeBase' | 'startIn' | 'conversationId'
>
