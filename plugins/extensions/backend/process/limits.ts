/** The resource and time limits of the process of a backend; times in ms. */
export interface BackendLimits {
  /** From the start of the process to the end of `activate`. */
  readonly startMs: number
  readonly pingEveryMs: number
  /** The time without an answer to a ping after which it is ended. */
  readonly pingMs: number
  /** How often memory and processor time are looked at. */
  readonly lookMs: number
  readonly heapMiB: number
  /** The most resident memory in bytes. */
  readonly resident: number
  /** The maximum writable memory in bytes, which also applies between two checks. */
  readonly mapped: number
  /** More of one core than this for `cpuMs`. */
  readonly cpuShare: number
  readonly cpuMs: number
  readonly openFiles: number
  /** The largest file in bytes. */
  readonly fileSize: number
  /** Messages per second, plus a burst of the same number. */
  readonly messages: number
  /** Bytes that wait to be read by it. */
  readonly unread: number
  readonly stopMs: number
  readonly killMs: number
  readonly backoff: { readonly first: number; readonly most: number }
  /** The running time after which the back-off is reset. */
  readonly healthyMs: number
  /** The most crashes within `crashesMs`. */
  readonly crashes: number
  readonly crashesMs: number
  /** The time that requests wait for a start. */
  readonly queueMs: number
}

const MIB = 1024 * 1024

export const BACKEND_LIMITS: BackendLimits = {
  startMs: 15_000,
  pingEveryMs: 5_000,
  pingMs: 15_000,
  lookMs: 500,
  heapMiB: 256,
  resident: 512 * MIB,
  mapped: 1024 * MIB,
  cpuShare: 0.9,
  cpuMs: 60_000,
  openFiles: 256,
  fileSize: 256 * MIB,
  messages: 10_000,
  unread: 16 * MIB,
  stopMs: 5_000,
  killMs: 2_000,
  backoff: { first: 1_000, most: 60_000 },
  healthyMs: 300_000,
  crashes: 5,
  crashesMs: 600_000,
  queueMs: 10_000,
}
