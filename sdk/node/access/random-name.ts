import { randomBytes } from 'node:crypto'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz234567'

/** Random characters of base32, of 5 bits each. */
export const randomBase32 = (characters: number): string =>
  Array.from(randomBytes(characters), byte => ALPHABET[byte & 31]).join('')
