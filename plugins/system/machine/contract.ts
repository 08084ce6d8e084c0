import type { tags } from 'typia'
import type { Count, Millis, Size } from '../../../sdk/types.js'
import type { ConversationId } from '../../agent/contract.js'

/** What a process belongs to. */
export type ProcessOrigin = 'daemon' | 'agent' | 'terminal' | 'panel' | 'extension' | 'browser' | 'other'
/** A process that a group started; those below it belong to it too. */
export interface OwnedProcess {
  pid: Count
  origin: ProcessOrigin
  /** The terminal or browser session that it belongs to, or the extension and its program. */
  session?: string
  conversationId?: ConversationId
  /** The conversations that an agent program serves, if they are several. */
  conversationIds?: ConversationId[]
}
/** One process of the machine. */
export interface ProcessUse {
  pid: Count
  /** The program's name, never its arguments. */
  name: string
  origin: ProcessOrigin
  session?: string
  conversationId?: ConversationId
  /** The conversations that an agent program serves, if they are several. */
  conversationIds?: ConversationId[]
  /** Percent of one processor: a program that keeps two busy has 200. */
  cpuPct: number
  rssBytes: Size
}
export interface MemoryUse {
  totalBytes: Size
  usedBytes: Size
  /** The memory limit of this sandbox; absent without one. */
  limitBytes?: Size
}
export interface DiskUse {
  label: 'workspace' | 'state' | 'temp'
  totalBytes: Size
  freeBytes: Size
}
export interface DaemonUse {
  pid: Count
  rssBytes: Size
  heapBytes: Size
  /** The recent delay of the daemon's event loop, as its 99th percentile. */
  loopLagMs: number
  uptimeMs: Count
}
/** The machine as it was at one minute. */
export interface UsePoint {
  at: Millis
  cpuPct: number
  usedBytes: Size
}
/** What the machine is doing. */
export interface MachineUse {
  at: Millis
  cpus: Count
  /** Of all processors together. */
  cpuPct: number
  /** Of the last 1, 5 and 15 minutes. */
  load: number[] & tags.MinItems<3> & tags.MaxItems<3>
  memory: MemoryUse
  disks: DiskUse[]
  daemon: DaemonUse
  /** The 20 largest by processor time, then by memory. */
  processes: ProcessUse[]
  /** One point a minute, at most 60, oldest first; only where the history is asked for. */
  recent: UsePoint[]
}

/** What the machine below the sandbox is doing. */
export interface MachineCalls {
  /**
   * Say what the machine is doing now: processors, memory, disks, the largest processes.
   *
   * With `history=1` also the last hour, a point a minute. The domain `machine` changes only when memory, a disk or the
   * processors cross a line of 80, 90 or 95 %.
   */
  'GET /system/usage'(input: { history?: '1' }): { machine: MachineUse }
}
