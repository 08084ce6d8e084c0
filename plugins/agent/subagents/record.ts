import type { SubagentStatus, SubagentFrame, SubagentUpdateFrame } from '../turn/frames/frames.js'
import { isUnder } from './frames.js'

/** The state of a subagent by the frames of its run, and their times. */
export interface SubagentState extends Omit<SubagentFrame, 'kind'>, Omit<SubagentUpdateFrame, 'kind'> {
  status: SubagentStatus
  startedAt: number
  activityAt: number
  endedAt?: number
}

const OVER = new Set<SubagentStatus>(['completed', 'failed', 'killed'])

/** The subagents of one run. */
export class SubagentRecord {
  readonly #helpers = new Map<string, SubagentState>()
  readonly #asked = new Map<string, string>()

  add(frame: SubagentFrame | SubagentUpdateFrame, at: number): void {
    if (frame.kind === 'subagent') {
      const { kind: _kind, ...begun } = frame
      return void this.#helpers.set(frame.id, { ...begun, status: 'running', startedAt: at, activityAt: at })
    }
    const { kind: _kind, ...moved } = frame
    const before = this.#helpers.get(frame.id)
    if (!before) return
    const over = frame.status !== undefined && OVER.has(frame.status)
    this.#helpers.set(frame.id, { ...before, ...moved, activityAt: at, ...(over && { endedAt: at }) })
  }

  /** Stores the prompt of a subagent, which is in no frame. */
  ask(id: string, prompt: string): void {
    this.#asked.set(id, prompt)
  }

  asked(id: string): string | undefined {
    return this.#asked.get(id)
  }

  get(id: string): Readonly<SubagentState> | undefined {
    return this.#helpers.get(id)
  }

  get all(): readonly Readonly<SubagentState>[] {
    return [...this.#helpers.values()]
  }

  /** Those that have not ended, in the order they were started. */
  get open(): readonly Readonly<SubagentState>[] {
    return this.all.filter(({ status }) => !OVER.has(status))
  }

  isOpen(id: string): boolean {
    const helper = this.#helpers.get(id)
    return helper !== undefined && !OVER.has(helper.status)
  }

  /** The subagents above one, the nearest last. */
  above(id: string): readonly string[] {
    return [...this.#helpers.keys()].filter(other => isUnder(other, id)).sort((one, other) => one.length - other.length)
  }
}
