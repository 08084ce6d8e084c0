/** The first 32 bits of the fractional parts of roots of primes (FIPS 180-4, 4.2.2 and 5.3.3). */
const fraction = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) | 0
const PRIMES = Array.from({ length: 312 }, (_, at) => at).filter(
  one => one > 1 && Array.from({ length: one - 2 }, (_, at) => at + 2).every(other => one % other !== 0),
)
const ROUNDS = Int32Array.from(PRIMES.slice(0, 64), prime => fraction(Math.cbrt(prime)))
const START = Int32Array.from(PRIMES.slice(0, 8), prime => fraction(Math.sqrt(prime)))
const BLOCK = 64

const turned = (word: number, by: number): number => (word >>> by) | (word << (32 - by))
const words = new Int32Array(64)

/** The state after one block (FIPS 180-4, 6.2.2). */
const compressed = (state: Int32Array, bytes: Uint8Array, from: number): Int32Array<ArrayBuffer> => {
  for (let at = 0; at < 16; at++) {
    const byte = from + at * 4
    words[at] = (bytes[byte]! << 24) | (bytes[byte + 1]! << 16) | (bytes[byte + 2]! << 8) | bytes[byte + 3]!
  }
  for (let at = 16; at < 64; at++) {
    const [early, late] = [words[at - 15]!, words[at - 2]!]
    const one = turned(early, 7) ^ turned(early, 18) ^ (early >>> 3)
    const two = turned(late, 17) ^ turned(late, 19) ^ (late >>> 10)
    words[at] = words[at - 16]! + one + words[at - 7]! + two
  }
  let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
  for (let at = 0; at < 64; at++) {
    const one = h + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + ((e & f) ^ (~e & g)) + ROUNDS[at]! + words[at]!
    const two = (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
    h = g
    g = f
    f = e
    e = (d + one) | 0
    d = c
    c = b
    b = a
    a = (one + two) | 0
  }
  return Int32Array.from([a, b, c, d, e, f, g, h], (after, at) => after + state[at]!)
}

/** Counts the zero bits with which the SHA-256 of salt and nonce begins; the browser's own needs a secure page. */
const counterOf = (salt: string): ((nonce: string) => number) => {
  const encoder = new TextEncoder()
  const head = encoder.encode(`${salt}:`)
  const whole = head.length - (head.length % BLOCK)
  let middle: Int32Array<ArrayBuffer> = START
  for (let at = 0; at < whole; at += BLOCK) middle = compressed(middle, head, at)
  const rest = head.subarray(whole)
  return nonce => {
    const end = encoder.encode(nonce)
    const length = rest.length + end.length
    const blocks = new Uint8Array(Math.ceil((length + 9) / BLOCK) * BLOCK)
    blocks.set(rest)
    blocks.set(end, rest.length)
    blocks[length] = 0x80
    new DataView(blocks.buffer).setUint32(blocks.length - 4, (whole + length) * 8)
    let state = middle
    for (let at = 0; at < blocks.length; at += BLOCK) state = compressed(state, blocks, at)
    return Math.clz32(state[0]!)
  }
}

/** How long the page waits for its puzzle at a stretch. */
const STRETCH_MS = 12

/** Solves a puzzle, in short stretches between which the page goes on; undefined: it was given up. */
export const solved = async (
  salt: string,
  difficulty: number,
  signal: AbortSignal,
  pause: () => Promise<unknown> = () => new Promise(resolve => setTimeout(resolve)),
): Promise<string | undefined> => {
  const zeroBits = counterOf(salt)
  for (let nonce = 0; ;) {
    const until = performance.now() + STRETCH_MS
    while (performance.now() < until)
      for (let many = 0; many < 50; many++, nonce++)
        if (zeroBits(nonce.toString(36)) >= difficulty) return `${salt}:${nonce.toString(36)}`
    if (signal.aborted) return undefined
    await pause()
  }
}
