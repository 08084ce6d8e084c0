import { createHash } from 'node:crypto'

/** The digits of a text as numbers. */
export const digitsOf = (text: string): number[] => [...text].flatMap(char => (/\d/.test(char) ? [Number(char)] : []))

/** The sum of digits, each times its weight. */
export const weighted = (digits: readonly number[], weights: readonly number[]): number =>
  weights.reduce((sum, weight, at) => sum + weight * (digits[at] ?? 0), 0)

/** Whether the last digit is right by the Luhn algorithm (ISO/IEC 7812-1). */
export const isLuhn = (digits: readonly number[]): boolean =>
  digits.toReversed().reduce((sum, digit, at) => {
    const doubled = at % 2 === 1 ? digit * 2 : digit
    return sum + (doubled > 9 ? doubled - 9 : doubled)
  }, 0)
    % 10
  === 0

/** The remainder of a number of any length, given in decimal digits. */
export const remainderOf = (digits: string, by: number): number => {
  let left = 0
  for (const digit of digits) left = (left * 10 + Number(digit)) % by
  return left
}

/** Whether letters and digits, with the check digits moved to the end, are 1 modulo 97 (ISO 7064). */
export const isMod97 = (moved: string): boolean =>
  remainderOf(
    moved.replace(/[A-Z]/g, letter => String(letter.charCodeAt(0) - 55)),
    97,
  ) === 1

/** Whether the last digit is right by ISO 7064, MOD 11,10. */
export const isMod1110 = (digits: readonly number[]): boolean => {
  let product = 10
  for (const digit of digits.slice(0, -1)) product = (((digit + product) % 10 || 10) * 2) % 11
  return (11 - product) % 10 === digits.at(-1)
}

const DIHEDRAL = [
  '0123456789',
  '1234067895',
  '2340178956',
  '3401289567',
  '4012395678',
  '5987604321',
  '6598710432',
  '7659821043',
  '8765932104',
  '9876543210',
]
const MOVES = [
  '0123456789',
  '1576283094',
  '5803796142',
  '8916043527',
  '9453126870',
  '4286573901',
  '2793806415',
  '7046913258',
]

/** Whether the last digit is right by the Verhoeff algorithm. */
export const isVerhoeff = (digits: readonly number[]): boolean =>
  digits.toReversed().reduce((check, digit, at) => Number(DIHEDRAL[check]![Number(MOVES[at % 8]![digit])]), 0) === 0

/** Whether two digits each are a month and a day that exists in some year. */
export const isDate = (month: number, day: number): boolean =>
  month >= 1 && month <= 12 && day >= 1 && day <= (month === 2 ? 29 : [4, 6, 9, 11].includes(month) ? 30 : 31)

const BASE58 = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'

/** Whether a text in base58 ends in the checksum of what is before (base58check). */
export const isBase58Check = (text: string): boolean => {
  let number = 0n
  for (const char of text) {
    const at = BASE58.indexOf(char)
    if (at < 0) return false
    number = number * 58n + BigInt(at)
  }
  const bytes = Buffer.from(number.toString(16).padStart(50, '0'), 'hex')
  if (bytes.length !== 25) return false
  const hash = createHash('sha256')
    .update(createHash('sha256').update(bytes.subarray(0, 21)).digest())
    .digest()
  return hash.subarray(0, 4).equals(bytes.subarray(21))
}

const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3]
const BECH32M = 0x2bc830a3

/** Whether an address has the checksum of bech32 or bech32m (BIP 173 and 350). */
export const isBech32 = (address: string): boolean => {
  const text = address.toLowerCase()
  const split = text.lastIndexOf('1')
  const prefix = [...text.slice(0, split)].map(char => char.charCodeAt(0))
  const values = [...text.slice(split + 1)].map(char => BECH32.indexOf(char))
  if (values.includes(-1)) return false
  let check = 1
  for (const value of [...prefix.map(code => code >> 5), 0, ...prefix.map(code => code & 31), ...values]) {
    const top = check >>> 25
    check = ((check & 0x1ffffff) << 5) ^ value
    for (const [bit, mask] of GENERATOR.entries()) if ((top >> bit) & 1) check ^= mask
  }
  return check === 1 || check === BECH32M
}
