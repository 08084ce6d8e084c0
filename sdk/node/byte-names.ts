const FIRST = 0xdc00
const UNKNOWN = '\uFFFD'

/** The number of bytes of a character, by the first of them. */
const lengthOf = (first: number): number => (first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4)

/**
 * Names as text that keeps all of their bytes: one that is no part of UTF-8 becomes a lone surrogate, 0xDC00 more than
 * the byte.
 */
export const nameOfBytes = (bytes: Buffer): string => {
  const whole = bytes.toString()
  if (!whole.includes(UNKNOWN)) return whole
  let name = ''
  for (let at = 0; at < bytes.length;) {
    const character = bytes.subarray(at, at + lengthOf(bytes[at]!))
    const text = character.toString()
    const isText = Buffer.from(text).equals(character)
    name += isText ? text : String.fromCharCode(FIRST + bytes[at]!)
    at += isText ? character.length : 1
  }
  return name
}

/** Whether a character stands for a byte; no byte of ASCII, such as NUL, is hidden so. */
const isByte = (code: number): boolean => code >= FIRST + 0x80 && code <= FIRST + 0xff

/** The bytes of a name. */
export const bytesOfName = (name: string): Buffer =>
  name.isWellFormed()
    ? Buffer.from(name)
    : Buffer.concat(
        Array.from(name, character => {
          const code = character.charCodeAt(0)
          return isByte(code) ? Buffer.from([code - FIRST]) : Buffer.from(character)
        }),
      )

/** A path as file systems take it. */
export const bytePath = (path: string): string | Buffer => (path.isWellFormed() ? path : bytesOfName(path))

/** The fields of git's output with `-z`. */
export const outputFields = ({ stdout }: { readonly stdout: Buffer }): string[] => nameOfBytes(stdout).split('\0')

/** A name as people and clients see it: bytes that are not UTF-8 show as U+FFFD. */
export const shownName = (name: string): string => name.toWellFormed()
