import { minted } from '../../minted.js'
import type { ErrorFrame, Frame, RunEnd } from '../frames/frames.js'
import type { Resumable, RunMessage } from '../run-entry.js'
import type { Turn } from '../turn.js'

/** Plans the resumes of runs that an outage ends. */
export interface OutagePlans {
  /** Adds to an outage error whether and when the turn is resumed; returns other frames unchanged. */
  told(turn: Turn, frame: Frame): Promise<Frame>
  /** Called when a turn has ended and is stored. */
  settled(turn: Turn, end: RunEnd): void
}

/** The timing of retries after an outage. */
export interface OutageTimes {
  /** The wait before each further try of a message; each is taken at half to one and a half of its length. */
  readonly delays: readonly number[]
  /** How long after its first outage a message is still tried again. */
  readonly mostMs: number
  /** How long a try that has not ended keeps other tries of its provider from starting. */
  readonly probeMs: number
  /** A number from 0 up to 1. */
  readonly random: () => number
}

/** The timing outside of tests. */
export const OUTAGE_TIMES: OutageTimes = {
  delays: [30_000, 60_000, 120_000, 300_000, 600_000, 1_200_000],
  mostMs: 3_600_000,
  probeMs: 120_000,
  random: Math.random,
}

/** The wait before the next try after `tries` tries. */
export const waitAfter = (tries: number, { delays, random }: OutageTimes): number =>
  Math.round((delays[tries] ?? 0) * (0.5 + random()))

/** Whether a message may be tried once more at a moment. */
export const mayResume = (tries: number, since: number, moment: number, { delays, mostMs }: OutageTimes): boolean =>
  tries < delays.length && moment - since < mostMs

/** The error by which an outage ends a run, saying whether and when the message is tried again. */
export const outageNotice = (
  error: ErrorFrame,
  { resumed }: RunMessage,
  armed: boolean,
  times: OutageTimes,
  now: number,
): ErrorFrame => {
  const { tries, since } = resumed ?? { tries: 0, since: now }
  if (!mayResume(tries, since, now, times)) return error
  if (!armed) return { ...error, autoResume: 'available' }
  const retryAt = now + waitAfter(tries, times)
  if (!mayResume(tries, since, retryAt, times)) return error
  return {
    ...error,
    autoResume: 'scheduled',
    outage: { retryAt, attempt: tries + 1, maxAttempts: times.delays.length },
  }
}

/** The provider choice of a run that was switched, as its message would have made it. */
const providerChoiceOf = ({ record, entry: { fields } }: Turn) =>
  record.switches ? { agent: fields.provider, harness: fields.harness, model: fields.model } : {}

/**
 * What can be resumed of a run that an outage ended; its frames tell, so that a crash in the middle of its end changes
 * nothing.
 */
export const resumableOf = (turn: Turn, now: number): Resumable => {
  const {
    message: { lands, ...message },
    run,
    record,
    entry,
    words,
  } = turn
  const { attempt, state, unheard = [], outsiders, tokens, round } = entry.fields
  const at = record.failure?.outage?.retryAt
  const failedAt = Math.min(now, at ?? now)
  const left = [
    ...unheard,
    ...words.left.filter(({ messageId }) => !unheard.some(other => other.messageId === messageId)),
  ]
  const { tries = 0, since = failedAt } = message.resumed ?? {}
  return {
    failedAt,
    ...(at !== undefined && { at }),
    message: {
      ...message,
      input: { ...message.input, ...providerChoiceOf(turn) },
      ...(lands && !outsiders && { lands }),
      ...(tokens && { from: 'token' as const }),
      run: minted('r'),
      resumed: {
        from: run,
        attempt: attempt + 1,
        tries: tries + 1,
        since,
        ...(state !== undefined && { state }),
        ...(round && { round }),
        ...(left.length > 0 && { unheard: left }),
      },
    },
  }
}
