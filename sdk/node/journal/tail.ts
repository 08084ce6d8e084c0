const SMALLEST = 4 * 1024
const LARGEST = 64 * 1024

interface Segment {
  readonly at: number
  readonly bytes: Buffer
  used: number
  /** The last slice returned, and its start. */
  shared?: { readonly from: number; readonly bytes: Buffer }
}

/** The last bytes of a journal, encoded once and shared by all its watchers. */
export class Tail {
  readonly #limit: number
  readonly #segments: Segment[] = []
  #end: number
  #held = 0

  constructor(limit: number, end: number) {
    this.#limit = limit
    this.#end = end
  }

  /** Appends encoded text. */
  add(text: string): Buffer {
    const length = Buffer.byteLength(text)
    const last = this.#segments.at(-1)
    const segment = last && last.bytes.length - last.used >= length ? last : this.#grow(length, last?.bytes.length ?? 0)
    const start = segment.used
    segment.bytes.write(text, start)
    segment.used += length
    this.#end += length
    return segment.bytes.subarray(start, segment.used)
  }

  /** Truncates at an offset. */
  cut(end: number): void {
    for (let last = this.#segments.at(-1); last && last.at + last.used > end; last = this.#segments.at(-1)) {
      last.used = Math.max(0, end - last.at)
      if (last.used > 0) break
      this.#segments.pop()
      this.#held -= last.bytes.length
    }
    this.#end = end
  }

  /** Drops the oldest bytes beyond the limit. */
  trim(): void {
    while (this.#held > this.#limit) this.#drop()
  }

  clear(): void {
    while (this.#segments.length > 0) this.#drop()
  }

  /** The bytes from an offset to the end of their segment; watchers at the same offset share one object. */
  slice(at: number): Buffer | undefined {
    const first = this.#segments[0]
    if (!first || at < first.at || at >= this.#end) return
    const segment = this.#segmentAt(at)
    if (!segment) return
    const from = at - segment.at
    const { shared } = segment
    if (shared?.from === from && from + shared.bytes.length === segment.used) return shared.bytes
    const bytes = segment.bytes.subarray(from, segment.used)
    segment.shared = { from, bytes }
    return bytes
  }

  #segmentAt(at: number): Segment | undefined {
    let low = 0
    let high = this.#segments.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((this.#segments[middle]?.at ?? 0) <= at) low = middle
      else high = middle - 1
    }
    return this.#segments[low]
  }

  #grow(length: number, before: number): Segment {
    const size = Math.max(length, Math.min(LARGEST, Math.max(SMALLEST, before * 2)))
    const segment: Segment = { at: this.#end, bytes: Buffer.allocUnsafeSlow(size), used: 0 }
    this.#segments.push(segment)
    this.#held += size
    return segment
  }

  #drop(): void {
    this.#held -= this.#segments.shift()?.bytes.length ?? this.#held
  }
}
