import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { Refusal } from '../../../sdk/index.js'
import { outgoing, Unanswered } from '../../../sdk/node/models/outgoing.js'
import { familyOf } from '../../../sdk/node/programs/family.js'
import { PipedProcess } from '../../../sdk/node/programs/piped-process.js'
import type { Walled } from '../../../sdk/node/wall/wall.js'
import type { ResolvedModel } from './entry.js'
import type { ModelNeed } from './fit.js'
import { NotGguf } from './gguf.js'
import { reportedBytes } from './learned.js'
import type { ServerOrder } from './server-command.js'
import { TransferFailed } from './transfer.js'

/** How the server of a local model stands. */
export type LocalState =
  | { readonly status: 'stopped' }
  | { readonly status: 'downloading'; readonly receivedBytes: number; readonly totalBytes?: number }
  | { readonly status: 'loading'; readonly port?: number }
  | { readonly status: 'ready'; readonly port: number; readonly pid: number; readonly measuredBytes: number }
  | { readonly status: 'error'; readonly detail: string; readonly over: boolean }

/** How long a server is waited for, and when it is started again; ms. */
export interface ServerLimits {
  readonly firstWait: number
  readonly longestWait: number
  /** A life shorter than this is a short one. */
  readonly shortLife: number
  /** So many short lives in a row end the tries. */
  readonly shortLives: number
  readonly loading: number
  readonly poll: number
}

export const SERVER_LIMITS: ServerLimits = {
  firstWait: 5_000,
  longestWait: 300_000,
  shortLife: 60_000,
  shortLives: 3,
  loading: 600_000,
  poll: 250,
}

/** What the server of one local model is run with. */
export interface LocalServerDeps {
  readonly limits: ServerLimits
  readonly model: ResolvedModel
  /** Waits until the weights are here, and returns their file. */
  readonly fetch: (signal: AbortSignal, received: (bytes: number, total: number) => void) => Promise<string>
  readonly need: () => Promise<ModelNeed | undefined>
  readonly port: () => Promise<number>
  readonly command: (order: ServerOrder) => Promise<Walled>
  readonly printed: (lines: string) => void
  readonly changed: () => void
  readonly crashed: (detail: string) => void
  readonly learned: (context: number, bytes: number) => void
}

interface Served {
  readonly detail: string
  /** How long the server lived; undefined: it was not started. */
  readonly lived?: number
  /** Trying again is of use. */
  readonly again: boolean
}

const GONE_WITHIN = 2_000
const MOST_PRINTED = 64 * 1024
const STAYS = 'save it again to start it'

/** Fetches, starts and watches the server of one local model until it is ended. */
export class LocalServer {
  readonly #deps: LocalServerDeps
  readonly #stop = new AbortController()
  readonly #over: Promise<void>
  /** What web pages and other users of the machine do not have. */
  readonly key = randomBytes(32).toString('hex')
  #state: LocalState = { status: 'loading' }
  #need: ModelNeed | undefined

  constructor(deps: LocalServerDeps) {
    this.#deps = deps
    // Not at once: the caller must hold this object before it is notified of a change.
    this.#over = Promise.resolve().then(() => this.#run())
  }

  get state(): LocalState {
    return this.#state
  }

  /** What it needs, as far as that is known. */
  get need(): ModelNeed | undefined {
    return this.#need
  }

  /** Ends its process, or leaves its transfer; resolves when it is gone. */
  async end(): Promise<void> {
    this.#stop.abort()
    await this.#over
    this.#set({ status: 'stopped' })
  }

  async #run(): Promise<void> {
    const { limits } = this.#deps
    const { signal } = this.#stop
    let wait = limits.firstWait
    let short = 0
    for (;;) {
      const { detail, lived, again } = await this.#once().catch(failureOf)
      if (signal.aborted) return
      if (lived !== undefined) {
        const long = lived >= limits.shortLife
        short = long ? 0 : short + 1
        if (long) wait = limits.firstWait
        this.#deps.crashed(detail)
      }
      if (!again || short >= limits.shortLives) {
        const times = short >= limits.shortLives ? ` ${short} times in a row` : ''
        return this.#set({ status: 'error', detail: `${detail}${times}: ${STAYS}`, over: true })
      }
      const seconds = Math.ceil(wait / 1000)
      this.#set({ status: 'error', detail: `${detail}; it is tried again after ${seconds} s`, over: false })
      await pause(wait, signal)
      wait = Math.min(limits.longestWait, wait * 2)
    }
  }

  async #once(): Promise<Served> {
    const { signal } = this.#stop
    const { model, fetch, need, port: freePort, command, limits } = this.#deps
    this.#set({ status: 'downloading', receivedBytes: 0 })
    const weights = await fetch(signal, (receivedBytes, totalBytes) =>
      this.#set({ status: 'downloading', receivedBytes, totalBytes }),
    )
    const needed = await need()
    if (!needed) return { detail: 'the file of its weights cannot be read', again: false }
    this.#need = needed
    if (!needed.fits) return { detail: exceedsMemory(needed), again: false }
    const port = await freePort()
    const { context } = needed
    const order = { name: model.name, weights, context, port, key: this.key }
    const walled = await command(order)
    signal.throwIfAborted()
    const begun = Date.now()
    const process = new PipedProcess(walled)
    const lines = new Lines(this.key, this.#deps.printed)
    process.onErrors = piece => lines.add(piece)
    process.output.setEncoding('utf8').on('data', (piece: string) => lines.add(piece))
    this.#set({ status: 'loading', port })
    try {
      const waiting = AbortSignal.any([signal, AbortSignal.timeout(limits.loading)])
      const ended = process.ended.then(how => ({ how }))
      const loaded = await Promise.race([healthy(port, waiting, limits.poll), ended])
      if (loaded === true) {
        const family = familyOf(process.pid!)
        const bytes = reportedBytes(lines.kept)
        if (bytes !== undefined) this.#deps.learned(context, bytes)
        this.#set({ status: 'ready', port, pid: family.at(-1)!, measuredBytes: residentBytes(family) })
      } else if (loaded === false && !signal.aborted)
        return { detail: `its server did not load it within ${limits.loading / 1000} s`, lived: 0, again: true }
      const how = await Promise.race([process.ended, aborted(signal)])
      return { detail: `its server ${how ?? 'was stopped'}${lines.last}`, lived: Date.now() - begun, again: true }
    } finally {
      const family = process.pid === undefined ? [] : familyOf(process.pid)
      await process.end('at once')
      await gone(family)
    }
  }

  #set(state: LocalState): void {
    const before = this.#state
    this.#state = state
    if (JSON.stringify(before) !== JSON.stringify(state)) this.#deps.changed()
  }
}

/** Says that a model does not fit, with both numbers. */
export const exceedsMemory = ({ totalBytes, budgetBytes, context }: ModelNeed): string =>
  `it needs ${totalBytes} bytes with a window of ${context} tokens, and ${budgetBytes} are there`

const failureOf = (error: unknown): Served => {
  if (error instanceof TransferFailed) return { detail: error.message, again: error.again }
  if (error instanceof Refusal) return { detail: error.message, again: error.reason !== 'missing-program' }
  if (error instanceof NotGguf) return { detail: `its file is no model: ${error.message}`, again: false }
  return { detail: `starting it failed (${(error as Error).message})`, again: true }
}

/** What a server printed: its lines go to the log, without the key. */
class Lines {
  readonly #key: string
  readonly #printed: (lines: string) => void
  #rest = ''
  kept = ''

  constructor(key: string, printed: (lines: string) => void) {
    this.#key = key
    this.#printed = printed
  }

  add(piece: string): void {
    const text = (this.#rest + piece).replaceAll(this.#key, '…')
    const end = text.lastIndexOf('\n') + 1
    this.#rest = text.slice(end).slice(-MOST_PRINTED)
    if (end === 0) return
    this.kept = (this.kept + text.slice(0, end)).slice(-MOST_PRINTED)
    this.#printed(text.slice(0, end))
  }

  /** The last line, as the end of a sentence. */
  get last(): string {
    const line = (this.kept + this.#rest)
      .replace(/\x1b\[[0-9;?]*[A-Za-z]/g, '')
      .split('\n')
      .map(each => each.replace(/[\p{Cc}\p{Cf}]+/gu, ' ').trim())
      .findLast(each => each !== '')
    return line === undefined ? '' : `: ${line.slice(0, 300)}`
  }
}

/** Whether a server says that it has loaded, before the signal ends the wait. */
const healthy = async (port: number, signal: AbortSignal, poll: number): Promise<boolean> => {
  const url = `http://127.0.0.1:${port}/health`
  while (!signal.aborted) {
    try {
      const { status, body } = await outgoing({ url, signal, within: 5_000 })
      body.destroy()
      if (status === 200) return true
    } catch (error) {
      if (!signal.aborted && !(error instanceof Unanswered)) throw error
    }
    await pause(poll, signal)
  }
  return false
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise(resolve => {
    if (signal.aborted) resolve(undefined)
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
  })

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise(resolve => {
    if (signal.aborted) return resolve()
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
  })

/** Waits until killed processes have ended; the system ends those behind a wall a moment after the wall. */
const gone = async (pids: readonly number[]): Promise<void> => {
  const until = Date.now() + GONE_WITHIN
  while (Date.now() < until && pids.some(pid => existsSync(`/proc/${pid}`)))
    await new Promise(resolve => setTimeout(resolve, 10))
}

/** The memory that processes hold (proc(5), `VmRSS`). */
const residentBytes = (pids: readonly number[]): number =>
  pids.reduce((bytes, pid) => {
    try {
      const [, kib = '0'] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
      return bytes + Number(kib) * 1024
    } catch {
      return bytes
    }
  }, 0)
