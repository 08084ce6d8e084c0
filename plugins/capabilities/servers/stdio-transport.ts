import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { linesWithin, NotTheProtocol, PipedProcess, quotedLine } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import { drainedOrClosed } from '../../../sdk/node/programs/drained-or-closed.js'

const MOST_LINE = 16 * 1024 * 1024
/** A program that writes more beside messages is no tool server. */
const MOST_BESIDE = 1024 * 1024

/** The messages of a server that is a program behind the wall. */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: NonNullable<Transport['onmessage']>
  readonly #command: Walled
  #process: PipedProcess | undefined
  #wrong: string | undefined
  /** The first line that it wrote beside its messages. */
  #beside: string | undefined
  #closing = false

  constructor(command: Walled) {
    this.#command = command
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** What ended the server, as the rest of a sentence about it; undefined: it runs, or was ended here. */
  async lost(): Promise<string | undefined> {
    const process = this.#process
    if (!process || this.#closing) return this.#wrong
    const how = await Promise.race([
      process.ended,
      new Promise<undefined>(resolve => setTimeout(resolve, 500, undefined)),
    ])
    const said = process.errors.slice(-400) || this.beside
    return this.#wrong ?? (how === undefined ? undefined : `${how}${said ? `: ${said}` : ''}`)
  }

  /** What it wrote that is no message, as the rest of a sentence; undefined: nothing. */
  get beside(): string | undefined {
    return this.#beside && `wrote a line that is no message of the Model Context Protocol: ${quotedLine(this.#beside)}`
  }

  async start(): Promise<void> {
    this.#process = new PipedProcess(this.#command)
    void this.#read(this.#process)
    void this.#process.ended.then(() => this.onclose?.())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#process?.input
    if (!input || input.destroyed) throw new Error('the server has ended')
    if (!input.write(`${JSON.stringify(message)}\n`)) await drainedOrClosed(input)
  }

  async close(): Promise<void> {
    this.#closing = true
    await this.#process?.end()
  }

  async #read(process: PipedProcess): Promise<void> {
    let beside = 0
    try {
      for await (const line of linesWithin(process.output as AsyncIterable<Buffer>, MOST_LINE)) {
        const message = messageOf(line.replace(/^\uFEFF/, ''))
        if (message) this.onmessage?.(message)
        else if (line.trim() !== '') {
          this.#beside ??= line
          beside += line.length
          if (beside > MOST_BESIDE) throw new NotTheProtocol(this.beside!)
        }
      }
    } catch (error) {
      if (this.#closing) return
      this.#wrong = error instanceof NotTheProtocol ? error.message : `closed its output (${(error as Error).message})`
      this.onerror?.(error as Error)
      await process.end('at once')
    }
  }
}

/** The message of a line; undefined: it is none, as the greetings and logs that many servers print there. */
const messageOf = (line: string): JSONRPCMessage | undefined => {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null && 'jsonrpc' in value ? (value as JSONRPCMessage) : undefined
  } catch {
    return undefined
  }
}
