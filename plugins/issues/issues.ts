import { refuse, type Host, ignored } from '../../sdk/index.js'
import { KeyedMutex } from '../../sdk/node/concurrency/keyed-mutex.js'
import { failpoint } from '../../sdk/node/failpoint.js'
import { changeState, countEvent, countReported, newIssue, type EventEffect } from './apply.js'
import { IssueLog } from './log.js'
import { eventsIn, KeptEvents, KEPT_MS } from './kept-events.js'
import { KnownEvents } from './known-events.js'
import type { Reporters } from './reporters.js'
import type { IssueIdentity, KeptEntry, LogEntry, StateChange, StoredEvent, StoredFix, StoredIssue } from './stored.js'

const MOST_PENDING = 32 * 1024 * 1024
const MOST_ISSUES = 10_000
const SPARE_ISSUES = 500
const EARLY_STORE = 4 * 1024 * 1024
const KEY = 'issue/'
const META = 'meta'

interface Meta {
  seenAt?: number
  /** The newest log entry that is stored. */
  seq: number
}

/** Something that happened to an issue, and is told once. */
export interface IssueNews {
  readonly issue: StoredIssue
  readonly effect: NonNullable<EventEffect>
  readonly seq: number
}

export interface IssuesDeps {
  readonly host: Pick<Host, 'store' | 'journal'>
  readonly reporters: Reporters
  /** Called for each issue that changed; `news`: a first event, or one that opened it again. */
  readonly changed: (issue: StoredIssue, news?: IssueNews) => void
}

/** All issues, in memory; documents and journals have what the log does not. */
export class Issues {
  readonly #deps: IssuesDeps
  readonly #log: IssueLog
  readonly #kept: KeptEvents
  readonly #all = new Map<string, StoredIssue>()
  readonly #known: KnownEvents
  /** Events that are on their way into the log. */
  readonly #arriving = new Map<string, Promise<unknown>>()
  /** Entries for the journals of issues that are in the log alone. */
  #pending = new Map<string, { seq: number; entry: KeptEntry }[]>()
  /** What is being written into these journals now. */
  #writing: ReadonlyMap<string, { seq: number; entry: KeptEntry }[]> = new Map()
  #pendingBytes = 0
  #writingBytes = 0
  readonly #dirty = new Set<string>()
  readonly #storing = new KeyedMutex()
  /** Set while a sweep waits or runs because there are too many issues: events meanwhile start no other. */
  #isShrinking = false
  #seenAt: number | undefined
  #metaSeq = 0

  constructor(deps: IssuesDeps) {
    this.#deps = deps
    this.#log = new IssueLog(deps.host.journal, entry => this.#apply(entry))
    this.#kept = new KeptEvents(deps.host.journal)
    this.#known = new KnownEvents(deps.host.journal)
  }

  /** Reads what is stored, and applies what was only logged. */
  async load(documents: readonly (readonly [key: string, value: unknown])[]): Promise<void> {
    for (const [key, value] of documents) {
      if (key.startsWith(KEY)) this.#all.set(key.slice(KEY.length), value as StoredIssue)
      if (key === META) ({ seenAt: this.#seenAt, seq: this.#metaSeq } = value as Meta)
    }
    await this.#known.load()
    const stored = [...this.#all.values()].map(({ applied }) => applied)
    await this.#log.recover(Math.max(this.#metaSeq, ...stored, ...this.#deps.reporters.applied))
  }

  get all(): readonly StoredIssue[] {
    return [...this.#all.values()]
  }

  /** When the newest event came. */
  get newest(): number {
    return this.all.reduce((newest, { lastSeen }) => Math.max(newest, lastSeen), 0)
  }

  get seenAt(): number | undefined {
    return this.#seenAt
  }

  find(id: string): StoredIssue | undefined {
    return this.#all.get(id)
  }

  /** Whether more arrives than is stored. */
  get behind(): boolean {
    return this.#pendingBytes + this.#writingBytes > MOST_PENDING
  }

  /** The issue of a recent event of a reporter. */
  issueOf(reporter: number, event: string): string | undefined {
    return this.#known.issueOf(reporter, event)
  }

  /** Counts an event once; resolves when it survives the end of the daemon. False: it was counted before. */
  async addEvent(of: IssueIdentity, event: StoredEvent): Promise<boolean> {
    const key = `${of.reporter} ${event.id}`
    const arriving = this.#arriving.get(key)
    if (arriving || this.issueOf(of.reporter, event.id) !== undefined) {
      await arriving
      return false
    }
    const adding = this.#log.add([{ kind: 'event', of, event }])
    this.#arriving.set(key, adding)
    try {
      await adding
    } finally {
      this.#arriving.delete(key)
    }
    if (this.#pendingBytes > EARLY_STORE)
      void this.store().catch(ignored('its events are in the log, and stored later'))
    if (this.#all.size > MOST_ISSUES + SPARE_ISSUES && !this.#isShrinking) {
      this.#isShrinking = true
      void this.sweep(Date.now())
        .catch(ignored('the next event sweeps again'))
        .finally(() => (this.#isShrinking = false))
    }
    return true
  }

  async addFeedback(issue: string, event: string, text: string): Promise<void> {
    await this.#log.add([{ kind: 'feedback', issue, event, text }])
  }

  /** Changes the state of issues, all or none. */
  async change(issues: readonly string[], change: StateChange): Promise<void> {
    for (const id of issues) if (!this.#all.has(id)) refuse('not-found', `there is no issue ${id}; nothing changed`)
    await this.#log.add([{ kind: 'state', issues: [...issues], change }])
  }

  /** Notes the fix of an issue; undefined: it has none. */
  async noteFix(issue: string, fix: StoredFix | undefined): Promise<void> {
    await this.#log.add([{ kind: 'fix', issue, ...(fix && { fix }) }])
  }

  async see(at: number): Promise<void> {
    await this.#log.add([{ kind: 'seen', at }])
  }

  /** The kept events of an issue, the newest first. */
  async events(id: string): Promise<StoredEvent[]> {
    const stored = await this.#kept.read(id)
    const waiting = [...(this.#writing.get(id) ?? []), ...(this.#pending.get(id) ?? [])].map(({ entry }) => entry)
    return eventsIn([...stored, ...waiting], Date.now())
  }

  /** Deletes the issues of a reporter with their events, and returns how many there were. */
  async purge(reporter: number): Promise<number> {
    await this.store()
    return this.#storing.with('store', async () => {
      const own = this.all.filter(each => each.reporter === reporter)
      await this.#remove(own)
      return own.length
    })
  }

  async #remove(issues: readonly StoredIssue[]): Promise<void> {
    for (const { id } of issues) {
      this.#all.delete(id)
      this.#pending.delete(id)
      this.#dirty.delete(id)
      await this.#kept.remove(id)
      await this.#deps.host.store.delete(KEY + id)
    }
    if (issues.length > 0) this.#known.forget(new Set(issues.map(({ id }) => id)))
  }

  /** Drops kept events that are too old, and the issues seen longest ago where there are too many. */
  async sweep(now: number): Promise<void> {
    await this.store()
    await this.#storing.with('store', async () => {
      const oldest = this.all.toSorted((one, other) => one.lastSeen - other.lastSeen)
      await this.#remove(oldest.slice(0, Math.max(0, oldest.length - MOST_ISSUES)))
      for (const issue of this.all) {
        if (issue.entries === 0 || issue.firstSeen > now - KEPT_MS) continue
        issue.entries = await this.#kept.prune(issue.id, now)
        this.#dirty.add(issue.id)
      }
    })
  }

  /** Stores what is in the log alone: events in the journals of their issues, then the issues, then drops the log. */
  async store(): Promise<void> {
    await this.#storing.with('store', async () => {
      if (this.#log.filled === 0 && this.#dirty.size === 0) return
      await this.#log.drop(() => this.#storeAll())
    })
  }

  async #storeAll(): Promise<void> {
    const { host, reporters } = this.#deps
    const [pending, dirty, bytes, seq] = [this.#pending, [...this.#dirty], this.#pendingBytes, this.#log.last]
    const documents = dirty.flatMap(id => structuredClone(this.#all.get(id)) ?? [])
    const ofReporters = reporters.takeChanged()
    const seenAt = this.#seenAt
    this.#pending = new Map()
    this.#pendingBytes = 0
    this.#writingBytes = bytes
    this.#writing = pending
    this.#dirty.clear()
    try {
      for (const issue of documents) {
        const entries = pending.get(issue.id) ?? []
        const count = await this.#kept.add(
          issue.id,
          issue.entries,
          entries.map(({ entry }) => entry),
          Date.now(),
        )
        failpoint('issues.kept')
        const stored = { ...issue, entries: count, kept: entries.at(-1)?.seq ?? issue.kept }
        await host.store.set(KEY + issue.id, stored)
        const now = this.#all.get(issue.id)
        if (now) Object.assign(now, { entries: count, kept: stored.kept })
        pending.delete(issue.id)
      }
      await this.#known.store()
      await reporters.store(ofReporters)
      await host.store.set(META, { seq, ...(seenAt !== undefined && { seenAt }) } satisfies Meta)
    } catch (error) {
      // What was not stored is tried again with what came meanwhile.
      for (const [id, entries] of pending) this.#pending.set(id, [...entries, ...(this.#pending.get(id) ?? [])])
      this.#pendingBytes += bytes
      for (const id of dirty) this.#dirty.add(id)
      reporters.giveBack(ofReporters)
      throw error
    } finally {
      this.#writing = new Map()
      this.#writingBytes = 0
    }
  }

  /** Does what an entry says, unless it is part of what is stored. */
  #apply(entry: LogEntry): void {
    const { seq } = entry
    switch (entry.kind) {
      case 'event':
        return this.#applyEvent(entry.of, entry.event, seq)
      case 'feedback':
        return this.#touch(entry.issue, seq, () => {}, { feedback: { event: entry.event, text: entry.text } })
      case 'state':
        for (const id of entry.issues) this.#touch(id, seq, issue => void changeState(issue, entry.change, seq))
        return
      case 'fix':
        return this.#touch(entry.issue, seq, issue => {
          if (entry.fix) issue.fix = entry.fix
          else delete issue.fix
        })
      case 'seen':
        if (this.#metaSeq < seq) this.#seenAt = Math.max(this.#seenAt ?? 0, entry.at)
    }
  }

  #applyEvent(of: IssueIdentity, given: StoredEvent, seq: number): void {
    const reporter = this.#deps.reporters.stored(of.reporter)
    if (!reporter || reporter.removed === 'purge') return
    const issue = this.#all.get(of.id) ?? newIssue(of, given.receivedAt)
    // Each event of an issue has a time of its own, so that pages by time repeat and lose none.
    const event =
      issue.count > 0 && given.receivedAt <= issue.lastSeen && issue.applied < seq
        ? { ...given, receivedAt: issue.lastSeen + 1 }
        : given
    countReported(reporter, event, seq)
    this.#deps.reporters.changed(reporter.id)
    this.#all.set(of.id, issue)
    this.#known.add(of.reporter, event.id, of.id)
    let effect: EventEffect
    this.#touch(
      of.id,
      seq,
      () => void (effect = countEvent(issue, of, event, reporter)),
      { event },
      () => effect,
    )
  }

  /** Changes an issue by an entry that it does not have yet, and keeps an entry for its journal. */
  #touch(
    id: string,
    seq: number,
    change: (issue: StoredIssue) => void,
    entry?: KeptEntry,
    effectOf: () => EventEffect = () => undefined,
  ): void {
    const issue = this.#all.get(id)
    if (!issue) return
    if (entry && issue.kept < seq) {
      const list = this.#pending.get(id) ?? []
      list.push({ seq, entry })
      this.#pending.set(id, list)
      this.#pendingBytes += JSON.stringify(entry).length
    }
    this.#dirty.add(id)
    if (issue.applied >= seq) return
    issue.applied = seq
    change(issue)
    const effect = effectOf()
    this.#deps.changed(issue, effect && { issue, effect, seq })
  }
}
