import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { once } from 'node:events'
import { linesWithin, NotTheProtocol, PipedProcess, quotedLine } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'

const MOST_LINE = 16 * 1024 * 1024

/** The messages of a server that is a program behind the wall. */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: NonNullable<Transport['onmessage']>
  readonly #command: Walled
  #process: PipedProcess | undefined
  #wrong: string | undefined
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
    const said = process.errors.slice(-400)
    return this.#wrong ?? (how === undefined ? undefined : `${how}${said ? `: ${said}` : ''}`)
  }

  async start(): Promise<void> {
    this.#process = new PipedProcess(this.#command)
    void this.#read(this.#process)
    void this.#process.ended.then(() => this.onclose?.())
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const input = this.#process?.input
    if (!input || input.destroyed) throw new Error('the server has ended')
    if (!input.write(`${JSON.stringify(message)}\n`)) await Promise.race([once(input, 'drain'), once(input, 'close')])
  }

  async close(): Promise<void> {
    this.#closing = true
    await this.#process?.end()
  }

  async #read(process: PipedProcess): Promise<void> {
    try {
      for await (const line of linesWithin(process.output as AsyncIterable<Buffer>, MOST_LINE))
        if (line.trim() !== '') this.onmessage?.(messageOf(line))
    } catch (error) {
      if (this.#closing) return
      this.#wrong = error instanceof NotTheProtocol ? error.message : `closed its output (${(error as Error).message})`
      this.onerror?.(error as Error)
      await process.end('at once')
    }
  }
}

const messageOf = (line: string): JSONRPCMessage => {
  try {
    const value: unknown = JSON.parse(line)
    if (typeof value === 'object' && value !== null && 'jsonrpc' in value) return value as JSONRPCMessage
  } catch {
    // The line itself is reported below, which is more useful than the parser's message.
  }
  throw new NotTheProtocol(`wrote a line that is no message of the Model Context Protocol: ${quotedLine(line)}`)
}
