import type { HelperStatus, SubagentFrame, SubagentUpdateFrame } from './frames.js'

/** A helper as the frames of its run tell of it. */
export interface HelperState extends Omit<SubagentFrame, 'kind'>, Omit<SubagentUpdateFrame, 'kind'> {
  status: HelperStatus
}

const OVER = new Set<HelperStatus>(['completed', 'failed', 'killed'])

/** The helpers of one run. */
export class HelperRecord {
  readonly #helpers = new Map<string, HelperState>()

  add(frame: SubagentFrame | SubagentUpdateFrame): void {
    if (frame.kind === 'subagent') {
      const { kind: _kind, ...begun } = frame
      return void this.#helpers.set(frame.id, { ...begun, status: 'running' })
    }
    const { kind: _kind, ...moved } = frame
    const before = this.#helpers.get(frame.id)
    if (before) this.#helpers.set(frame.id, { ...before, ...moved })
  }

  get(id: string): Readonly<HelperState> | undefined {
    return this.#helpers.get(id)
  }

  get all(): readonly Readonly<HelperState>[] {
    return [...this.#helpers.values()]
  }

  /** Those that have not ended, in the order they were started. */
  get open(): readonly Readonly<HelperState>[] {
    return this.all.filter(({ status }) => !OVER.has(status))
  }

  isOpen(id: string): boolean {
    const helper = this.#helpers.get(id)
    return helper !== undefined && !OVER.has(helper.status)
  }
}
