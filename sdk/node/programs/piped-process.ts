import { spawn, type ChildProcess } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { codeOf } from '../files/paths.js'
import type { Walled } from '../wall/wall.js'
import { lowerPriority } from './priority.js'
import { killWalled, signalGroup } from './run-here.js'

const MOST_ERRORS = 2000
const GRACE_MS = 2000
const NEWLINE = 10

/** A program that is spoken to over its standard input and output, in a process group of its own. */
export class PipedProcess {
  readonly #child: ChildProcess & { readonly stdin: Writable; readonly stdout: Readable; readonly stderr: Readable }
  readonly #walled: boolean
  #errors = ''
  /** Its leader has ended: its number may soon be somebody else's. */
  #gone = false
  #over = false
  /** Called with what it writes to standard error. */
  onErrors: ((piece: string) => void) | undefined
  /** How it ended, as the rest of a sentence about it. */
  readonly ended: Promise<string>

  constructor({ program, args, env, cwd, enforced, limits }: Walled) {
    this.#walled = enforced
    this.#child = spawn(program, args, { cwd, env: { ...env }, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    if (this.#child.pid !== undefined) lowerPriority(this.#child.pid)
    const { stdin, stderr } = this.#child
    // A program may end without reading its input: its end says so.
    stdin.on('error', () => {})
    stderr.setEncoding('utf8').on('data', (piece: string) => {
      this.#errors = (this.#errors + piece).slice(-MOST_ERRORS)
      this.onErrors?.(piece)
    })
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#child.once('error', error => resolve(`could not be started (${codeOf(error) ?? 'unknown'})`))
    // The leader's end is the group's; its last words on standard error may still be on their way.
    this.#child.once('exit', () => {
      this.#gone = true
      this.#signal('SIGKILL')
    })
    this.#child.once('close', (code, by) => resolve(by ? `was ended by ${by}` : `ended with exit code ${code}`))
    this.ended = promise
    if (limits && this.#child.pid !== undefined) limits.begun(this.#child.pid, promise)
    if (limits) this.#child.once('close', code => limits.ended({ code: code ?? 0, output: this.#errors }))
    void promise.then(() => (this.#over = true))
  }

  get pid(): number | undefined {
    return this.#over ? undefined : this.#child.pid
  }

  get input(): Writable {
    return this.#child.stdin
  }

  get output(): Readable {
    return this.#child.stdout
  }

  /** Whether it is gone. */
  get over(): boolean {
    return this.#over
  }

  /** The last of what it wrote to standard error, without colours and other control characters. */
  get errors(): string {
    return this.#errors
      .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
      .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, '')
      .toWellFormed()
      .trim()
  }

  /** Ends the whole group and resolves when it is gone; `at once` without asking it first. */
  async end(way?: 'at once'): Promise<void> {
    if (this.#over) return
    this.#signal(way ? 'SIGKILL' : 'SIGTERM')
    const killer = setTimeout(() => this.#signal('SIGKILL'), GRACE_MS)
    // Nobody reads it any more: what it still writes must not hold up its end.
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

/** What a program wrote is not the protocol it should speak; the message is the rest of a sentence about it. */
export class NotTheProtocol extends Error {}

/** The lines of a stream, none longer than `most` bytes. */
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
      yield Buffer.concat(parts).toString()
      from = end + 1
      parts = []
      size = 0
    }
    if (from < chunk.length) take(chunk.subarray(from))
  }
  if (size > 0) yield Buffer.concat(parts).toString()
}

const SHOWN = 120

/** A line of a program for a sentence about it: quoted, and no longer than a line of a terminal. */
export const quotedLine = (line: string): string =>
  JSON.stringify(line.slice(0, SHOWN).toWellFormed())
  + (line.length > SHOWN ? ` and ${line.length - SHOWN} characters more` : '')
