import type { Log } from '../../sdk/index.js'
import { isSameProbe, type AskedProbe, type ChoreBook, type ProbeOutcome } from './chore-book.js'
import type { ProbeTarget, RunningProbe } from './contract.js'

interface Waiting extends AskedProbe {
  readonly isAsked: boolean
}
interface Running extends RunningProbe {
  readonly stop: AbortController
  readonly over: Promise<void>
}

/** Dependencies of the lane. */
export interface LaneDeps {
  readonly book: Pick<ChoreBook, 'ask' | 'withdraw' | 'settle'>
  /** Takes a measurement; rejects if its signal is aborted. */
  readonly measure: (target: ProbeTarget, signal: AbortSignal) => Promise<ProbeOutcome>
  /** Whether a turn runs: then no measurement of the background begins. */
  readonly isBusy: () => Promise<boolean>
  /** Called when a measurement waits, begins or is over. */
  readonly changed: (repo: string) => void
  /** Called with each failure that is not in the activity record yet. */
  readonly failed: (target: ProbeTarget, reason: string) => void
  readonly log: Pick<Log, 'error'>
}

/** The measurements of the whole sandbox, one at a time: what somebody asked for goes before the background's. */
export class ChoreLane {
  readonly #deps: LaneDeps
  #waiting: Waiting[] = []
  #running: Running | undefined
  #isTaking = false
  #isEnding = false

  constructor(deps: LaneDeps) {
    this.#deps = deps
  }

  /** What runs and waits, in this order. */
  get rows(): RunningProbe[] {
    const { repo, id, askedAt, startedAt } = this.#running ?? {}
    return [
      ...(this.#running ? [{ repo: repo!, id: id!, askedAt: askedAt!, startedAt: startedAt! }] : []),
      ...this.#waiting.map(({ isAsked: _isAsked, ...row }) => row),
    ]
  }

  /** Stores that a measurement was asked for and puts it in line; answers its place there, 0 while it runs. */
  async ask(target: ProbeTarget): Promise<number> {
    const asked = { ...target, askedAt: Date.now() }
    await this.#deps.book.ask(asked)
    const isKnown = this.#isRunning(target) || this.#waiting.some(each => each.isAsked && isSameProbe(each, target))
    if (!isKnown) this.#put(asked)
    this.#next()
    return this.#placeOf(target)
  }

  /** Puts measurements in line that were asked for before the last restart. */
  resume(all: readonly AskedProbe[]): void {
    for (const asked of all) this.#put(asked)
    this.#next()
  }

  /** Puts measurements of the background at the end of the line. */
  offer(targets: readonly ProbeTarget[]): void {
    const askedAt = Date.now()
    for (const target of targets) {
      if (this.#isRunning(target) || this.#waiting.some(each => isSameProbe(each, target))) continue
      this.#waiting.push({ ...target, askedAt, isAsked: false })
      this.#deps.changed(target.repo)
    }
    this.#next()
  }

  /** Ends a measurement, or takes it out of the line; answers whether it was there. */
  async stop(target: ProbeTarget): Promise<boolean> {
    const running = this.#isRunning(target) ? this.#running : undefined
    const before = this.#waiting.length
    this.#waiting = this.#waiting.filter(each => !isSameProbe(each, target))
    await this.#deps.book.withdraw(target)
    if (running) {
      running.stop.abort()
      await running.over
      return true
    }
    if (this.#waiting.length === before) return false
    this.#deps.changed(target.repo)
    return true
  }

  /** Ends what runs and begins nothing more: what was asked for is measured after the next start. */
  async end(): Promise<void> {
    this.#isEnding = true
    this.#running?.stop.abort()
    await this.#running?.over
  }

  #isRunning(target: ProbeTarget): boolean {
    return this.#running !== undefined && isSameProbe(this.#running, target)
  }

  #placeOf(target: ProbeTarget): number {
    if (this.#isRunning(target)) return 0
    // Without one that runs, the first of the line is about to.
    return Math.max(0, this.#waiting.findIndex(each => isSameProbe(each, target)) + (this.#running ? 1 : 0))
  }

  #put(asked: AskedProbe): void {
    const others = this.#waiting.filter(each => !isSameProbe(each, asked))
    const first = others.findIndex(({ isAsked }) => !isAsked)
    this.#waiting = others.toSpliced(first === -1 ? others.length : first, 0, { ...asked, isAsked: true })
    this.#deps.changed(asked.repo)
  }

  #next(): void {
    if (this.#running || this.#isTaking || this.#isEnding) return
    const [first] = this.#waiting
    if (!first) return
    if (first.isAsked) return this.#begin(first)
    this.#isTaking = true
    void this.#deps
      .isBusy()
      .catch(() => true)
      .then(isBusy => {
        this.#isTaking = false
        if (isBusy) this.#dropBackground()
        else if (this.#waiting[0] === first) return this.#begin(first)
        this.#next()
      })
  }

  /** The next pass of the background offers them again. */
  #dropBackground(): void {
    const dropped = this.#waiting.filter(({ isAsked }) => !isAsked)
    this.#waiting = this.#waiting.filter(({ isAsked }) => isAsked)
    for (const repo of new Set(dropped.map(each => each.repo))) this.#deps.changed(repo)
  }

  #begin(first: Waiting): void {
    const { repo, id, askedAt } = first
    this.#waiting = this.#waiting.filter(each => each !== first)
    const stop = new AbortController()
    const over = this.#run({ repo, id }, stop.signal).catch((error: unknown) => {
      if (!this.#isEnding) this.#deps.log.error('storing a measurement failed', { repo, id, error: String(error) })
    })
    this.#running = {
      ...{ repo, id, askedAt, startedAt: Date.now(), stop },
      over: over.then(() => {
        this.#running = undefined
        this.#deps.changed(repo)
        this.#next()
      }),
    }
    this.#deps.changed(repo)
  }

  async #run(target: ProbeTarget, signal: AbortSignal): Promise<void> {
    const { book, measure, failed } = this.#deps
    const ranAt = Date.now()
    const outcome = await measure(target, signal).catch((error: unknown) => {
      if (signal.aborted) return undefined
      throw error
    })
    if (!outcome || signal.aborted) return
    const isNews = await book.settle(target.repo, target.id, outcome, { ranAt, tookMs: Date.now() - ranAt })
    if (isNews) failed(target, outcome.reason!)
  }
}
