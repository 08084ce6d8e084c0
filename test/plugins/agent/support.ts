import type { Input, Reply } from '../../../sdk/contract.js'
import type { Api } from '../../../sdk/api.js'
import type { ConversationState, TranscriptPage } from '../../../plugins/agent/contract.js'
import type { Support } from '../../support/daemon.js'

const AS = {
  caller: { kind: 'plugin', actor: 'sandbox:test', role: 'owner' },
  signal: new AbortController().signal,
  trusted: true,
} as const

/** A call between groups, as the group agents makes it. */
export const inner = <C extends keyof Api & string>(
  { kernel }: Support,
  call: C,
  input: Input<Api, C>,
): Promise<Reply<Api, C>> => kernel.calls.answer(call, input, AS) as Promise<Reply<Api, C>>

/** A conversation with its live turn. */
export const state = (daemon: Support, id: string): Promise<ConversationState> =>
  inner(daemon, 'agent.conversation', { id })

/** A conversation's record. */
export const transcript = (daemon: Support, id: string): Promise<TranscriptPage> =>
  inner(daemon, 'GET /agents/{id}/transcript', { id })

/** The refusal of a call that must fail. */
export const refusal = async (call: Promise<unknown>): Promise<{ status?: number; message: string }> => {
  const answer = await call.then(
    value => value,
    (error: unknown) => error,
  )
  if (answer instanceof Error) return answer
  throw new Error(`expected a refusal, found ${JSON.stringify(answer)}`)
}
