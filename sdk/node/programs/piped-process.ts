import { spawn, type ChildProcess, type StdioOptions } from 'node:child_process'
import type { Socket } from 'node:net'
import type { Readable, Writable } from 'node:stream'
import { codeOf } from '../files/paths.js'
import type { Walled } from '../wall/wall.js'
import { lowerFamily, lowerPriority } from './priority.js'
import { closeSilentOutputs, killWalled, signalGroup } from './run-here.js'
import { ignored } from '../../ignored.js'

const MOST_ERRORS = 2000
const GRACE_MS = 2000
const NEWLINE = 10

type Piped = ChildProcess & { readonly stdout: Socket; readonly stderr: Socket }

/** A program used through its standard input and output, in its own process group. */
export class PipedProcess {
  readonly #child: Piped
  readonly #walled: boolean
  /** Connections that it has not taken yet. */
  readonly #handed = new Set<Socket>()
  #errors = ''
  /** The group leader has ended; its pid may be reused. */
  #gone = false
  #over = false
  /** Called with each piece of standard error. */
  onErrors: ((piece: string) => void) | undefined
  /** Resolves with how it ended, as the end of a sentence. */
  readonly ended: Promise<string>

  /**
   * @param priority `own`: it keeps the priority of this process, until `lower` is called; default: a lower one.
   * @param file The descriptor of an open file that it reads as its input; default: what is written to `input`.
   * @param takes `sockets`: it is a program of Node, to which `hand` gives connections.
   */
  constructor(
    { program, args, env, cwd, enforced, limits }: Walled,
    priority?: 'own',
    file?: number,
    takes?: 'sockets',
  ) {
    this.#walled = enforced
    const three = [file ?? 'pipe', 'pipe', 'pipe'] satisfies StdioOptions
    const stdio: StdioOptions = takes ? [...three, 'ipc'] : three
    // Node types the streams of such a list as perhaps missing, and as plain streams; these two are pipes.
    this.#child = spawn(program, args, { cwd, env: { ...env }, detached: true, stdio }) as Piped
    if (this.#child.pid !== undefined && !priority) lowerPriority(this.#child.pid)
    const { stdin, stderr } = this.#child
    // A program may exit without reading its input; `ended` reports its exit.
    stdin?.on('error', ignored('a program may end before it reads its input'))
    stderr.setEncoding('utf8').on('data', (piece: string) => {
      this.#errors = (this.#errors + piece).slice(-MOST_ERRORS)
      this.onErrors?.(piece)
    })
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#child.once('error', error => resolve(`could not be started (${codeOf(error) ?? 'unknown'})`))
    // When the leader exits, kill the group; standard error may still be buffered until `close`.
    this.#child.once('exit', () => {
      this.#gone = true
      this.#signal('SIGKILL')
    })
    closeSilentOutputs(this.#child)
    this.#child.once('close', (code, by) => resolve(by ? `was ended by ${by}` : `ended with exit code ${code}`))
    this.ended = promise
    if (limits && this.#child.pid !== undefined) limits.begun(this.#child.pid, promise)
    if (limits) this.#child.once('close', code => limits.ended({ code: code ?? 0, output: this.#errors }))
    void promise.then(() => {
      this.#over = true
      for (const connection of this.#handed) connection.destroy()
    })
  }

  get pid(): number | undefined {
    return this.#over ? undefined : this.#child.pid
  }

  get input(): Writable {
    const { stdin } = this.#child
    if (!stdin) throw new Error('its input is a file')
    return stdin
  }

  /**
   * Gives it a connection of which nothing was read yet; resolves when it is sent. Until the program took those before,
   * it waits; one that it does not take any more is closed.
   */
  hand(connection: Socket): Promise<void> {
    this.#handed.add(connection)
    return new Promise(done => {
      connection.once('close', () => done())
      this.#child.send('connection', connection, error => {
        this.#handed.delete(connection)
        if (error) connection.destroy()
        done()
      })
    })
  }

  get output(): Readable {
    return this.#child.stdout
  }

  /** How many bytes of its output and its standard error were read. */
  get bytesRead(): number {
    return this.#child.stdout.bytesRead + this.#child.stderr.bytesRead
  }

  /** Gives it the lower priority from now on. */
  lower(): void {
    if (this.pid !== undefined) lowerFamily(this.pid)
  }

  /** Whether it has ended. */
  get over(): boolean {
    return this.#over
  }

  /** The end of its standard error, without control characters. */
  get errors(): string {
    return this.#errors
      .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
      .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '')
      .toWellFormed()
      .trim()
  }

  /** Ends the whole group and resolves when it has exited; `at once` skips SIGTERM, after which it has `graceMs`. */
  async end(way?: 'at once', graceMs = GRACE_MS): Promise<void> {
    if (this.#over) return
    this.#signal(way ? 'SIGKILL' : 'SIGTERM')
    const killer = setTimeout(() => this.#signal('SIGKILL'), graceMs)
    // Discards unread output, which could block the exit.
    this.#child.stdout.destroy()
    await this.ended
    clearTimeout(killer)
  }

  #signal(signal: NodeJS.Signals): void {
    const { pid } = this.#child
    if (pid === undefined) return
    if (this.#walled && !this.#gone) killWalled(pid)
    else signalGroup(pid, signal)
  }
}

/** A program violated its protocol; the message is the end of a sentence about it. */
export class NotTheProtocol extends Error {}

/** The lines of a stream that are not empty; throws on a line of more than `most` bytes. */
export async function* linesWithin(input: AsyncIterable<Buffer>, most: number): AsyncGenerator<string, void> {
  let parts: Buffer[] = []
  let size = 0
  const take = (part: Buffer) => {
    size += part.length
    if (size > most) throw new NotTheProtocol(`wrote a line of more than ${most} bytes`)
    parts.push(part)
  }
  for await (const chunk of input) {
    let from = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      take(chunk.subarray(from, end))
      from = end + 1
      if (size === 0) continue
      yield Buffer.concat(parts).toString()
      parts = []
      size = 0
    }
    if (from < chunk.length) take(chunk.subarray(from))
  }
  if (size > 0) yield Buffer.concat(parts).toString()
}

const SHOWN = 120

/** Quotes a program's line for a message, shortened. */
export const quotedLine = (line: string): string =>
  JSON.stringify(line.slice(0, SHOWN).toWellFormed())
  + (line.length > SHOWN ? ` and ${line.length - SHOWN} characters more` : '')
