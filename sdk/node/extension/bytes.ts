import { refuse } from '../../refusal.js'

/** Bytes from a backend; refuses other values. */
export const bytesGiven = (field: string, value: unknown): Uint8Array =>
  value instanceof Uint8Array ? value : refuse('invalid', `${field}: expected bytes, found another value`)

/** Text or bytes from a backend; refuses other values. */
export const textOrBytes = (field: string, value: unknown): string | Uint8Array =>
  typeof value === 'string' ? value : bytesGiven(field, value)
