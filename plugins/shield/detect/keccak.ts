const LANES = 25
const RATE = 136
const WORD = (1n << 64n) - 1n

const turned = (value: bigint, by: number): bigint => ((value << BigInt(by)) | (value >> BigInt(64 - by))) & WORD

/** The constants of the 24 rounds, from the feedback register of FIPS 202, section 3.2.5. */
const ROUNDS = (() => {
  let register = 1
  const bit = (): boolean => {
    const out = (register & 1) === 1
    register = register & 0x80 ? ((register << 1) ^ 0x171) & 0xff : register << 1
    return out
  }
  return Array.from({ length: 24 }, () => {
    let constant = 0n
    for (let at = 0; at < 7; at++) if (bit()) constant |= 1n << BigInt((1 << at) - 1)
    return constant
  })
})()

const permuted = (given: readonly bigint[]): bigint[] => {
  let state = [...given]
  for (const constant of ROUNDS) {
    const columns = Array.from({ length: 5 }, (_, x) => [0, 5, 10, 15, 20].reduce((sum, y) => sum ^ state[x + y]!, 0n))
    state = state.map((lane, at) => lane ^ columns[(at + 4) % 5]! ^ turned(columns[(at + 1) % 5]!, 1))
    let [x, y, moved] = [1, 0, state[1]!]
    for (let step = 0; step < 24; step++) {
      ;[x, y] = [y, (2 * x + 3 * y) % 5]
      const next = state[x + 5 * y]!
      state[x + 5 * y] = turned(moved, (((step + 1) * (step + 2)) / 2) % 64)
      moved = next
    }
    state = state.map((lane, at) => {
      const row = at - (at % 5)
      return lane ^ (~state[row + ((at + 1) % 5)]! & WORD & state[row + ((at + 2) % 5)]!)
    })
    state[0]! ^= constant
  }
  return state
}

/** The Keccak-256 hash that Ethereum uses, in hexadecimal digits; of texts shorter than 136 bytes. */
export const keccak256 = (text: string): string => {
  const block = Buffer.alloc(RATE)
  block.write(text)
  block[Buffer.byteLength(text)]! ^= 1
  block[RATE - 1]! ^= 0x80
  const state = Array.from({ length: LANES }, (_, at) => (at < RATE / 8 ? block.readBigUInt64LE(at * 8) : 0n))
  const hash = Buffer.alloc(32)
  permuted(state)
    .slice(0, 4)
    .forEach((lane, at) => hash.writeBigUInt64LE(lane, at * 8))
  return hash.toString('hex')
}
