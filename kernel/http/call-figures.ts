import type { CallFigure } from '../../sdk/kernel.js'

/** The upper bounds in seconds within which answers are counted. */
export const SECONDS: readonly number[] = [0.005, 0.025, 0.1, 0.5, 2.5, 10]

interface Figures {
  readonly statuses: Map<number, number>
  readonly within: number[]
  /** Those whose time counts. */
  timed: number
  seconds: number
}

/** How often each route was called since the start, how it was answered, and how long that took. */
export class CallFigures {
  readonly #calls = new Map<string, Figures>()

  /** Counts one answer; a stream or socket counts when it ends, without its time. */
  took(call: string, status: number, ms: number, streamed: boolean): void {
    let figures = this.#calls.get(call)
    if (!figures)
      this.#calls.set(call, (figures = { statuses: new Map(), within: SECONDS.map(() => 0), timed: 0, seconds: 0 }))
    figures.statuses.set(status, (figures.statuses.get(status) ?? 0) + 1)
    if (streamed) return
    const seconds = ms / 1000
    figures.timed += 1
    figures.seconds += seconds
    const at = SECONDS.findIndex(most => seconds <= most)
    if (at >= 0) figures.within[at]! += 1
  }

  /** Every route that was called, with the group that serves it. */
  all(groupOf: (call: string) => string): CallFigure[] {
    return [...this.#calls].map(([call, { statuses, within, timed, seconds }]) => {
      let below = 0
      return {
        call,
        group: groupOf(call),
        timed,
        seconds,
        statuses: [...statuses].map(([status, count]) => ({ status, count })),
        within: within.map((count, at) => ({ seconds: SECONDS[at]!, count: (below += count) })),
      }
    })
  }
}
