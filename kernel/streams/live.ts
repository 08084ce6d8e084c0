import { randomBytes } from 'node:crypto'
import type { Watch } from '../../sdk/contract.js'
import type { BootProgress, LiveFrame } from '../../sdk/kernel.js'
import { accessTo, type ReachFolder } from '../../sdk/reach.js'
import { Refusal, refuse } from '../../sdk/refusal.js'
import { Burst, few, REAL, type Clock, type MovedAccess, type Within } from './burst.js'
import { Fan } from './fan.js'
import { limitedTo, nameOf } from './limited.js'
import { LiveWatcher, type Change, type Entry, type Sink, type LiveSource, type Wire } from './watcher.js'

export interface LiveOptions {
  /** The progress of the boot steps. */
  readonly boot: () => BootProgress
  readonly clock?: Clock
  /** Eight hex digits that identify this run of the daemon in frame ids; default: random. */
  readonly epoch?: string
}

const KEPT = 4096
const KEPT_MS = 600_000
const WAITING = 512
const WAITING_BYTES = 4 << 20
const TICK = 1_000
const HEARTBEAT = 5_000
const BURST = 250
const SLOW_BURST = 2_000
const LAST_WORDS = 1_000
const RETRY_MS = 1_000

/**
 * The event stream of the sandbox: one total order of frames, a buffer of the newest ones, and the watchers.
 *
 * Each form of a frame is serialised once. A watcher is a position in the order, so a slow one needs no buffer.
 */
export class Live implements LiveSource {
  readonly #boot: () => BootProgress
  readonly #clock: Clock
  readonly #epoch: string
  readonly #versions = new Map<string, number>()
  readonly #declared = new Map<string, ReadonlySet<string>>()
  readonly #slow = new Set<string>()
  readonly #bursts = new Map<number, Burst>()
  /** The newest frames in order, without snapshots. */
  #kept: Entry[] = []
  /** The newest snapshot of each kind. */
  readonly #held = new Map<string, Entry>()
  readonly #watchers = new Set<LiveWatcher>()
  readonly #fan: Fan<LiveWatcher>
  #head = 0
  /** The last frame evicted from the buffer. */
  #lost = 0
  /** Position of the first snapshot of the newest kind: watchers resuming from before it never received that kind. */
  #floor = 1
  #merged?: { name: string; bytes: Buffer }
  /** The last result of `waiting`, cached because most watchers have the same position. */
  #found?: { name: string; waiting: ReturnType<Live['waiting']> }
  #ticking = false
  #stopping = false
  /** The reason sent to watchers by `stop`. */
  reason: 'stopping' | 'restarting' | 'restored' = 'stopping'

  constructor({ boot, clock = REAL, epoch = randomBytes(4).toString('hex') }: LiveOptions) {
    this.#boot = boot
    this.#clock = clock
    this.#epoch = epoch
    this.#fan = new Fan(this.#watchers, watcher => watcher.push(), clock)
  }

  get head(): number {
    return this.#head
  }

  now(): number {
    return this.#clock.now()
  }

  /** Registers the domains that a group may bump. Slow ones are announced at most every 2 s, others every 250 ms. */
  declare(plugin: string, domains: readonly string[], slow: readonly string[] = []): void {
    for (const domain of slow) this.#slow.add(domain)
    this.#declared.set(plugin, new Set(domains))
    for (const domain of domains) if (!this.#versions.has(domain)) this.#versions.set(domain, 0)
  }

  /** Announces a change in a domain; the first of a burst is sent at once, the rest together. */
  bump(plugin: string, domain: string, key?: string, within?: Within): void {
    if (!this.#declared.get(plugin)?.has(domain)) {
      refuse('forbidden', `${plugin} does not declare the domain ${domain} in its manifest`)
    }
    this.#versions.set(domain, this.#versions.get(domain)! + 1)
    const ms = this.#slow.has(domain) ? SLOW_BURST : BURST
    const burst = this.#bursts.get(ms) ?? new Burst(this.#clock, ms, changed => this.#changed(changed))
    this.#bursts.set(ms, burst)
    burst.add(domain, key, within)
  }

  /** Publishes frames in order, with no other frame between them. */
  show(frames: readonly LiveFrame[]): void {
    for (const { data, tokens = data, limited, snapshot, mode } of frames) {
      const people = this.#wire(data)
      this.#publish(
        data.kind,
        people,
        {
          ...(tokens && { tokens: tokens === data ? people : this.#wire(tokens) }),
          ...(limited && { source: { data, limited } }),
          ...(mode !== undefined && { mode }),
        },
        snapshot,
      )
    }
  }

  /** Publishes the progress of the boot steps; watchers that connect after the last step do not receive it. */
  booted(): void {
    const progress = this.#boot()
    this.show([{ data: { kind: 'boot', ...progress }, limited: {}, snapshot: true }])
    if (progress.ready) this.#held.delete('boot')
  }

  /** Serves one watcher until its connection closes, its credential ends or the daemon stops. */
  async serve(sink: Sink, watch: Watch['watch'], lastEventId: string | undefined, signal: AbortSignal): Promise<void> {
    const watcher = new LiveWatcher(this, sink, watch, this.#resumable(lastEventId || watch.after))
    const abort = () => {
      const why: unknown = signal.reason
      if (why === SHRUNK) this.#last(watcher, this.#named(0, data({ kind: 'resync', reason: 'access' })))
      else if (why instanceof Refusal) this.#end(watcher, 'error', { status: why.status, ...why.body })
      else watcher.close()
    }
    this.#watchers.add(watcher)
    this.#tick()
    // Before the first frames: they are for the access that the reader had.
    if (signal.aborted) abort()
    watcher.push()
    if (this.#stopping) this.#end(watcher, 'done', this.#lastWord)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await watcher.closed
    } finally {
      signal.removeEventListener('abort', abort)
      this.#watchers.delete(watcher)
    }
  }

  /** Ends all streams, also those opened later, because the daemon stops. */
  async stop(): Promise<void> {
    this.#stopping = true
    const watchers = [...this.#watchers]
    for (const watcher of watchers) this.#end(watcher, 'done', this.#lastWord)
    await Promise.all(watchers.map(({ closed }) => closed))
  }

  get #lastWord() {
    return { reason: this.reason, retryMs: RETRY_MS }
  }

  greeting(watch: Watch['watch'], from?: number): Buffer[] {
    const resumed = from !== undefined
    const versions = Object.fromEntries(this.#versions)
    const hello = {
      kind: 'hello',
      ...watch.hello,
      boot: this.#boot(),
      epoch: this.#epoch,
      seq: this.#head,
      resumed,
      versions,
    }
    const missed = resumed ? this.#after(from).filter(entry => this.#wireOf(entry, watch)) : []
    const snapshots = watch.snapshots.flatMap(kind => {
      const entry = this.#held.get(kind)
      const wire = entry && this.#formOf(entry, watch)
      const wanted = entry && (!resumed || watch.again.includes(kind) || (entry.seq > from && fits(entry, watch)))
      return wanted && wire ? [wire.data] : []
    })
    // All snapshots but the last have the id before the first: a watcher cut off between them receives all of them
    // again.
    const before = missed.at(-1)?.seq ?? from ?? 0
    return [
      this.#named(resumed ? from : snapshots.length ? 0 : this.#head, data(hello)),
      ...missed.map(entry => this.#wireOf(entry, watch)!.whole),
      ...snapshots.map((line, at) => this.#named(at === snapshots.length - 1 ? this.#head : before, line)),
    ]
  }

  waiting(watch: Watch['watch'], position: number): readonly { seq: number; bytes: Buffer }[] | undefined {
    const { form, mode, reach } = watch
    const name = `${position} ${this.#head} ${form} ${mode} ${form === 'people' && reach ? nameOf(reach) : ''}`
    if (this.#found?.name !== name) this.#found = { name, waiting: this.#waiting(watch, position) }
    return this.#found.waiting
  }

  #waiting(watch: Watch['watch'], position: number): { seq: number; bytes: Buffer }[] | undefined {
    if (position < this.#lost) return undefined
    const kept = this.#after(position).filter(entry => this.#wireOf(entry, watch))
    const changes = kept.filter(({ change }) => change)
    const last = changes.at(-1)
    const waiting = kept
      .filter(entry => !entry.change || entry === last)
      .map(entry => ({
        seq: entry.seq,
        bytes: entry === last ? this.#together(changes, watch) : this.#wireOf(entry, watch)!.whole,
      }))
    if (waiting.length > WAITING || waiting.reduce((sum, { bytes }) => sum + bytes.length, 0) > WAITING_BYTES)
      return undefined
    const snapshots = [...this.#held.values()].filter(entry => entry.seq > position && this.#wireOf(entry, watch))
    if (!snapshots.length) return waiting
    return [...waiting, ...snapshots.map(entry => ({ seq: entry.seq, bytes: this.#wireOf(entry, watch)!.whole }))].sort(
      (a, b) => a.seq - b.seq,
    )
  }

  behind(position: number): Buffer {
    return this.#named(position, data({ kind: 'resync', reason: 'slow' }))
  }

  /** The position of an id, if all later frames are still in the buffer. */
  #resumable(id: string | undefined): number | undefined {
    const [, epoch, seq] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(id ?? '') ?? []
    const position = Number(seq)
    this.#evict()
    const whole = epoch === this.#epoch && position >= Math.max(this.#floor, this.#lost) && position <= this.#head
    return whole ? position : undefined
  }

  #after(position: number): Entry[] {
    let at = this.#kept.length
    while (at > 0 && this.#kept[at - 1]!.seq > position) at--
    return at === this.#kept.length ? [] : this.#kept.slice(at)
  }

  /** The form of a frame that a watcher receives; undefined: none. */
  #formOf(entry: Entry, { form, reach }: Watch['watch']): Wire | undefined {
    if (form === 'tokens' || !reach) return entry[form]
    const name = nameOf(reach)
    if (!entry.limited.has(name)) entry.limited.set(name, this.#limited(entry, reach))
    return entry.limited.get(name)
  }

  #wireOf(entry: Entry, watch: Watch['watch']): Wire | undefined {
    return fits(entry, watch) ? this.#formOf(entry, watch) : undefined
  }

  #limited({ seq, change, source }: Entry, reach: readonly ReachFolder[]): Wire | undefined {
    const shown = change ? changeData(change, reach) : source && limitedTo(reach, source.data, source.limited)
    return shown && this.#wire(shown, seq)
  }

  #changed(changed: ReadonlyMap<string, MovedAccess>): void {
    const domains = [...changed.keys()].sort()
    const versions = Object.fromEntries(domains.map(domain => [domain, this.#versions.get(domain)!]))
    const change: Change = { domains, versions, ...few([...changed.values()]) }
    const people = this.#wire(changeData(change))
    this.#publish('runtimeChanged', people, { tokens: people, change })
  }

  /** Merges several changes into one frame with the id of the newest. */
  #together(changes: readonly Entry[], watch: Watch['watch']): Buffer {
    const [first, last] = [changes[0]!, changes.at(-1)!]
    if (first === last) return this.#wireOf(last, watch)!.whole
    const reach = watch.form === 'people' ? watch.reach : undefined
    const name = `${first.seq}-${last.seq} ${reach ? nameOf(reach) : ''}`
    if (this.#merged?.name === name) return this.#merged.bytes
    const all = changes.map(({ change }) => change!)
    const merged: Change = {
      domains: [...new Set(all.flatMap(({ domains }) => domains))].sort(),
      versions: Object.assign({}, ...all.map(({ versions }) => versions)) as Change['versions'],
      ...few(all.map(({ keys }) => keys)),
    }
    const bytes = this.#named(last.seq, data(changeData(merged, reach)))
    this.#merged = { name, bytes }
    return bytes
  }

  #publish(
    kind: string,
    people: Wire,
    more: Pick<Entry, 'tokens' | 'mode' | 'change' | 'source'>,
    snapshot = false,
  ): void {
    const { mode, ...rest } = more
    const first = snapshot && !this.#held.has(kind)
    const entry: Entry = {
      seq: ++this.#head,
      at: this.now(),
      kind,
      people,
      limited: new Map(),
      ...rest,
      ...(mode !== undefined && !first && { mode }),
    }
    if (first) this.#floor = entry.seq
    if (snapshot) this.#held.set(kind, entry)
    else {
      this.#kept.push(entry)
      this.#evict()
    }
    this.#fan.wake()
  }

  #evict(): void {
    const oldest = this.now() - KEPT_MS
    let evicted = Math.max(0, this.#kept.length - KEPT)
    while (evicted < this.#kept.length && this.#kept[evicted]!.at < oldest) evicted++
    if (!evicted) return
    this.#lost = this.#kept[evicted - 1]!.seq
    this.#kept = this.#kept.slice(evicted)
  }

  /** The bytes of a frame; default position: that of the next published frame. */
  #wire(value: object, seq = this.#head + 1): Wire {
    const line = data(value)
    const whole = this.#named(seq, line)
    return { whole, data: whole.subarray(whole.length - line.length) }
  }

  #named(seq: number, line: Buffer): Buffer {
    return Buffer.concat([Buffer.from(`event: message\nid: ${this.#epoch}-${seq}\n`), line])
  }

  /** Checks every watcher once a second for a heartbeat or a stall, while there are any. */
  #tick(): void {
    if (this.#ticking || !this.#watchers.size) return
    this.#ticking = true
    this.#clock.after(TICK, () => {
      this.#ticking = false
      let beat: Buffer | undefined
      for (const watcher of this.#watchers) {
        watcher.checkStalled()
        if ((watcher.quiet ?? 0) < HEARTBEAT) continue
        beat ??= this.#named(this.#head, data({ kind: 'heartbeat', at: this.#clock.time(), seq: this.#head }))
        watcher.beat(beat)
      }
      this.#tick()
    })
  }

  #end(watcher: LiveWatcher, event: 'done' | 'error', value: object): void {
    this.#last(watcher, Buffer.from(`event: ${event}\ndata: ${JSON.stringify(value)}\n\n`))
  }

  #last(watcher: LiveWatcher, bytes: Buffer): void {
    watcher.end(bytes)
    const cancel = this.#clock.after(LAST_WORDS, () => watcher.close())
    void watcher.closed.then(cancel)
  }
}

/** Abort reason of a stream whose reader's access was reduced: the reader must start over without a position. */
export const SHRUNK = Symbol('access shrank')

const fits = ({ mode }: Entry, watch: Watch['watch']): boolean => mode === undefined || mode === watch.mode

/**
 * The frame of a change. A person limited to areas receives only the ids inside, and no ids if the paths of one are not
 * known.
 */
const changeData = ({ keys, ...change }: Change, reach?: readonly ReachFolder[]): object => {
  const reached = (within: Within) => !reach || (within?.every(place => accessTo(reach, place) !== undefined) ?? false)
  const known = keys && (!reach || [...keys.values()].every(within => within !== undefined))
  return {
    kind: 'runtimeChanged',
    ...change,
    ...(known && { keys: [...keys].filter(([, within]) => reached(within)).map(([key]) => key) }),
  }
}

const data = (value: object): Buffer => Buffer.from(`data: ${JSON.stringify(value)}\n\n`)
