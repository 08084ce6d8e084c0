/** The first 32 bits of the fraction of a number. */
const fractionOf = (number: number): number => Math.floor((number % 1) * 2 ** 32)

const PRIMES = Array.from({ length: 310 }, (_, at) => at + 2).filter(number => {
  for (let by = 2; by * by <= number; by++) if (number % by === 0) return false
  return true
})
const FIRST = Uint32Array.from(PRIMES.slice(0, 8), prime => fractionOf(Math.sqrt(prime)))
const ROUNDS = Uint32Array.from(PRIMES.slice(0, 64), prime => fractionOf(Math.cbrt(prime)))

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

/** SHA-256 where the browser offers none: pages over plain HTTP have no `crypto.subtle`. */
export const plainSha256 = (bytes: Uint8Array): string => {
  const padded = new Uint8Array(((bytes.length + 72) >> 6) << 6)
  padded.set(bytes)
  padded[bytes.length] = 0x80
  const view = new DataView(padded.buffer)
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29))
  view.setUint32(padded.length - 4, bytes.length << 3)
  const sum = Uint32Array.from(FIRST)
  const words = new Uint32Array(64)
  for (let at = 0; at < padded.length; at += 64) {
    for (let i = 0; i < 16; i++) words[i] = view.getUint32(at + i * 4)
    for (let i = 16; i < 64; i++) {
      const [a, b] = [words[i - 15]!, words[i - 2]!]
      const [s0, s1] = [turned(a, 7) ^ turned(a, 18) ^ (a >>> 3), turned(b, 17) ^ turned(b, 19) ^ (b >>> 10)]
      words[i] = words[i - 16]! + s0 + words[i - 7]! + s1
    }
    let [a, b, c, d, e, f, g, h] = sum as unknown as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const s1 = turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)
      const one = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i]! + words[i]!) | 0
      const s0 = turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)
      const two = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      ;[h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0]
    }
    for (const [i, word] of [a, b, c, d, e, f, g, h].entries()) sum[i] = sum[i]! + word
  }
  return [...sum].map(word => word.toString(16).padStart(8, '0')).join('')
}

/** The SHA-256 of bytes as the daemon names it. */
export const sha256 = async (bytes: Uint8Array<ArrayBuffer>): Promise<string> => {
  if (!globalThis.crypto?.subtle) return plainSha256(bytes)
  return [...new Uint8Array(await crypto.subtle.digest('SHA-256', bytes))]
    .map(byte => byte.toString(16).padStart(2, '0'))
    .join('')
}
