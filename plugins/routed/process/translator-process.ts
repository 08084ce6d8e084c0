import { ignored } from '../../../sdk/index.js'
import { linesWithin, type PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import type { DaemonNews, ProcessNews, RoutingTable } from '../link/messages.js'

/** How long the process is waited for, and when it is started again; ms. */
export interface TranslatorLimits {
  readonly startMs: number
  readonly firstWaitMs: number
  readonly longestWaitMs: number
  /** After a life as long as this the first wait counts again. */
  readonly longLifeMs: number
  /** So long without a request and with nothing to serve it stops. */
  readonly idleMs: number
}

export const TRANSLATOR_LIMITS: TranslatorLimits = {
  startMs: 10_000,
  firstWaitMs: 5_000,
  longestWaitMs: 300_000,
  longLifeMs: 60_000,
  idleMs: 60_000,
}

/** What the translator is run with. */
export interface TranslatorProcessDeps {
  readonly limits: TranslatorLimits
  readonly start: (port: number) => Promise<PipedProcess>
  /** Whether its port answers. */
  readonly healthy: (port: number, signal: AbortSignal) => Promise<boolean>
  /** Whether there is something to serve. */
  readonly wanted: () => boolean
  readonly table: () => RoutingTable
  /** Answers what the process asks, and hears what it tells; an answer is sent with `send`. */
  readonly heard: (news: ProcessNews, send: (news: DaemonNews) => void) => void
  readonly started: (pid: number, port: number) => Promise<void>
  /** Called when a process has ended, however it did. */
  readonly ended: () => void
  readonly changed: () => void
  /** Called once for a series of failures, and when it runs again. */
  readonly happened: (type: 'translator.failed' | 'translator.running', detail?: string) => void
}

/** How the process stands. */
export type TranslatorState =
  | { readonly state: 'stopped' }
  | { readonly state: 'starting' }
  | { readonly state: 'running'; readonly port: number; readonly since: number }
  | { readonly state: 'failed'; readonly nextTryAt: number }

const MOST_LINE = 256 * 1024 * 1024
const LOOK_MS = 1_000
const MOST_DETAIL = 400

/** Runs the translator's process while there is something to serve. */
export class TranslatorProcess {
  readonly #deps: TranslatorProcessDeps
  readonly #over = new AbortController()
  #state: TranslatorState = { state: 'stopped' }
  #process: PipedProcess | undefined
  #running: Promise<void> | undefined
  #wake = Promise.withResolvers<void>()
  #failing = false
  /** The port is kept, so that programs of a turn find the next process. */
  #port = 0
  #asked = 0
  restarts = 0
  detail: string | undefined

  constructor(deps: TranslatorProcessDeps) {
    this.#deps = deps
  }

  get state(): TranslatorState {
    return this.#state
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Starts the process where something is to be served, and gives a running one the present table. */
  sync(): void {
    if (this.#process && this.#state.state === 'running') this.#send({ news: 'table', table: this.#deps.table() })
    if (this.#over.signal.aborted || this.#running || !this.#deps.wanted()) return
    this.#running = this.#run().finally(() => {
      this.#running = undefined
      // What was wanted while it ended is served by the next one.
      if (this.#deps.wanted()) this.sync()
    })
  }

  /** A request was made: the process does not stop for a while. */
  asked(): void {
    this.#asked = Date.now()
  }

  /** Its port once it runs; undefined: it did not within the time. */
  async whenRunning(withinMs: number): Promise<number | undefined> {
    const signal = AbortSignal.any([AbortSignal.timeout(withinMs), this.#over.signal])
    const { promise: late, resolve } = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => resolve(), { once: true })
    while (!signal.aborted) {
      this.sync()
      if (this.#state.state === 'running') return this.#state.port
      await Promise.race([this.#wake.promise, late])
    }
    return undefined
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    this.#over.abort()
    await this.#process?.end()
    await this.#running
  }

  async #run(): Promise<void> {
    const { limits, wanted, changed, happened } = this.#deps
    let wait = limits.firstWaitMs
    for (let first = true; wanted() && !this.#over.signal.aborted; first = false) {
      if (!first) this.restarts++
      this.#set({ state: 'starting' })
      const { detail, lived } = await this.#once().catch((error: unknown) => ({ detail: String(error), lived: 0 }))
      if (detail === undefined || this.#over.signal.aborted) break
      if (lived >= limits.longLifeMs) wait = limits.firstWaitMs
      this.detail = detail
      this.#set({ state: 'failed', nextTryAt: Date.now() + wait })
      if (!this.#failing) happened('translator.failed', detail)
      this.#failing = true
      await pause(wait, this.#over.signal)
      wait = Math.min(limits.longestWaitMs, wait * 2)
    }
    this.#set({ state: 'stopped' })
    changed()
  }

  /** One life of the process: how it ended, or nothing where it stopped because there is nothing to serve. */
  async #once(): Promise<{ detail?: string; lived: number }> {
    const { limits, start, healthy, wanted, heard, started, ended: over, happened } = this.#deps
    const begun = Date.now()
    const process = await start(this.#port)
    this.#process = process
    let unheard: unknown
    const listening = Promise.withResolvers<number>()
    listening.promise.catch(ignored('a process that never listens is ended below'))
    const follow = async (): Promise<void> => {
      for await (const line of linesWithin(process.output as AsyncIterable<Buffer>, MOST_LINE)) {
        const news = JSON.parse(line) as ProcessNews
        if (news.news === 'listening') listening.resolve(news.port)
        else heard(news, answer => this.#process === process && this.#send(answer))
      }
    }
    // One that nobody hears any more would keep its requests for ever.
    const followed = follow().catch((error: unknown) => {
      if (!process.over) unheard = error
      return process.end('at once')
    })
    let idle = false
    const timer = setInterval(
      () => {
        if (this.#state.state !== 'running' || wanted() || Date.now() - this.#asked < limits.idleMs) return
        idle = true
        // A request that comes now waits for the next process.
        this.#set({ state: 'stopped' })
        void process.end()
      },
      Math.min(LOOK_MS, limits.idleMs),
    ).unref()
    try {
      const signal = AbortSignal.any([AbortSignal.timeout(limits.startMs), this.#over.signal])
      const ended = process.ended.then(() => undefined)
      const late = new Promise<undefined>(resolve => {
        if (signal.aborted) resolve(undefined)
        signal.addEventListener('abort', () => resolve(undefined), { once: true })
      })
      const port = await Promise.race([listening.promise, ended, late])
      if (port !== undefined && (await healthy(port, signal)) && process.pid !== undefined) {
        await started(process.pid, port)
        this.#port = port
        this.#asked = Date.now()
        this.#send({ news: 'table', table: this.#deps.table() })
        this.#set({ state: 'running', port, since: Date.now() })
        if (this.#failing) happened('translator.running')
        this.#failing = false
      } else if (!process.over) {
        await process.end('at once')
        return { detail: `it did not answer within ${limits.startMs / 1000} s`, lived: 0 }
      }
      const how = await process.ended
      await followed
      if (idle) return { lived: 0 }
      const words = process.errors.slice(-MOST_DETAIL) || (unheard === undefined ? '' : 'it wrote what nobody reads')
      return { detail: `it ${how}${words ? `: ${words}` : ''}`, lived: Date.now() - begun }
    } finally {
      clearInterval(timer)
      // Nobody would know of one that is left behind.
      await process.end('at once')
      this.#process = undefined
      over()
    }
  }

  #send(news: DaemonNews): void {
    this.#process?.input.write(`${JSON.stringify(news)}\n`)
  }

  #set(state: TranslatorState): void {
    this.#state = state
    const { resolve } = this.#wake
    this.#wake = Promise.withResolvers()
    resolve()
    this.#deps.changed()
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    timer.unref()
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
