import { Secret, TOTP, URI } from 'otpauth'
import type { OneTimeCode } from './contract.js'

/** The secret field of a connection that holds the seed of its one-time codes. */
export const SEED = 'otp'

/** What a seed has to be, for people. */
export const SEED_EXPECTED = 'expected base32 or an otpauth://totp/ address'

const ALGORITHMS: ReadonlySet<string> = new Set(['SHA1', 'SHA256', 'SHA512'])

/** The code generator of a seed; undefined: no code can be made from it. */
const generatorOf = (seed: string): TOTP | undefined => {
  try {
    const generator = /^otpauth:/i.test(seed.trim())
      ? URI.parse(seed.trim())
      : new TOTP({ secret: Secret.fromBase32(seed.replace(/[\s-]/g, '')) })
    const isUsable =
      generator instanceof TOTP
      && generator.secret.bytes.length > 0
      && ALGORITHMS.has(generator.algorithm)
      && generator.digits >= 6
      && generator.digits <= 8
    return isUsable ? generator : undefined
  } catch {
    return undefined
  }
}

/** Whether codes can be made from a seed. */
export const isSeed = (seed: string): boolean => generatorOf(seed) !== undefined

/** The code of a seed at a time in ms; undefined: no code can be made from it. */
export const codeAt = (seed: string, now: number): OneTimeCode | undefined => {
  const generator = generatorOf(seed)
  return (
    generator && {
      code: generator.generate({ timestamp: now }),
      secondsRemaining: Math.ceil(generator.remaining({ timestamp: now }) / 1000),
    }
  )
}
