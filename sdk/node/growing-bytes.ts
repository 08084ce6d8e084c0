/** Bytes that come piece by piece: a server that sends them one by one costs no more memory than what it sent. */
export class GrowingBytes {
  #room = Buffer.alloc(0)
  #size = 0

  get size(): number {
    return this.#size
  }

  get bytes(): Buffer {
    return this.#room.subarray(0, this.#size)
  }

  add(piece: Uint8Array): void {
    const needed = this.#size + piece.length
    if (needed > this.#room.length) {
      const room = Buffer.alloc(Math.max(needed, 2 * this.#room.length))
      room.set(this.bytes)
      this.#room = room
    }
    this.#room.set(piece, this.#size)
    this.#size = needed
  }
}
