import type { TurnIo } from '../adapter.js'
import type { Frame } from '../../turn/frames/frames.js'
import { AnswerReader, type ModelAnswer } from './answer.js'
import { endsInText } from './endings.js'
import { faultFrom, type ServerFault } from './faults.js'
import type { ModelCall, ServerModel, StreamPart } from '../../../../sdk/node/models/model-call.js'
import { failTurn, NativeOver } from './over.js'
import type { Spoken } from './spoken.js'
import { ignored } from '../../../../sdk/index.js'

/** How often and after which delays a failed request is repeated. */
export interface AskAgain {
  readonly times: number
  readonly firstMs: number
  readonly mostMs: number
  /** A longer `retry-after` than this is not waited for. */
  readonly longestMs: number
}

export const ASK_AGAIN: AskAgain = { times: 8, firstMs: 1000, mostMs: 60_000, longestMs: 600_000 }

/** A request to a model, and the receiver of its answer. */
export interface ModelAsking {
  readonly model: ServerModel
  readonly call: ModelCall
  readonly io: Pick<TurnIo, 'signal' | 'gap'>
  readonly spoken: Spoken
  readonly again: AskAgain
  /** Called with the received parts of an answer that a stop cut off. */
  readonly cut?: (parts: ModelAnswer['parts']) => Promise<void>
}

/**
 * Asks a model and yields frames of its answer; repeats the request after temporary failures. Ends the turn after the
 * last one; throws other refusals as `ServerFault`.
 */
export async function* askModel(asked: ModelAsking): AsyncGenerator<Frame, ModelAnswer> {
  const { io, spoken, again } = asked
  for (let attempt = 1; ; attempt++) {
    const reader = new AnswerReader(spoken)
    try {
      for await (const part of partsOf(asked)) yield* reader.read(part)
      // A server that ends twice without a word of it ends all its answers so.
      const answer = reader.whole(attempt > 1)
      if (endsInText(answer)) yield* spoken.tail()
      else yield* spoken.end()
      return answer
    } catch (error) {
      if (io.signal.aborted) {
        await asked.cut?.(reader.parts)
        throw new NativeOver('stopped')
      }
      const fault = faultFrom(error)
      const wait = waitBefore(attempt, fault, again)
      if (wait === undefined) throw fault
      const { status } = fault.details
      yield {
        kind: 'provider_retry',
        attempt,
        maxAttempts: again.times,
        nextAttemptAt: Date.now() + wait,
        ...(status !== undefined && { status }),
        message: fault.message,
      }
      spoken.restart()
      if (await io.gap(wait)) throw new NativeOver('moved')
      if (io.signal.aborted) throw new NativeOver('stopped')
    }
  }
}

/** How long to wait before the next attempt; undefined: there is none. */
const waitBefore = (attempt: number, { message, details }: ServerFault, again: AskAgain): number | undefined => {
  const { retryAfterMs, code } = details
  if (!details.again) return undefined
  const until = retryAfterMs === undefined ? undefined : Date.now() + retryAfterMs
  if (attempt > again.times) return failTurn(message, code, code === 'rate_limit' ? until : undefined)
  if (retryAfterMs !== undefined && retryAfterMs > again.longestMs) return failTurn(message, code, until)
  return Math.max(retryAfterMs ?? 0, Math.min(again.mostMs, again.firstMs * 2 ** (attempt - 1)))
}

/** The parts of a streamed answer; ends at once when the turn stops. */
async function* partsOf({ model, call, io: { signal } }: ModelAsking): AsyncGenerator<StreamPart> {
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(ignored('the caller that awaits it gets the failure'))
  const stop = () => reject(new NativeOver('stopped'))
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop, { once: true })
  const unwanted = new AbortController()
  let reader: ReadableStreamDefaultReader<StreamPart> | undefined
  try {
    const opened = model.doStream({ ...call, abortSignal: AbortSignal.any([signal, unwanted.signal]) })
    const { stream } = await Promise.race([opened, stopped])
    reader = stream.getReader()
    for (;;) {
      const { value, done } = await Promise.race([reader.read(), stopped])
      if (done) return
      yield value
    }
  } finally {
    signal.removeEventListener('abort', stop)
    // Ends the request of an answer that is not read to its end.
    unwanted.abort()
    void reader?.cancel().catch(ignored('the answer is not wanted any more'))
  }
}
