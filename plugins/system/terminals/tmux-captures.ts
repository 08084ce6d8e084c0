import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TerminalSize } from './backend.js'
import type { Capture, OpenCapture } from './capture.js'
import { OutputPipe } from './pipe.js'

/** Milliseconds that what is on its way may take. */
const PATIENCE = 1_000

/** Where the logs are fed from, and who hears of it. */
export interface CapturesOptions {
  /** Where the pipes are. */
  readonly folder: string
  readonly open: OpenCapture
  /** There is no log of a terminal. */
  readonly failed: (error: unknown) => void
  /** Nothing is piped any more: the terminal has ended, or it was the pipe. */
  readonly broken: (name: string) => void
}

interface Piped {
  readonly capture: Capture
  readonly pipe: OutputPipe
}

/**
 * The logs of terminals that tmux keeps, fed by its own pipes (tmux(1), pipe-pane).
 *
 * Another client would do too, but tmux holds a program up for a slow client only where it is the only one. For a pipe
 * it never holds up anything and keeps what is not read yet: so it is always read, and what is too much goes here.
 */
export class TmuxCaptures {
  readonly #options: CapturesOptions
  readonly #piped = new Map<string, Piped>()
  #closed = false

  constructor(options: CapturesOptions) {
    this.#options = options
  }

  get names(): string[] {
    return [...this.#piped.keys()]
  }

  /**
   * Begins the log of a terminal, and answers the shell's command that what it shows is to be piped to; a terminal
   * without a log is one too.
   */
  async begin(name: string, size: TerminalSize, words: string): Promise<string | undefined> {
    const { folder, open, failed } = this.#options
    try {
      const capture = await open(name, size)
      const pipe = await OutputPipe.open(join(folder, `${name}.pipe`), {
        data: bytes => capture.said(bytes),
        ended: () => void this.#lost(name, pipe),
      })
      this.#piped.set(name, { capture, pipe })
      capture.note(words)
      return pipe.command
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  resize(name: string, size: TerminalSize): void {
    this.#piped.get(name)?.capture.resize(size)
  }

  /** Ends the log of a terminal that is over, or was told so. */
  end(name: string): Promise<void> {
    return this.#end(name, PATIENCE, 'the terminal has ended')
  }

  /** Reads no further: the terminals go on. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(
      this.names.map(name => this.#end(name, 0, 'the daemon has ended: what is said meanwhile is not here')),
    )
  }

  async #end(name: string, patience: number, words: string): Promise<void> {
    const piped = this.#piped.get(name)
    this.#piped.delete(name)
    await piped?.pipe.close(patience)
    await piped?.capture.end(words)
  }

  /** What is piped ended by itself. */
  async #lost(name: string, pipe: OutputPipe): Promise<void> {
    if (this.#piped.get(name)?.pipe !== pipe) return
    await this.end(name)
    await delay(PATIENCE)
    if (!this.#closed) this.#options.broken(name)
  }
}
