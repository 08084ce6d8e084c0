import type { Files } from '../../../sdk/index.js'

const FILE = 'measured'
const MOST = 500
const MIB = 1024 * 1024

const keyOf = (weights: string, tokens: number): string => `${weights} ${tokens}`

/** The bytes of cache and work that servers of models reported when they had loaded, by file and window. */
export class LearnedSizes {
  readonly #files: Pick<Files, 'read' | 'write'>
  #known: Promise<Map<string, number>> | undefined

  constructor(files: Pick<Files, 'read' | 'write'>) {
    this.#files = files
  }

  async bytes(weights: string, tokens: number): Promise<number | undefined> {
    return (await this.#all()).get(keyOf(weights, tokens))
  }

  async learn(weights: string, tokens: number, bytes: number): Promise<void> {
    const known = await this.#all()
    if (known.get(keyOf(weights, tokens)) === bytes) return
    known.delete(keyOf(weights, tokens))
    known.set(keyOf(weights, tokens), bytes)
    await this.#files.write(FILE, Object.fromEntries([...known].slice(-MOST)))
  }

  #all(): Promise<Map<string, number>> {
    return (this.#known ??= this.#files
      .read<{ [key: string]: number }>(FILE)
      .then(stored => new Map(Object.entries(stored ?? {}))))
  }
}

/** The bytes of cache and work in what a server printed while it loaded; undefined while it named no cache. */
export const reportedBytes = (printed: string): number | undefined => {
  const sum = (pattern: RegExp) =>
    [...printed.matchAll(pattern)].reduce((bytes, [, size]) => bytes + Number(size) * MIB, 0)
  const cache = sum(/\bKV buffer size = +(\d+(?:\.\d+)?) MiB/g) + sum(/\bRS buffer size = +(\d+(?:\.\d+)?) MiB/g)
  return cache > 0 ? Math.round(cache + sum(/\bcompute buffer size = +(\d+(?:\.\d+)?) MiB/g)) : undefined
}
