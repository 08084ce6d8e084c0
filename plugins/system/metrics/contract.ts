import type { Count, Size } from '../../../sdk/types.js'
import type { ProcessOrigin } from '../machine/contract.js'

/** Figures in the text format of OpenMetrics 1.0. */
export interface MetricsText {
  'content-type': 'application/openmetrics-text; version=1.0.0; charset=utf-8'
}

/** What one group did since the daemon started. */
export interface PluginBill {
  name: string
  /** Requests of its routes. */
  calls: Count
  /** Those that failed by the sandbox's own fault: answers of 500 and above. */
  errors: Count
  /** Those that were answered with a value, and how long these took together: streams and sockets have no time. */
  timed: Count
  answerSeconds: number
}

/** What the running processes of one kind use; those of extensions are listed one by one. */
export interface ProcessBill {
  origin: ProcessOrigin
  /** The extension and its program, or the terminal or browser. */
  session?: string
  processes: Count
  /** Processor time since they began. */
  cpuSeconds: number
  rssBytes: Size
}

/** What each part of the sandbox did and uses. */
export interface MetricsCalls {
  /**
   * Read all figures in the text format of OpenMetrics, for Prometheus and what speaks like it.
   *
   * Names begin with `sandbox_`; those of Node are `process_` and `nodejs_`. They count since the daemon started, by
   * group, route and status, and hold no path, prompt or secret, and no id but those of extensions. A control token of
   * scope `read` reads them.
   *
   * - 403: the caller is limited to areas
   */
  'GET /metrics'(): MetricsText

  /** Say what each group did since the start, and what the processes of the sandbox use, most first. */
  'GET /system/plugins'(): { plugins: PluginBill[]; processes: ProcessBill[] }
}
