import { CommandFailure, EXIT } from './verb.js'
import { Unreached } from '../client.js'
import { Refusal, type Reason } from '../refusal.js'
import { oneLine, plain } from './terminal/text.js'

/** What each exit code means, for every verb. */
export const EXIT_CODES: readonly (readonly [code: string, meaning: string])[] = [
  ['0', 'done: what was asked for is done, or is shown'],
  ['1', 'failed: the turn, a check or a program failed, or was not over in time; the message says why'],
  ['2', 'wrong use: a verb, argument, flag or value that does not fit; nothing was done'],
  ['3', 'no daemon: none runs, or it does not answer'],
  ['4', 'waits for a person: an answer, a yes or a sign-in is needed before it goes on'],
  ['5', 'refused: the sandbox or a person said no, or it does not exist; nothing was changed'],
  ['130', 'interrupted by Ctrl-C (129 by a closed terminal, 143 by SIGTERM)'],
]

/** The `reason` of a failure in JSON output, by exit code. */
const REASON: { readonly [code: number]: string } = {
  [EXIT.usage]: 'usage',
  [EXIT.noDaemon]: 'no-daemon',
  [EXIT.waits]: 'waits',
  [EXIT.refused]: 'refused',
}

/** Refusals that are no decision: the daemon, a program or another machine failed. */
const FAILURES: ReadonlySet<Reason> = new Set(['dependency', 'failed', 'missing-program', 'unavailable'])

const codeOf = (reason: Reason): number => {
  if (FAILURES.has(reason)) return EXIT.failed
  return reason === 'invalid' ? EXIT.usage : EXIT.refused
}

/** A failure as the exit code and the sentence that it ends with. */
export const exitFor = (error: unknown): { code: number; message: string; reason: string } => {
  if (error instanceof CommandFailure)
    return { code: error.code, message: error.message, reason: REASON[error.code] ?? 'failed' }
  if (error instanceof Unreached) return { code: EXIT.noDaemon, message: oneLine(error.message), reason: 'no-daemon' }
  if (error instanceof Refusal) {
    const { errors = [], retryAfter } = error.detail
    const fields = errors
      .slice(1)
      .map(({ path, expected }) => `; ${path}: expected ${expected}`)
      .join('')
    return {
      code: codeOf(error.reason),
      message: oneLine(`${error.message}${fields}${retryAfter === undefined ? '' : ` (ask again in ${retryAfter} s)`}`),
      reason: error.reason,
    }
  }
  const { message } = (error ?? {}) as { message?: string }
  return { code: EXIT.failed, message: plain(String(message ?? error).split('\n')[0]!), reason: 'failed' }
}

/** The exit code of a program that a signal ended. */
export const interrupted = (reason: unknown): number =>
  reason === 'SIGTERM' ? 143 : reason === 'SIGHUP' ? 129 : EXIT.interrupted
