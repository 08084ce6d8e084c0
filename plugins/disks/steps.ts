import type { DiskLine, DiskLink, DiskState } from './contract.js'

/** The steps of a mount as a stream, which may be left without stopping the mount. */
export class MountSteps {
  readonly #lines: DiskLine[] = []
  #wake: (() => void) | undefined
  #disk: DiskLink | undefined
  #over = false
  #error: unknown

  log(message: string): void {
    this.#put({ kind: 'log', message })
  }

  state(state: DiskState): void {
    this.#put({ kind: 'state', state })
  }

  finish(disk: DiskLink): void {
    this.#disk = disk
    this.#put({ kind: 'result', ok: true, disk })
    this.#end()
  }

  fail(error: unknown): void {
    this.#error = error
    this.#end()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<DiskLine, { disk: DiskLink }> {
    for (let next = 0; ;) {
      while (next < this.#lines.length) yield this.#lines[next++]!
      if (this.#over) break
      await new Promise<void>(resolve => (this.#wake = resolve))
    }
    if (!this.#disk) throw this.#error
    return { disk: this.#disk }
  }

  #put(line: DiskLine): void {
    this.#lines.push(line)
    this.#wake?.()
  }

  #end(): void {
    this.#over = true
    this.#wake?.()
  }
}
