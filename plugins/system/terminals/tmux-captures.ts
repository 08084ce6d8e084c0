import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TerminalSize } from './backend.js'
import type { Capture, OpenCapture } from './capture.js'
import { OutputPipe } from './pipe.js'

/** Milliseconds to wait for output that is still in the pipe. */
const PATIENCE = 1_000

/** The source of the logs, and callbacks. */
export interface CapturesOptions {
  /** Where the pipes are. */
  readonly folder: string
  readonly open: OpenCapture
  /** Called when a terminal has no log. */
  readonly failed: (error: unknown) => void
  /** Called when piping has ended, with the terminal or without it. */
  readonly broken: (name: string) => void
}

interface Piped {
  readonly capture: Capture
  readonly pipe: OutputPipe
}

/**
 * The logs of terminals that tmux keeps, fed by its own pipes (tmux(1), pipe-pane).
 *
 * A second client would work too, but tmux slows a program down for a slow client only if that is the only client. For
 * a pipe it never slows the program down and buffers unread output: so this always reads, and drops the excess here.
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
   * Begins the log of a terminal and returns the shell command to pipe its output to; without a log the terminal works
   * all the same.
   */
  async begin(name: string, size: TerminalSize, note: string): Promise<string | undefined> {
    const { folder, open, failed } = this.#options
    try {
      const capture = await open(name, size)
      const pipe = await OutputPipe.open(join(folder, `${name}.pipe`), {
        data: bytes => capture.write(bytes),
        ended: () => void this.#lost(name, pipe),
      })
      this.#piped.set(name, { capture, pipe })
      capture.note(note)
      return pipe.command
    } catch (error) {
      failed(error)
      return undefined
    }
  }

  resize(name: string, size: TerminalSize): void {
    this.#piped.get(name)?.capture.resize(size)
  }

  /** Ends the log of a terminal that has ended or is being ended. */
  end(name: string): Promise<void> {
    return this.#end(name, PATIENCE, 'the terminal has ended')
  }

  /** Stops reading; the terminals continue. */
  async close(): Promise<void> {
    this.#closed = true
    await Promise.all(
      this.names.map(name => this.#end(name, 0, 'the daemon has ended: output from now on is missing here')),
    )
  }

  async #end(name: string, patience: number, note: string): Promise<void> {
    const piped = this.#piped.get(name)
    this.#piped.delete(name)
    await piped?.pipe.close(patience)
    await piped?.capture.end(note)
  }

  /** Called when a pipe ended although nobody closed it. */
  async #lost(name: string, pipe: OutputPipe): Promise<void> {
    if (this.#piped.get(name)?.pipe !== pipe) return
    await this.end(name)
    await delay(PATIENCE)
    if (!this.#closed) this.#options.broken(name)
  }
}
