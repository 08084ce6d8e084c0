import { refuse, Refusal, ignored } from '../../../sdk/index.js'
import { BadMessage, encodeMessage, MessageDecoder } from '../../../sdk/node/extension/codec.js'
import { ExtensionLink, LinkError } from '../../../sdk/node/extension/link.js'
import {
  MOST_MESSAGE,
  type BackendOperations,
  type LinkFailure,
  type LinkMessage,
} from '../../../sdk/node/extension/protocol.js'
import { killWalled } from '../../../sdk/node/programs/run.js'
import { readMessage, readOperation, readOutput } from './contract.js'
import { Denied } from '../../../sdk/node/extension/denied.js'
import type { BackendLimits } from './process/limits.js'
import { Pace } from './process/pace.js'
import { eachLine } from './process/output-lines.js'
import { innerProcesses, ProcessWatch, terminateInner, vanished } from './process/process-watch.js'
import type { StartedProcess } from './process/start-process.js'

/** Carries out an operation of a backend, with checked input. */
export type Operate = (op: string, input: unknown, signal: AbortSignal) => Promise<unknown>

/** The options of a process. */
export interface ProcessDeps {
  readonly limits: BackendLimits
  readonly operate: Operate
  /** Each line of its standard output and error. */
  readonly printed: (line: string) => void
  /** An error that is a bug of the daemon. */
  readonly failed: (error: unknown) => void
}

const MOST_ERROR = 4000

/** The running process of one backend, with its pipe; ends it when it violates the protocol or goes over a limit. */
export class BackendProcess {
  readonly link: ExtensionLink<BackendOperations>
  /** Resolves with the reason for its end, as the end of a sentence. */
  readonly ended: Promise<string>
  readonly #process: StartedProcess
  readonly #deps: ProcessDeps
  readonly #decoder = new MessageDecoder(MOST_MESSAGE)
  readonly #watch: ProcessWatch
  #why: string | undefined
  #over = false
  /** The processes of its wall when it was killed. */
  #inner: readonly number[] = []
  #corked = false

  constructor(process: StartedProcess, deps: ProcessDeps) {
    this.#process = process
    this.#deps = deps
    const { child, pipe, output, pid } = process
    this.link = new ExtensionLink<BackendOperations>({
      send: message => this.#send(message),
      answer: (op, input, signal) => this.#operate(op, input, signal),
      failure: error => this.#failureOf(error),
      checked: (op, value) => this.#output(op, value),
    })
    this.#watch = new ProcessWatch(pid, deps.limits, why => this.fail(why))
    this.#watch.begin(() => this.link.ping())
    this.link.onPong = () => this.#watch.answered()
    const pace = new Pace(deps.limits.messages, pipe)
    pipe.on('data', (bytes: Buffer) => this.#received(bytes, pace))
    pipe.on('error', ignored('its exit follows'))
    pipe.on('close', () => pace.end())
    for (const stream of output) eachLine(stream, deps.printed)
    const { promise, resolve } = Promise.withResolvers<string>()
    this.ended = promise
    child.once('exit', (code, signal) => {
      this.#over = true
      killWalled(pid)
      this.#watch.end()
      const how = this.#why ?? (signal ? `its process was ended by ${signal}` : `its process ended with ${code}`)
      this.link.break(new Refusal('unavailable', `the extension is not running: ${how}`, { retryAfter: 1 }))
      pipe.destroy()
      void vanished(this.#inner).then(() => resolve(how))
    })
    child.once('error', () => resolve(this.#why ?? 'its process could not be started'))
  }

  /** Bytes of resident memory when it was last looked at. */
  get resident(): number {
    return this.#watch.resident
  }

  /** Ends it at once, for a reason. */
  fail(why: string): void {
    this.#why ??= why
    if (this.#over) return
    this.#inner = innerProcesses(this.#process.pid)
    killWalled(this.#process.pid)
  }

  /** Lets it complete its work, then ends it; resolves when none of its processes is left. */
  async stop(why: string): Promise<void> {
    const { stopMs, killMs } = this.#deps.limits
    this.#why ??= why
    const asked = this.link.request('stop', {}).catch(ignored('its process may have ended; a signal follows'))
    await settledWithin(stopMs, Promise.race([asked, this.ended]))
    if (!(await settledWithin(LAST_WRITES, this.ended))) {
      terminateInner(this.#process.pid)
      await settledWithin(killMs, this.ended)
    }
    this.fail(why)
    await this.ended
  }

  #send(message: LinkMessage): void {
    const { pipe } = this.#process
    if (this.#over || pipe.destroyed) return
    const bytes = encodeMessage(message, MOST_MESSAGE)
    if (pipe.writableLength + bytes.length > this.#deps.limits.unread)
      return this.fail(`it did not read ${this.#deps.limits.unread} bytes that were sent to it`)
    if (!this.#corked) {
      this.#corked = true
      pipe.cork()
      setImmediate(() => {
        this.#corked = false
        pipe.uncork()
      })
    }
    pipe.write(bytes)
  }

  #received(bytes: Buffer, pace: Pace): void {
    if (this.#over || this.#why !== undefined) return
    try {
      for (const value of this.#decoder.push(bytes)) {
        const read = readMessage(value)
        if (!read.success) throw new BadMessage('wrote something that is no message')
        pace.count()
        this.link.receive(read.data)
      }
    } catch (error) {
      if (error instanceof BadMessage) return this.fail(`it ${error.message}`)
      this.#deps.failed(error)
      this.fail('it wrote something that could not be read')
    }
  }

  async #operate(op: string, input: unknown, signal: AbortSignal): Promise<unknown> {
    const read = readOperation({ op, input })
    if (read.success) return this.#deps.operate(op, read.data.input, signal)
    const [first] = read.errors
    const path = first?.path.replace(/^\$input\.?(?:input\.?)?/, '') ?? ''
    return refuse('invalid', `${op}${path && `, ${path}`}: expected ${first?.expected.slice(0, 500)}`)
  }

  #output(op: string, value: unknown): unknown {
    const read = readOutput({ op, output: value ?? {} })
    if (read.success) return read.data.output
    const [first] = read.errors
    const path = first?.path.replace(/^\$input\.?(?:output\.?)?/, '') ?? ''
    return refuse('failed', `the extension answered ${path || op} wrongly: expected ${first?.expected.slice(0, 300)}`)
  }

  #failureOf(error: unknown): LinkFailure {
    if (error instanceof Denied) return { message: error.message, code: 'denied', entry: error.entry }
    if (error instanceof LinkError) return { message: error.message, ...(error.code && { code: error.code }) }
    if (error instanceof BadMessage) return { message: `the answer ${error.message}`, code: 'too-large' }
    const refusal = Refusal.from(error)
    if (refusal.reason === 'failed' && (error as Error | undefined)?.name !== 'AbortError') this.#deps.failed(error)
    return { message: refusal.message.slice(0, MOST_ERROR), code: refusal.reason, status: refusal.status }
  }
}

/** The time for the last bytes to arrive. */
const LAST_WRITES = 250

const settledWithin = async (ms: number, work: Promise<unknown>): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>(resolve => (timer = setTimeout(() => resolve(false), ms)))
  const done = work.then(
    () => true,
    () => true,
  )
  const result = await Promise.race([done, late])
  clearTimeout(timer)
  return result
}
