import { lstat, type FileHandle } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { KEPT, older } from '../../sdk/node/logs/rotating-file.js'
import type { Identified } from '../../sdk/index.js'
import type { Catalogue } from './catalogue.js'
import { identityOf, type PartRead, type Resumed } from './resume-positions.js'
import type { LogLevel } from '../../sdk/log-line.js'
import type { LogLine, LogRotated, LogSkipped } from './contract.js'
import { isGrave, lineOf } from './line.js'
import { readAt, utf8 } from './window.js'
import { ignored } from '../../sdk/index.js'

const LAST = 100
const BACK = 1024 * 1024
const PIECE = 64 * 1024
const MOST_LINE = 1024 * 1024
const LINE_END = 0x0a
const LOOK = 200
const SECOND = 1000
const A_SECOND = 2000
/** Checks without a file before a log counts as removed: a rotation removes it for a moment. */
const PATIENCE = 10

export type FollowEvent = LogLine | LogRotated | LogSkipped

/** What of a log is followed. */
export interface Following {
  readonly name: string
  /** Where to begin; left out: before the last lines. */
  readonly from?: number
  readonly level?: LogLevel
  readonly signal: AbortSignal
  /** Called with each file that is read; its position is updated as reading proceeds. */
  readonly reading: (part: PartRead) => void
}

/** The lines of a log as they are written, across rotations, until it is removed or the reader stops. */
export async function* follow(
  catalogue: Pick<Catalogue, 'open' | 'path'>,
  first: FileHandle | Resumed,
  { name, from, level, signal, reading }: Following,
): AsyncGenerator<FollowEvent | Identified<FollowEvent>, { reason: 'removed' } | undefined> {
  const resumed = 'at' in first ? first : undefined
  let file = 'at' in first ? first.file : first
  try {
    const { size } = await file.stat()
    let at = resumed?.at ?? from ?? (await lastLines(file, size))
    if (resumed?.gone || at > size) {
      // The last line read is in a file that was rotated away meanwhile.
      yield ROTATED
      at = 0
    }
    let part: PartRead = { file: await identityOf(file), from: at, to: at }
    reading(part)
    const pace = new Pace()
    for (let absent = 0; !signal.aborted;) {
      const current = await catalogue
        .path(name)
        .then(path => lstat(path))
        .catch(() => undefined)
      const { ino } = await file.stat()
      for (let more = true; more && !signal.aborted;) {
        const { lines, next } = await whole(file, at, current?.ino !== ino)
        more = lines.length > 0
        at = part.to = next
        for (const { offset, text, end } of lines) {
          if (!isGrave(text, level) || !pace.admits()) continue
          yield { 'event-id': String(end), event: lineOf(offset, text) }
        }
        const skipped = pace.due(!more)
        if (skipped > 0) yield { kind: 'skipped', lines: skipped }
      }
      if (current?.ino === ino) {
        absent = 0
        await wait(signal)
        continue
      }
      const following = await after(catalogue, name, ino)
      if (following) {
        await file.close()
        file = following
        at = 0
        part = { file: await identityOf(file), from: 0, to: 0 }
        reading(part)
        yield ROTATED
      } else if (++absent > PATIENCE) return { reason: 'removed' }
      else await wait(signal)
    }
    return undefined
  } finally {
    await file.close()
  }
}

/** Offsets count from the beginning of the new file. */
const ROTATED: Identified<LogRotated> = { 'event-id': '0', event: { kind: 'rotated' } }

const wait = (signal: AbortSignal): Promise<void> =>
  delay(LOOK, undefined, { signal }).catch(ignored('the wait was cut short'))

/** The file that was begun when another of the same log was moved away. */
const after = async (
  catalogue: Pick<Catalogue, 'open'>,
  name: string,
  ino: number,
): Promise<FileHandle | undefined> => {
  for (let age = 0; age <= KEPT; age++) {
    const newer = await catalogue.open(older(name, age)).catch(() => undefined)
    if (!newer) continue
    if ((await newer.stat()).ino === ino) {
      // It was rotated away, and nothing has been written since.
      await newer.close()
      return undefined
    }
    const next = await catalogue.open(older(name, age + 1)).catch(() => undefined)
    const before = await next?.stat()
    await next?.close()
    // The oldest remaining file follows a removed one.
    if (before === undefined || before.ino === ino) return newer
    await newer.close()
  }
  return undefined
}

interface Whole {
  readonly offset: number
  readonly end: number
  readonly text: string
}

/** The whole lines that begin at an offset; with `over` also a last one without its end. */
const whole = async (file: FileHandle, from: number, over: boolean): Promise<{ lines: Whole[]; next: number }> => {
  const lines: Whole[] = []
  for (let most = PIECE; ; most *= 4) {
    const read = await readAt(file, from, most)
    let start = 0
    for (let end = read.indexOf(LINE_END); end >= 0; end = read.indexOf(LINE_END, start)) {
      lines.push({ offset: from + start, end: from + end + 1, text: utf8(read.subarray(start, end)) })
      start = end + 1
    }
    const ends = read.length < most
    if (lines.length === 0 && read.length > 0 && (most >= MOST_LINE || (ends && over))) {
      lines.push({ offset: from, end: from + read.length, text: utf8(read) })
      return { lines, next: from + read.length }
    }
    if (lines.length > 0 || ends) return { lines, next: from + start }
  }
}

/** Where the last lines of a log begin. */
const lastLines = async (file: FileHandle, size: number): Promise<number> => {
  const begin = Math.max(0, size - BACK)
  const read = await readAt(file, begin, size - begin)
  let at = read.lastIndexOf(LINE_END)
  for (let left = LAST; left > 0 && at > 0; left--) at = read.lastIndexOf(LINE_END, at - 1)
  return at < 0 || (at === 0 && read[0] !== LINE_END) ? begin : begin + at + 1
}

/** Passes a limited number of lines per second and counts the rest. */
class Pace {
  #second = 0
  #sent = 0
  #skipped = 0

  admits(): boolean {
    const second = Math.floor(performance.now() / SECOND)
    if (second !== this.#second) {
      this.#second = second
      this.#sent = 0
    }
    if (this.#sent < A_SECOND) {
      this.#sent += 1
      return true
    }
    this.#skipped += 1
    return false
  }

  /** How many were left out, once their second is over or nothing more waits. */
  due(now: boolean): number {
    if (!now && Math.floor(performance.now() / SECOND) === this.#second) return 0
    const skipped = this.#skipped
    this.#skipped = 0
    return skipped
  }
}
