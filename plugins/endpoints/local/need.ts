import type { ModelShape } from './contract.js'

const MIB = 1024 * 1024
const BYTES_PER_NUMBER = 2
/** Tokens whose results are held at once, in numbers of 32 bits. */
const WORK_PER_WORD = 2048
/** Windows that are offered. */
export const WINDOWS: readonly number[] = [4096, 8192, 16384, 32768, 65536, 131072, 262144]

/** The bytes that the keys and values of so many tokens take. */
export const cacheBytes = (shape: ModelShape, tokens: number): number => {
  const { blocks, kvHeads, keyLength, valueLength, slidingWindow, sliding = [], stateBytes = 0 } = shape
  let bytes = 0
  for (let layer = 0; layer < blocks; layer++) {
    const heads = Array.isArray(kvHeads) ? (kvHeads[layer] ?? 0) : kvHeads
    const seen = slidingWindow !== undefined && sliding[layer] ? Math.min(tokens, slidingWindow) : tokens
    bytes += heads > 0 ? (keyLength + valueLength) * heads * BYTES_PER_NUMBER * seen : stateBytes
  }
  return bytes
}

/** All bytes that a model takes with a window of so many tokens. */
export const neededBytes = (shape: ModelShape, weights: number, tokens: number): number =>
  weights + cacheBytes(shape, tokens) + 256 * MIB + WORK_PER_WORD * shape.vocabulary

/** The windows of a model up to what it was trained for; that one itself where it is smaller than all. */
export const windowsOf = ({ contextLength }: Pick<ModelShape, 'contextLength'>): number[] => {
  const within = WINDOWS.filter(tokens => tokens <= contextLength)
  return within.length > 0 ? within : [contextLength]
}
