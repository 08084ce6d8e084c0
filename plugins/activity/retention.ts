import type { ActivityEvent } from './contract.js'
import { recordEntryOf } from './record.js'
import { dayNamed, dayOf, segmentLines, type Segments } from './segments.js'
import type { MarkFile } from './verification.js'

const MIB = 1024 * 1024
const DAY = 24 * 60 * 60_000

/** How much is kept. */
export interface RecordLimits {
  /** Milliseconds that every entry is kept at least. */
  readonly age: number
  /** Bytes up to which older ones stay too. */
  readonly bytes: number
  /** Bytes of what stays of days that are gone: the entries for maintainers. */
  readonly kept: number
}

export const RECORD_LIMITS: RecordLimits = { age: 90 * DAY, bytes: 200 * MIB, kept: 64 * MIB }

/** What retention works on. */
export interface RetentionOptions {
  readonly days: Segments
  readonly kept: Segments
  readonly marks: MarkFile
  readonly now: () => number
  readonly limits?: RecordLimits
}

/**
 * Removes the oldest days when they are old enough and the record is too large; their last hash becomes the beginning
 * of the chain.
 */
export const retain = async ({ days, kept, marks, now, limits = RECORD_LIMITS }: RetentionOptions): Promise<void> => {
  const oldest = dayOf(now() - limits.age)
  const names = await days.names()
  let bytes = await sizeOf(days, names)
  for (const name of names.slice(0, -1)) {
    if (bytes <= limits.bytes || dayNamed(name) >= oldest) break
    const size = await days.size(name)
    const { last, forMaintainers } = await read(days, name)
    if (forMaintainers.length > 0) await kept.replace(name, forMaintainers)
    if (last && last.seq > (marks.marks.anchor?.seq ?? 0))
      await marks.change({ anchor: { seq: last.seq, hash: last.hash } })
    await days.remove(name)
    bytes -= size
  }
  const left = await kept.names()
  let more = (await sizeOf(kept, left)) - limits.kept
  for (const name of left) {
    if (more <= 0) break
    more -= await kept.size(name)
    await kept.remove(name)
  }
}

/** What segments take on the disk. */
export const sizeOf = async (segments: Segments, names: readonly string[]): Promise<number> =>
  (await Promise.all(names.map(name => segments.size(name).catch(() => 0)))).reduce((sum, size) => sum + size, 0)

const read = async (
  days: Segments,
  name: string,
): Promise<{ last: ActivityEvent | undefined; forMaintainers: ActivityEvent[] }> => {
  const forMaintainers: ActivityEvent[] = []
  let last: ActivityEvent | undefined
  for await (const stretch of days.forwards(name)) {
    for (const line of segmentLines(stretch)) {
      const entry = recordEntryOf(line)
      last = entry ?? last
      if (entry?.audience === 'maintainer') forMaintainers.push(entry)
    }
  }
  return { last, forMaintainers }
}
