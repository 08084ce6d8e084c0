/** Why a call was turned down, in the vocabulary callers may branch on. */
export type Reason =
  | 'invalid'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'conflict'
  | 'too-large'
  | 'unsupported'
  | 'range'
  | 'unprocessable'
  | 'dependency'
  | 'too-many'
  | 'failed'
  | 'missing-program'
  | 'unavailable'

/** The HTTP status of each reason (RFC 9110, section 15; 424 is RFC 4918, 429 is RFC 6585). */
export const STATUS: { readonly [reason in Reason]: number } = {
  invalid: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  conflict: 409,
  'too-large': 413,
  unsupported: 415,
  range: 416,
  unprocessable: 422,
  dependency: 424,
  'too-many': 429,
  failed: 500,
  'missing-program': 501,
  unavailable: 503,
}

/** One field that did not fit: where, what was expected, and what was found when that may be shown. */
export interface FieldError {
  path: string
  expected: string
  value?: string
}

/** What a refusal may carry beside its reason and sentence. */
export interface RefusalDetail {
  errors?: readonly FieldError[]
  /** Seconds after which asking again makes sense. */
  retryAfter?: number
  /** Fields that the call documents for its refusals, such as `hash` or `conflicts`. */
  fields?: { readonly [name: string]: unknown }
  cause?: unknown
}

/** The JSON body of every failure. */
export interface RefusalBody {
  message: string
  reason: Reason
  errors?: readonly FieldError[]
  [field: string]: unknown
}

/** The process, or the machine, has no free file descriptors. */
const SPENT = new Set(['EMFILE', 'ENFILE'])
const BUSY =
  'the sandbox has as many files and connections open as it may: nothing was changed; close some and ask again'
const UNEXPECTED = 'the sandbox failed to answer; its log says why'

/** A failure whose message is written for the caller. Anything else thrown is a bug and is answered as 500. */
export class Refusal extends Error {
  readonly reason: Reason
  readonly detail: RefusalDetail

  constructor(reason: Reason, message: string, detail: RefusalDetail = {}) {
    super(message, { cause: detail.cause })
    this.name = 'Refusal'
    this.reason = reason
    this.detail = detail
  }

  get status(): number {
    return STATUS[this.reason] ?? 500
  }

  get body(): RefusalBody {
    const { errors, fields } = this.detail
    return { message: this.message, reason: this.reason, ...(errors && { errors }), ...fields }
  }

  /**
   * The refusal itself, what the machine lacks for the moment, or the fixed sentence that hides a bug from callers and
   * keeps it as the cause.
   */
  static from(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    const spent = SPENT.has((error as { code?: string } | undefined)?.code ?? '')
    return spent
      ? new Refusal('unavailable', BUSY, { retryAfter: 1, cause: error })
      : new Refusal('failed', UNEXPECTED, { cause: error })
  }

  /** The refusal that a body sent by a daemon describes. */
  static parse({ message, reason, errors, ...fields }: RefusalBody): Refusal {
    return new Refusal(reason, message, { ...(errors && { errors }), fields })
  }
}

/** Turns a call down with a sentence for the caller: what was expected, what was found, what to do. */
export const refuse = (reason: Reason, message: string, detail?: RefusalDetail): never => {
  throw new Refusal(reason, message, detail)
}
