import { Live } from '../../../kernel/streams/live.js'
import type { Clock } from '../../../kernel/streams/burst.js'
import type { Sink } from '../../../kernel/streams/watcher.js'
import type { Watch } from '../../../sdk/contract.js'
import { EventParser } from '../../../sdk/events.js'

/** A clock that advances only when told to. */
export class TestClock implements Clock {
  #now = 1_000_000
  #timers: { at: number; run: () => void }[] = []

  now(): number {
    return this.#now
  }

  time(): number {
    return this.#now
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run }
    this.#timers.push(timer)
    return () => void (this.#timers = this.#timers.filter(one => one !== timer))
  }

  /** Advances the clock, and runs due timers in order. */
  pass(ms: number): void {
    const end = this.#now + ms
    for (;;) {
      const next = this.#timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (!next) break
      this.#timers = this.#timers.filter(one => one !== next)
      this.#now = next.at
      next.run()
    }
    this.#now = end
  }
}

export interface Got {
  readonly event: string
  readonly id: string
  readonly data: { readonly [field: string]: unknown; readonly kind: string }
}

/** A peer that accepts bytes at once, or only when told to. */
export class TestSink implements Sink {
  readonly chunks: Buffer[] = []
  reads = true
  open = true
  #accept: (() => void)[] = []

  write(bytes: Buffer, accepted: () => void): void {
    this.chunks.push(bytes)
    if (this.reads) accepted()
    else this.#accept.push(accepted)
  }

  end(bytes: Buffer, accepted: () => void): void {
    this.write(bytes, () => {
      this.open = false
      accepted()
    })
  }

  cut(): void {
    this.open = false
  }

  /** Accepts the pending bytes, and with `all` also those that follow. */
  read(all = true): void {
    this.reads = all
    for (const accepted of this.#accept.splice(0)) accepted()
  }

  /** Every event so far, and from then on only later ones. */
  take(): Got[] {
    const bytes = Buffer.concat(this.chunks.splice(0))
    return [...new EventParser().push(bytes)].map(({ event, id, data }) => ({
      event,
      id,
      data: JSON.parse(data) as Got['data'],
    }))
  }

  kinds(): string[] {
    return this.take().map(({ event, data }) => (event === 'message' ? data.kind : event))
  }
}

export const EPOCH = '0123abcd'

export interface Bench {
  readonly live: Live
  readonly clock: TestClock
  /** Connects a watcher. */
  watch(
    options?: Partial<Watch['watch']> & { last?: string; reads?: boolean; signal?: AbortSignal },
  ): TestSink & { readonly closed: Promise<void> }
}

/** A started stream with the snapshots `presence` and `attention`, and its own clock. */
export const bench = (): Bench => {
  const clock = new TestClock()
  const live = new Live({ boot: () => ({ ready: true, startedAt: 0, steps: [] }), clock, epoch: EPOCH })
  live.declare('fleet', ['landings', 'subagents', 'sessions'], ['subagents'])
  live.show([
    { data: { kind: 'presence' }, tokens: false, snapshot: true },
    { data: { kind: 'attention' }, snapshot: true },
  ])
  return {
    live,
    clock,
    watch: ({ last, reads = true, signal = new AbortController().signal, ...watch } = {}) => {
      const sink = new TestSink()
      sink.reads = reads
      const closed = live.serve(
        sink,
        {
          hello: { me: 'ada' },
          form: 'people',
          mode: 'snapshot',
          snapshots: ['agents', 'presence', 'attention', 'boot'],
          again: ['presence', 'attention'],
          ...watch,
        },
        last,
        signal,
      )
      return Object.assign(sink, { closed })
    },
  }
}
