import type { ChildProcess } from 'node:child_process'
import type { EventEmitter } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import { ignored } from '../../../sdk/index.js'

/** What a control client receives besides replies. Text is bytes, one per character. */
export interface ControlEvents {
  output(bytes: Buffer): void
  /** A line that begins with `%`, such as `%sessions-changed`. */
  notified(line: string): void
  ended(): void
}

type Child = Pick<ChildProcess, 'stdin' | 'stdout' | 'stderr' | 'kill'> & Pick<EventEmitter, 'once'>

interface Waiting {
  readonly left: number
  readonly blocks: string[][]
  readonly done: (blocks: string[][] | Error) => void
}

const LINE_FEED = 10
/** Milliseconds between two looks at what tmux has read, at first and at most. */
const FIRST_LOOK = 5
const LONGEST_LOOK = 250
/** Bytes that tmux reads at most for one piece that is taken from it. */
const AHEAD = 256 << 10
const BEGIN = /^%begin (\d+ \d+ 1)$/
const OUTPUT = /^%output %\d+ /
/** How the line begins that says that the client is attached. */
const ATTACHED = '%session-changed '

/**
 * A client of tmux in control mode (tmux(1), CONTROL MODE): commands go in as lines, and tmux sends replies in the
 * order of the commands, and between them notifications and the output of programs.
 */
export class ControlClient {
  readonly #child: Child
  readonly #in: Writable
  readonly #out: Readable
  readonly #events: ControlEvents
  readonly #bytesRead: () => number | undefined
  readonly #waiting: Waiting[] = []
  #rest: Buffer[] = []
  /** The block that is being read, and how it ends. */
  #block: { readonly end: string; readonly error: string; readonly lines: string[] } | undefined
  #over = false
  #attached = false
  #paused = false
  #timer: NodeJS.Timeout | undefined

  /**
   * @param bytesRead Returns how many bytes the server of tmux has read since it began; undefined if unknown.
   */
  constructor(child: Child, events: ControlEvents, bytesRead: () => number | undefined) {
    this.#child = child
    this.#bytesRead = bytesRead
    this.#in = child.stdin!
    this.#out = child.stdout!
    this.#events = events
    // tmux 3.3a may run commands before it attaches their client, and never sends that client the output in between.
    this.#in.cork()
    this.#in.on('error', ignored('its end follows'))
    this.#out.on('data', (chunk: Buffer) => this.#read(chunk))
    child.stderr?.resume()
    child.once('error', () => this.#end())
    child.once('close', () => this.#end())
  }

  /**
   * Runs commands as one group as soon as the client is attached; `done` is called when the replies arrive, in order
   * with the output.
   */
  run(commands: readonly string[], done: (blocks: string[][] | Error) => void): void {
    if (this.#over) return done(new Error('tmux is gone'))
    this.#waiting.push({ left: commands.length, blocks: [], done })
    this.#in.write(`${commands.join(' ; ')}\n`)
  }

  /**
   * Stops reading, so that tmux stops reading the output of the program.
   *
   * tmux stops only while it has 512 bytes to send. It can have fewer although nothing more fits, and would then buffer
   * all output: if it keeps reading, this takes one piece, which usually fills its buffer.
   */
  pause(): void {
    if (this.#paused) return
    this.#paused = true
    if (this.#attached) this.#out.pause()
    this.#look(FIRST_LOOK, this.#bytesRead())
  }

  resume(): void {
    this.#paused = false
    clearTimeout(this.#timer)
    this.#out.resume()
  }

  #look(wait: number, before: number | undefined): void {
    this.#timer = setTimeout(() => {
      const now = this.#bytesRead()
      if (now === undefined || before === undefined) {
        // Without that number, pieces are taken at growing intervals.
        this.#out.resume()
        return this.#look(wait * 3, now)
      }
      const readsOn = now - before > AHEAD
      if (readsOn) this.#out.resume()
      this.#look(readsOn ? FIRST_LOOK : Math.min(wait * 1.2, LONGEST_LOOK), readsOn ? now : before)
    }, wait).unref()
  }

  /** Disconnects; the sessions stay. */
  close(): void {
    this.#end()
    this.#child.kill('SIGKILL')
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    clearTimeout(this.#timer)
    for (const { done } of this.#waiting.splice(0)) done(new Error('tmux is gone'))
    this.#events.ended()
  }

  #read(chunk: Buffer): void {
    if (this.#paused && this.#attached) this.#out.pause()
    let from = 0
    for (let at = chunk.indexOf(LINE_FEED); at >= 0 && !this.#over; at = chunk.indexOf(LINE_FEED, from)) {
      const line = this.#rest.length
        ? Buffer.concat([...this.#rest.splice(0), chunk.subarray(from, at)])
        : chunk.subarray(from, at)
      from = at + 1
      this.#line(line.toString('latin1'))
    }
    if (from < chunk.length) this.#rest.push(chunk.subarray(from))
  }

  #line(line: string): void {
    const block = this.#block
    if (block) {
      if (line !== block.end && line !== block.error) return void block.lines.push(line)
      this.#block = undefined
      return this.#answered(block.lines, line === block.error)
    }
    const [, begun] = BEGIN.exec(line) ?? []
    if (begun) this.#block = { end: `%end ${begun}`, error: `%error ${begun}`, lines: [] }
    else if (OUTPUT.test(line)) this.#events.output(unescaped(line.slice(line.indexOf(' ', 8) + 1)))
    else if (line.startsWith('%')) {
      if (line.startsWith(ATTACHED)) this.#attach()
      this.#events.notified(line)
    }
  }

  #attach(): void {
    if (this.#attached) return
    this.#attached = true
    this.#in.uncork()
  }

  /** tmux does not run the commands of a group after one that failed. */
  #answered(lines: string[], failed: boolean): void {
    const [first] = this.#waiting
    if (!first) return
    first.blocks.push(lines)
    if (!failed && first.blocks.length < first.left) return
    this.#waiting.shift()
    first.done(failed ? new Error(`tmux: ${lines.join(' ')}`) : first.blocks)
  }
}

const unescaped = (text: string): Buffer =>
  Buffer.from(
    text.includes('\\')
      ? text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)))
      : text,
    'latin1',
  )

/** Quotes a word for tmux. */
export const quotedForTmux = (word: string): string =>
  `"${word
    .replace(/["\\$]/g, '\\$&')
    .replaceAll('\n', '\\n')
    .replaceAll('\r', '\\r')
    .replace(/^~/, '\\176')}"`
