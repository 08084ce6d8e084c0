import type { Host } from '../../sdk/index.js'
import { BEGINNING, ChainCheck, type ChainLink } from '../../sdk/node/record/chain.js'
import type { ActivityChain } from './contract.js'
import type { Facts } from './entry.js'
import { recordEntryOf, type Recorder } from './record.js'
import { segmentLines, type Segments } from './segments.js'
import { ignored } from '../../sdk/index.js'

/** An entry that the chain after it stands on. */
export interface ChainAnchor extends Pick<ChainLink, 'seq' | 'hash'> {
  /** Why it is one: the chain before it is broken there. */
  readonly brokenAt?: number
}

/** Facts about the chain stored apart from it, sealed so that only the daemon can have written them. */
export interface VerifiedMarks {
  readonly anchor?: ChainAnchor
  /** An entry up to which the chain was verified: a chain that ends before it was cut. */
  readonly seen?: Pick<ChainLink, 'seq' | 'hash'>
}

/** Reads and writes the marks, one change after another. */
export class MarkFile {
  readonly #files: Pick<Host['files'], 'read' | 'write'>
  #marks: VerifiedMarks
  #writing: Promise<unknown> = Promise.resolve()

  private constructor(files: Pick<Host['files'], 'read' | 'write'>, marks: VerifiedMarks) {
    this.#files = files
    this.#marks = marks
  }

  static async open(files: Pick<Host['files'], 'read' | 'write'>): Promise<MarkFile> {
    return new MarkFile(files, (await files.read<VerifiedMarks>('chain')) ?? {})
  }

  get marks(): VerifiedMarks {
    return this.#marks
  }

  change(change: VerifiedMarks): Promise<void> {
    this.#marks = { ...this.#marks, ...change }
    const written = this.#writing
      .catch(ignored('the step before told its own caller'))
      .then(() => this.#files.write('chain', this.#marks))
    this.#writing = written
    return written
  }
}

interface Found {
  readonly brokenAt: number | undefined
  readonly oldest: { readonly seq: number; readonly at: number } | undefined
  readonly checkedAt: number
}

/** What a verification works with. */
export interface VerificationOptions {
  readonly segments: Segments
  readonly recorder: Recorder
  readonly marks: MarkFile
  readonly now: () => number
  /** Writes an entry of the sandbox's own. */
  readonly record: (facts: Facts) => Promise<ChainLink>
}

/** Verifies the record: all of it at the start and daily, its end on each request. */
export class Verification {
  readonly #options: VerificationOptions
  #found: Found | undefined
  #running: Promise<Found> | undefined

  constructor(options: VerificationOptions) {
    this.#options = options
  }

  /** Checks every entry; records a break, after which the record continues. */
  verify(): Promise<Found> {
    return (this.#running ??= this.#whole().finally(() => (this.#running = undefined)))
  }

  async status(): Promise<ActivityChain & { oldestAt?: number }> {
    const { recorder, marks } = this.#options
    const { brokenAt: broken, oldest, checkedAt } = this.#found ?? (await this.verify())
    await recorder.idle()
    const { seq, hash, at } = recorder.head
    const { anchor } = marks.marks
    const told = anchor?.brokenAt !== undefined && oldest && oldest.seq <= anchor.brokenAt ? anchor.brokenAt : undefined
    const brokenAt = told ?? broken ?? (await this.#brokenTail({ seq, hash }))
    const first = oldest ?? (seq > 0 ? { seq: (anchor?.seq ?? 0) + 1, at: undefined } : undefined)
    return {
      entries: first ? Math.max(0, seq - first.seq + 1) : 0,
      head: hash,
      ...(at > 0 && { headAt: at }),
      intact: brokenAt === undefined,
      checkedAt,
      ...(brokenAt !== undefined && { brokenAt }),
      ...(anchor && { anchor: { seq: anchor.seq, hash: anchor.hash } }),
      ...(oldest && { oldestAt: oldest.at }),
    }
  }

  async #whole(): Promise<Found> {
    const { recorder, marks, now, record } = this.#options
    await recorder.idle()
    const { anchor, seen } = marks.marks
    const head = recorder.head
    const { brokenAt, oldest } = await this.#read(anchor, seen, head)
    if (brokenAt === undefined) {
      if (head.seq > 0) await marks.change({ seen: { seq: head.seq, hash: head.hash } })
    } else {
      const { seq, prev } = await record({
        type: 'activity.chain_broken',
        direction: 'system',
        actor: 'sandbox:activity',
        audience: 'maintainer',
        outcome: 'error',
        extra: { brokenAt },
      })
      await marks.change({ anchor: { seq: seq - 1, hash: prev, brokenAt }, seen: { seq: seq - 1, hash: prev } })
    }
    return (this.#found = { brokenAt, oldest, checkedAt: now() })
  }

  /** Reads all entries: skips those before the anchor, and verifies the rest. */
  async #read(
    anchor: ChainAnchor | undefined,
    seen: VerifiedMarks['seen'],
    head: Pick<ChainLink, 'seq' | 'hash'>,
  ): Promise<Pick<Found, 'brokenAt' | 'oldest'>> {
    const { segments } = this.#options
    const base = anchor ?? { seq: 0, hash: BEGINNING }
    const check = new ChainCheck(base)
    let oldest: Found['oldest']
    let passed = anchor === undefined
    for (const name of await segments.names()) {
      for await (const stretch of segments.forwards(name)) {
        for (const line of segmentLines(stretch)) {
          const entry = oldest && passed ? undefined : recordEntryOf(line)
          oldest ??= entry && { seq: entry.seq, at: entry.at }
          passed ||= entry !== undefined && entry.seq > base.seq
          if (!passed) continue
          const read = check.read(line)
          if (read?.seq === seen?.seq && read && read.hash !== seen?.hash) check.brokenAt ??= read.seq
        }
        if (check.brokenAt !== undefined) return { brokenAt: check.brokenAt, oldest }
      }
    }
    const last = check.head?.seq ?? 0
    return { brokenAt: last < Math.max(head.seq, seen?.seq ?? 0) ? last + 1 : undefined, oldest }
  }

  /** Whether the end on the disk is what was written last. */
  async #brokenTail(head: Pick<ChainLink, 'seq' | 'hash'>): Promise<number | undefined> {
    const { segments, recorder } = this.#options
    if (head.seq === 0 || !recorder.segment) return undefined
    try {
      for await (const stretch of segments.backwards(recorder.segment)) {
        const check = new ChainCheck()
        const read = segmentLines(stretch).map(line => check.read(line))
        check.end()
        if (check.brokenAt !== undefined) return check.brokenAt
        const newest = read.at(-1)
        return newest && newest.seq >= head.seq && (newest.seq > head.seq || newest.hash === head.hash)
          ? undefined
          : (newest?.seq ?? head.seq - 1) + 1
      }
    } catch {
      // What cannot be read is not whole.
    }
    return head.seq
  }
}
