import { randomUUID } from 'node:crypto'
import type { TreeCommand } from '../adapter.js'
import { run } from '../../../../sdk/node/programs/run.js'

const MOST = 32
const MOST_OUTPUT = 1024 * 1024
const MOST_MS = 3_600_000

/** How a command ended. */
export interface AcpTerminalEnd {
  readonly exitCode?: number
  readonly signal?: string
}

interface Terminal {
  readonly stop: AbortController
  readonly ended: Promise<AcpTerminalEnd>
  readonly most: number
  output: Buffer
  truncated: boolean
  end?: AcpTerminalEnd
  released: boolean
}

/** The commands that a program runs in the turn's tree; none outlives the turn. */
export class AcpTerminals {
  readonly #terminals = new Map<string, Terminal>()
  /** Called when a command has ended. */
  readonly #onEnd: (id: string) => void

  /** The turn has ended: no command can start. */
  #closed = false

  constructor(onEnd: (id: string) => void) {
    this.#onEnd = onEnd
  }

  /** Starts a command; undefined when too many are running. */
  start(
    { program, args, cwd, env, enforced, limits, begun }: TreeCommand,
    command: string,
    most = MOST_OUTPUT,
  ): string | undefined {
    const open = [...this.#terminals.values()].filter(({ released }) => !released)
    if (this.#closed || open.length >= MOST) return undefined
    const id = `terminal-${randomUUID()}`
    const stop = new AbortController()
    const over = begun(command)
    const ended = run(program, args, {
      cwd,
      env,
      walled: enforced,
      maxBytes: 2,
      signal: stop.signal,
      timeoutMs: MOST_MS,
      onOutput: piece => this.#add(id, piece),
      ...(limits && { onStart: (pid: number, over: Promise<unknown>) => limits.begun(pid, over) }),
    }).then(
      ({ code, signal }): AcpTerminalEnd => (signal ? { signal } : { exitCode: code }),
      (): AcpTerminalEnd => ({ signal: 'SIGTERM' }),
    )
    const terminal: Terminal = {
      stop,
      ended,
      most: Math.min(most, MOST_OUTPUT),
      output: Buffer.alloc(0),
      truncated: false,
      released: false,
    }
    this.#terminals.set(id, terminal)
    void ended.then(end => {
      terminal.end = end
      const { exitCode: exit, signal } = end
      limits?.ended({ code: exit ?? 0, output: this.text(id) ?? '' })
      over({
        ...(exit !== undefined && { exit }),
        ...(signal !== undefined && { signal }),
        output: this.text(id) ?? '',
      })
      this.#onEnd(id)
    })
    return id
  }

  /** A terminal that the program has not released. */
  get(id: string): (Omit<Terminal, 'stop' | 'output'> & { readonly text: string }) | undefined {
    const terminal = this.#terminals.get(id)
    return terminal && !terminal.released ? { ...terminal, text: this.text(id) ?? '' } : undefined
  }

  /** The output of a command, also after its terminal was released. */
  text(id: string): string | undefined {
    const terminal = this.#terminals.get(id)
    if (!terminal) return undefined
    // The first bytes may be the end of a character that was cut.
    let from = 0
    while (terminal.truncated && from < 3 && ((terminal.output[from] ?? 0) & 0xc0) === 0x80) from++
    return terminal.output.toString('utf8', from)
  }

  /** Ends a command; its terminal stays. */
  kill(id: string): void {
    this.#terminals.get(id)?.stop.abort()
  }

  /** Releases a terminal, and ends its command. */
  release(id: string): void {
    const terminal = this.#terminals.get(id)
    if (!terminal) return
    terminal.released = true
    terminal.stop.abort()
  }

  /** Ends every command, and starts no more; resolves when all have ended. */
  close(): Promise<void> {
    this.#closed = true
    return this.end()
  }

  /** Ends every command; resolves when all have ended. */
  async end(): Promise<void> {
    for (const id of this.#terminals.keys()) this.release(id)
    await Promise.all([...this.#terminals.values()].map(({ ended }) => ended))
  }

  #add(id: string, piece: Buffer): void {
    const terminal = this.#terminals.get(id)
    if (!terminal) return
    const all = Buffer.concat([terminal.output, piece])
    terminal.truncated ||= all.length > terminal.most
    terminal.output = all.length > terminal.most ? Buffer.from(all.subarray(all.length - terminal.most)) : all
  }
}
