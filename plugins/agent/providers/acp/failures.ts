import type { TurnFailure } from '../adapter.js'
import type { ErrorCode } from '../../turn/frames/frames.js'
import { Crashed } from './crashed.js'
import { UNAUTHENTICATED } from './declined.js'
import { choiceField, fieldsOf } from './outside.js'
import { refusalIn } from './refusals.js'

const MOST_MESSAGE = 2000
const MOST_NAMED = 20
/** Error codes that a program may use. */
const CODES = ['script-syntax', 'unknown-command', 'model-invalid', 'context-full'] as const satisfies ErrorCode[]

const STOPS: { readonly [reason: string]: string } = {
  cancelled: 'stopped the turn by itself',
  refusal: 'refused to continue',
  max_tokens: 'reached its limit of tokens in a turn',
  max_turn_requests: 'reached its limit of requests in a turn',
}

/** Ends the turn of a program as failed. */
export class Failed extends Error {
  readonly failure: TurnFailure
  constructor(failure: TurnFailure) {
    super(failure.message)
    this.failure = failure
  }
}

/** A program ended its turn for another reason than that it is done. */
export const stoppedBy = (label: string, reason: string): Failed =>
  new Failed({
    message: `${label} ${Object.hasOwn(STOPS, reason) ? STOPS[reason] : 'stopped for a reason it does not name'}`,
  })

/** A program has other models than the one chosen. */
export const unknownModel = (label: string, model: string, models: readonly string[]): Failed =>
  new Failed({
    code: 'model-invalid',
    message:
      `${label} has no model ${JSON.stringify(model.slice(0, 120))}: expected one of `
      + `${models.slice(0, MOST_NAMED).join(', ')}${models.length > MOST_NAMED ? ', …' : ''}`,
  })

/** The failure of a program that is shown to people; undefined for a bug. */
export const failureOf = (label: string, error: unknown): TurnFailure | undefined => {
  if (error instanceof Failed) return error.failure
  if (error instanceof Crashed) return { code: 'harness-crashed', message: `${label} ${error.message}` }
  const { code, message, data, name } = error as { code?: unknown; message?: unknown; data?: unknown; name?: unknown }
  if (name !== 'RequestError' || typeof message !== 'string') return undefined
  const { code: named, details } = fieldsOf(data)
  const known = code === UNAUTHENTICATED ? ('reauth' as const) : choiceField(named, CODES)
  const said = [message || `${label} failed without saying why`, typeof details === 'string' ? details : '']
    .filter(Boolean)
    .join(': ')
  const refusal = known === undefined ? refusalIn(label, said) : undefined
  return refusal ?? { message: said.slice(0, MOST_MESSAGE).toWellFormed(), ...(known && { code: known }) }
}
