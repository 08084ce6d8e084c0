import type { Frame } from '../../turn/frames/frames.js'

const ROOM = 500

/** A queue of frames from a program to the engine, which takes them one by one. */
export class FrameQueue {
  #frames: Frame[] = []
  #over = false
  #wake: (() => void) | undefined
  readonly #waiting = new Set<{ readonly most: number; readonly go: () => void }>()
  #taking = false

  push(...frames: readonly Frame[]): void {
    if (this.#over) return
    this.#frames.push(...frames)
    this.#wake?.()
  }

  /** Ends the queue. */
  end(): void {
    this.#over = true
    this.#wake?.()
    this.#tell()
  }

  /** Resolves once the engine has caught up with a fast program. */
  room(): Promise<void> | undefined {
    return this.#frames.length < ROOM || this.#over ? undefined : this.#until(ROOM / 2)
  }

  /** Resolves when every frame is in the log, so that frames written directly come after them. */
  async flushed(): Promise<void> {
    if (!this.#over && (this.#frames.length > 0 || !this.#taking)) await this.#until(-1)
  }

  #until(most: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add({ most, go: resolve })
    return promise
  }

  #tell(): void {
    for (const waiter of this.#waiting) {
      const idle = this.#frames.length === 0 && this.#taking
      if (!this.#over && !(waiter.most < 0 ? idle : this.#frames.length <= waiter.most)) continue
      this.#waiting.delete(waiter)
      waiter.go()
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Frame, void> {
    try {
      for (;;) {
        const frame = this.#frames.shift()
        if (frame) {
          this.#taking = false
          this.#tell()
          yield frame
          continue
        }
        if (this.#over) return
        this.#taking = true
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#wake = resolve
        this.#tell()
        await promise
      }
    } finally {
      this.end()
    }
  }
}
