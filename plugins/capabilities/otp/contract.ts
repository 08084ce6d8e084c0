import type { Count } from '../../../sdk/types.js'
import type { CapabilityId } from '../records/contract.js'

/** A one-time code, and for how long it is good. */
export interface OneTimeCode {
  code: string
  secondsRemaining: Count
}

/** Codes of the second factor of a sign-in. */
export interface OneTimeCodeCalls {
  /**
   * Get one time-based code (RFC 6238) from the seed that a connection holds; the seed itself is never shown.
   *
   * A command of a turn makes it too, at `SANDBOX_DAEMON` with `SANDBOX_TURN_TOKEN` in `x-sandbox-turn`, for a
   * connection of its persona.
   *
   * The seed is plain base32, or an `otpauth://totp/` address that may also set algorithm, digits and period.
   *
   * - 403: the turn that asks may not use it
   * - 404: no such connection
   * - 409: it holds no seed, or one that no code can be made from
   * - 503: the store of secrets is locked
   */
  'GET /capabilities/{id}/otp'(input: { id: CapabilityId }): OneTimeCode
}
