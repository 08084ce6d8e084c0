import { rm } from 'node:fs/promises'
import type { Catalogue } from './catalogue.js'
import type { LogFile } from './contract.js'

/** How much of the logs stays. */
export interface LogLimits {
  readonly files: number
  readonly bytes: number
  /** Milliseconds a log may be idle. */
  readonly idle: number
}

const MIB = 1024 * 1024
const DAY = 24 * 60 * 60_000

export const LOG_LIMITS: LogLimits = { files: 200, bytes: 512 * MIB, idle: 30 * DAY }

/** Removes logs that were idle too long, and the oldest where there are too many; what is being written stays. */
export const sweepLogs = async (
  catalogue: Pick<Catalogue, 'list' | 'path'>,
  now: number,
  limits = LOG_LIMITS,
): Promise<void> => {
  let [count, bytes] = [0, 0]
  for (const file of inOrder(await catalogue.list())) {
    count += 1
    bytes += file.sizeBytes
    if (file.live || (count <= limits.files && bytes <= limits.bytes && now - file.modifiedAt <= limits.idle)) continue
    await rm(await catalogue.path(file.name), { force: true })
    count -= 1
    bytes -= file.sizeBytes
  }
}

/** Those being written first, then the newest. */
const inOrder = (files: readonly LogFile[]): LogFile[] =>
  [...files].sort((a, b) => Number(b.live) - Number(a.live) || b.modifiedAt - a.modifiedAt)
