import type { NewSessionResponse, StopReason } from '@agentclientprotocol/sdk'
import { Crashed } from './crashed.js'
import { countOf, fieldsOf } from './outside.js'
import type { SessionOptions } from './session-options.js'

const MOST_ID = 1024

/** The result of a prompt: why it stopped, and the usage, if the program reports it. */
export interface PromptEnd {
  readonly reason: StopReason
  readonly usage?: PromptUsage
}
/** Tokens of one prompt. */
export interface PromptUsage {
  readonly inputTokens: number
  readonly outputTokens: number
  readonly cacheReadTokens: number
  readonly cacheCreationTokens: number
}

/** An open session of a program, with what can be chosen in it. */
export interface ProgramSession extends SessionOptions {
  readonly id: string
}

/** The session that a program opened. */
export const sessionOf = (answer: NewSessionResponse): ProgramSession => {
  const { sessionId } = answer
  if (!sessionId || sessionId.length > MOST_ID)
    throw new Crashed(`opened a session without a name of at most ${MOST_ID} characters`)
  return { id: sessionId, ...sessionOptionsOf(answer) }
}

/** The options of a session; the library has validated the answer. */
export const sessionOptionsOf = (answer: unknown): SessionOptions => {
  const { modes, configOptions } = (answer ?? {}) as Partial<NewSessionResponse>
  return { options: configOptions ?? [], ...(modes && { modes }) }
}

/** The usage that a program reports with the end of a prompt. */
export const promptUsageOf = (value: unknown): PromptUsage | undefined => {
  const { inputTokens, outputTokens, cachedReadTokens, cachedWriteTokens } = fieldsOf(value)
  const [input, output] = [countOf(inputTokens), countOf(outputTokens)]
  if (input === undefined && output === undefined) return undefined
  return {
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cacheReadTokens: countOf(cachedReadTokens) ?? 0,
    cacheCreationTokens: countOf(cachedWriteTokens) ?? 0,
  }
}
