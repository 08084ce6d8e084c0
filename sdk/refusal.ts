/** The kind of a refusal, for callers to branch on. */
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

/** One invalid field: its path, what was expected, and the found value unless it is secret. */
export interface FieldError {
  path: string
  expected: string
  value?: string
}

/** Details of a refusal besides reason and message. */
export interface RefusalDetail {
  errors?: readonly FieldError[]
  /** Seconds to wait before a retry. */
  retryAfter?: number
  /** Further headers of the answer. */
  headers?: { readonly [name: string]: string }
  /** Further fields of the body that the call documents, such as `hash` or `conflicts`. */
  fields?: { readonly [name: string]: unknown }
  cause?: unknown
}

/** The JSON body of every error answer. */
export interface RefusalBody {
  message: string
  reason: Reason
  errors?: readonly FieldError[]
  [field: string]: unknown
}

/** Errors of a process or machine without free file descriptors. */
const SPENT = new Set(['EMFILE', 'ENFILE'])
const BUSY =
  'the sandbox has reached its limit of open files and connections; nothing was changed; close some and retry'
const UNEXPECTED = 'the sandbox failed to answer; its log says why'

/** An error whose message is for the caller. Any other error is a bug and is answered with 500. */
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
   * Converts any error: a refusal stays as it is, a lack of file descriptors becomes 503, and anything else becomes 500
   * with a fixed message and the error as cause.
   */
  static from(error: unknown): Refusal {
    if (error instanceof Refusal) return error
    const spent = SPENT.has((error as { code?: string } | undefined)?.code ?? '')
    return spent
      ? new Refusal('unavailable', BUSY, { retryAfter: 1, cause: error })
      : new Refusal('failed', UNEXPECTED, { cause: error })
  }

  /** Parses the body of an error answer. */
  static parse({ message, reason, errors, ...fields }: RefusalBody): Refusal {
    return new Refusal(reason, message, { ...(errors && { errors }), fields })
  }
}

/** Refuses a call with a message for the caller: what was expected, what was found, what to do. */
export const refuse = (reason: Reason, message: string, detail?: RefusalDetail): never => {
  throw new Refusal(reason, message, detail)
}

/** The digest to approve powers with, from the refusal of an extension whose powers nobody approved. */
export const unapprovedDigest = (error: unknown): string | undefined => {
  const digest = error instanceof Refusal && error.reason === 'conflict' ? error.detail.fields?.digest : undefined
  return typeof digest === 'string' ? digest : undefined
}
